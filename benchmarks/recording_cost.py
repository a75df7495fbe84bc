"""What the recording of an iteration costs on the clock: ``python benchmarks/recording_cost.py``.

A benchmark whose iteration does nothing is measured as any other.  What its iterations take is what
every iteration of every benchmark takes more than the work that it does: a call, and part of
reading the clock twice.
"""

from __future__ import annotations

import statistics
import sys
import time

import ZODB

from zodbshootout.benchmarks.benchmark import Benchmark
from zodbshootout.contenders.contender import Contender
from zodbshootout.engine.measurement import Measurement
from zodbshootout.engine.summary import summarize
from zodbshootout.model import CrewShape, Parameters, Unit

LIMIT = 0.3e-6
"""Seconds that recording may cost an iteration."""
ITERATIONS = 20_000
VALUES = 15


class Nothing(Benchmark):
    """Does nothing, in iterations that are timed each by itself."""

    name = "nothing"
    title = "Nothing"
    purpose = None

    def run(self) -> None:
        pass


class Series(Nothing):
    """The same in batches for which everything is prepared once."""

    name = "series"
    timed_singly = True

    @classmethod
    def batch(cls, parameters: Parameters) -> int:
        return parameters.objects


class InMemory:
    """Opens a DB in memory, as a section of a configuration would."""

    name = "memory"

    def open(self) -> ZODB.DB:
        return ZODB.DB(None)


def main() -> int:
    """Print what recording costs; return whether it is more than it may."""
    worst = 0.0
    contender = Contender("memory", InMemory(), {})
    for benchmark in (Nothing, Series):
        parameters = Parameters(CrewShape(1, Unit.THREAD))
        with Measurement(benchmark, contender, parameters, time.perf_counter).started() as measure:
            samples = [measure(ITERATIONS) for _ in range(VALUES)]
        means = [sample.value("mean") for sample in samples]
        told = summarize(samples)
        worst = max(worst, statistics.median(means))
        print(  # noqa: T201
            f"{benchmark.name}: median of {VALUES} values {statistics.median(means) * 1e9:.0f} ns, "
            f"from {min(means) * 1e9:.0f} to {max(means) * 1e9:.0f} ns; single iterations: "
            f"p50 {float(told['latency_p50_s']) * 1e9:.0f} ns, "
            f"p99 {float(told['latency_p99_s']) * 1e9:.0f} ns"
        )
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
