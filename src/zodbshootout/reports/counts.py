"""What is counted beside time: conflicts, retries, hits of the storage's own cache."""

from __future__ import annotations

from collections.abc import Callable

from zodbshootout.reports.figures import Metric
from zodbshootout.results.result import CellResult


def _counted(result: CellResult, name: str) -> float | None:
    found = [run.get_metadata().get(name) for run in result.runs]
    return float(sum(found)) if all(isinstance(each, int) for each in found) else None


def _of_an_iteration(name: str) -> Callable[[CellResult], float | None]:
    def value(result: CellResult) -> float | None:
        # What is counted is counted in all iterations.
        count, counted, uncounted = (
            _counted(result, each) for each in (name, "iterations", "iterations_uncounted")
        )
        iterations = (counted or 0) + (uncounted or 0)
        return count / iterations if count is not None and iterations else None

    return value


def _hit_rate(result: CellResult) -> float | None:
    hits, misses, loads = (
        _counted(result, name) for name in ("storage_cache_hits", "storage_cache_misses", "loads")
    )
    asked = hits + misses if hits is not None and misses is not None else loads
    return hits / asked if hits is not None and asked else None


def _count(name: str, caption: str) -> Metric:
    return Metric(name, caption, _of_an_iteration(name), better="", written=",.3g")


COUNTS = (
    _count("conflicts", "Conflicts per iteration"),
    _count("resolutions", "Conflicts resolved per iteration"),
    _count("retries", "Transactions tried again, per iteration"),
    Metric("hits", "Loads served by the storage's own cache", _hit_rate, better="", written=".0%"),
)
"""Every count that a report has a table of."""
