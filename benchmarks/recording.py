"""The cost of the harness on the clock.

A benchmark whose iterations do nothing is measured like any other.  Its time per iteration is the
overhead in every iteration of any benchmark: a call, reading the clock, and recording the time.
The figure is the median value of one client.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from benchmarks.line import Line, at_most, info
from benchmarks.nothing import Batches, crew_plan
from zodbshootout.client.benchmarks.benchmark import Benchmark, Nothing
from zodbshootout.model.specification import ClientKind

LIMIT = 0.2
"""The maximum cost of recording, in microseconds per iteration."""
ITERATIONS = 20_000
VALUES = 51


def measure(*, quick: bool) -> Iterator[Line]:
    """Yield the cost of iterations timed one by one, and of those timed in batches."""
    values = 5 if quick else VALUES
    timings = _values(Nothing, values)
    yield at_most(
        "recording: an iteration by itself", statistics.median(timings), LIMIT, "{:.3f} us"
    )
    yield info("  lowest value", min(timings), "{:.3f} us")
    yield info("  highest value", max(timings), "{:.3f} us")
    timings = _values(Batches, values)
    yield at_most("recording: one of a batch", statistics.median(timings), LIMIT, "{:.3f} us")


def _values(benchmark: type[Benchmark], values: int) -> list[float]:
    """Return microseconds per iteration."""
    with crew_plan(benchmark, ClientKind.THREAD).started() as crew:
        crew.measure(ITERATIONS)
        return [crew.measure(ITERATIONS).value * 1e6 for _ in range(values)]
