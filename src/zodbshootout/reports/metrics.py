"""The figures that a table or a chart can show of a cell."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from zodbshootout.model.costs import BYTES, RATIO, SECONDS, Cost
from zodbshootout.results.result import REACHED, CellResult

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
"""Units of time: the length of each in seconds, and its name in pyperf."""
TILDE = "~"
"""The mark before an imprecise figure."""
_SIZES = ("B", "kB", "MB", "GB", "TB")
"""Units of sizes, each a thousand times the previous one."""
MILLIONS = 10_000_000
"""A rate of at least this many objects per second is printed in millions."""


@dataclass(frozen=True)
class Metric:
    """One kind of figure."""

    name: str
    """The name on the command line."""
    caption: str
    value: Callable[[CellResult], float | None]
    """A function that returns the figure of a measured cell, ``None`` if the cell lacks it."""
    better: str = "less"
    """``more`` or ``less``, whichever is better; empty if neither is better."""
    format: str = ""
    """Python's format for a figure that is neither a rate nor a time."""
    cost: Cost | None = None
    """The cost that the metric shows, if it shows a cost."""

    def text(self, result: CellResult, value: float) -> str:
        """Return the text for *value*, a figure of *result*."""
        if self.cost is not None:
            return cost_text(self.cost, value)
        parameters = result.cell.parameters
        if result.measure == REACHED:
            return f"{three_digits(parameters.rate * value)}/s"
        if parameters.limit.percentile and self is OBJECTS:
            return three_digits(value)
        if self.format:
            return format(value, self.format)
        if self.better == "more" and result.unit == "second" and not result.paced:
            return f"{value / 1e6:,.1f}M" if value >= MILLIONS else three_digits(value)
        return str(result.benchmark().format_value(value))


def cost_text(cost: Cost, value: float) -> str:
    """Return the text for an amount of a cost."""
    if cost.unit == BYTES:
        power = min(int(math.log10(value)) // 3, len(_SIZES) - 1) if value >= 1 else 0
        return f"{three_digits(value / 1000.0**power)} {_SIZES[power]}"
    if cost.unit == SECONDS:
        scale, unit = next((time for time in _TIMES if value >= time[0]), _TIMES[-1])
        return f"{three_digits(value / scale)} {unit}"
    if cost.unit == RATIO:
        return f"{three_digits(value)}×"
    return f"{value:,.4g}"


def metric_of(cost: Cost) -> Metric:
    """Return the metric that shows a cost."""

    def value(result: CellResult) -> float | None:
        figure = result.with_cost(cost)
        return None if figure is None else figure.mean

    return Metric(cost.name, f"{cost.caption[0].upper()}{cost.caption[1:]}", value, cost=cost)


def three_digits(value: float) -> str:
    """Return a number with three significant digits; from 100 on, as a whole number."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004


def _objects(result: CellResult) -> float:
    # If a run traced memory, its values are bytes, which are shown as they are.
    if result.unit == "byte" or result.paced:
        return result.mean
    return result.objects_per_second


def _percentile(percentile: float) -> Callable[[CellResult], float | None]:
    return lambda result: result.usual_latencies.get(percentile)


OBJECTS = Metric("objects", "Objects per second", _objects, better="more")
PERCENTILES = (
    Metric("p50", "Latency, 50th percentile, per iteration", _percentile(50)),
    Metric("p90", "Latency, 90th percentile, per iteration", _percentile(90)),
    Metric("p99", "Latency, 99th percentile, per iteration", _percentile(99)),
    Metric("max", "Latency, longest, per iteration", lambda result: result.longest_latency),
)
"""The metrics of latencies; a page shows one of them at a time."""
_SECONDS = Metric("seconds", "Mean seconds per iteration", lambda result: result.mean)
_STDEV = Metric(
    "stdev", "Standard deviation of the values, in seconds per iteration",
    lambda result: statistics.stdev(result.values) if len(result.values) > 1 else None,
)  # fmt: skip
METRICS = {metric.name: metric for metric in (OBJECTS, _SECONDS, _STDEV, *PERCENTILES)}
"""The metrics that ``--unit`` can select, by name."""
DEFAULT_PERCENTILE = "p99"


def total(result: CellResult, name: str) -> float | None:
    """Return the sum of the count *name* over all runs, ``None`` if it is unknown."""
    counts: list[Any] = [one.get(name) for one in result.facts]
    return float(sum(counts)) if all(isinstance(count, int) for count in counts) else None


def per_iteration(result: CellResult, name: str) -> float | None:
    """Divide the count *name* by all iterations, counted and uncounted; ``None`` if unknown."""
    count, timed, untimed = (
        total(result, key) for key in (name, "iterations", "iterations_uncounted")
    )
    iterations = (timed or 0) + (untimed or 0)
    return count / iterations if count is not None and iterations else None


def hit_rate(result: CellResult, loads: str = "loads") -> float | None:
    """Return the share of loads that the storage's cache served; *loads* is a count's name."""
    hits, requests = (total(result, name) for name in ("storage_cache_hits", loads))
    # ZEO's cache also counts ZEO's own look-ups, so hits may outnumber loads.
    return min(1.0, hits / requests) if hits is not None and requests else None


def _event(name: str, caption: str) -> Metric:
    return Metric(
        name, caption, lambda result: per_iteration(result, name), better="", format=",.3g"
    )


COUNTS = (
    _event("conflicts", "Conflicts per iteration"),
    _event("resolutions", "Conflicts resolved per iteration"),
    _event("retries", "Retries per iteration"),
    Metric("hits", "Loads served by the storage's own cache", hit_rate, better="", format=".0%"),
)
"""Counts of events; a whole report has a table for each count."""
