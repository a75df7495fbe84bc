"""What a table can show of a cell: how many objects a second, how long it takes, how it varies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from zodbshootout.results.result import CellResult


@dataclass(frozen=True)
class Metric:
    """One kind of figure."""

    name: str
    """Its name on the command line."""
    caption: str
    """What the figures are; ``{counted}`` in it stands for what a benchmark counts."""
    value: Callable[[CellResult], float | None]
    """Return the figure of a cell that was measured, ``None`` where it has none."""
    better: str = "less"
    """What is better of it, ``more`` or ``less``; empty where neither is."""
    written: str = ""
    """How Python writes a figure that is neither a rate nor a time: its format."""

    def text(self, result: CellResult, value: float) -> str:
        """Return *value* as it is printed."""
        if self.written:
            return format(value, self.written)
        if self.better == "more" and result.unit == "second":
            return f"{value:,.0f}"
        return str(result.benchmark().format_value(value))


def _objects(result: CellResult) -> float:
    # Where memory was traced there are bytes, whatever is asked for.
    return result.mean if result.unit == "byte" else result.objects_per_second


def _stdev(result: CellResult) -> float | None:
    return None if result.spread is None else result.spread * result.mean


def _percentile(percentile: float) -> Callable[[CellResult], float | None]:
    return lambda result: result.latency(percentile)


_ALL = (
    Metric("objects", "{counted} per second", _objects, better="more"),
    Metric("seconds", "Mean seconds per iteration", lambda result: result.mean),
    Metric("stdev", "Standard deviation of the values, in seconds per iteration", _stdev),
    Metric("p50", "Latency, 50th percentile", _percentile(50)),
    Metric("p90", "Latency, 90th percentile", _percentile(90)),
    Metric("p99", "Latency, 99th percentile", _percentile(99)),
    Metric("max", "Latency, longest", lambda result: result.longest_latency),
)
UNITS: Mapping[str, Metric] = {unit.name: unit for unit in _ALL}
"""Every kind of figure by its name."""
OBJECTS = UNITS["objects"]
