"""The benchmarks there are, in the order in which they run.

A new one is one module in this package and its name in ``_MODULES``, or one entry point in the
group ``zodbshootout.benchmarks`` of any other package.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from typing import Any

from zodbshootout.client.benchmarks.benchmark import Benchmark

_MODULES = (
    "add", "update", "warm", "cold", "prefetch_cold", "hot", "steamin", "load", "store", "tpc",
    "empty_commits", "read_current", "new_oid", "conflicts", "read_current_conflicts",
)  # fmt: skip

DEFAULT = ("add", "update", "warm", "cold", "prefetch_cold", "hot", "steamin")
"""The benchmarks that run where none is named: reading and writing as applications do."""

ENTRY_POINTS = "zodbshootout.benchmarks"


@functools.cache
def benchmarks() -> Mapping[str, type[Benchmark]]:
    """Return every benchmark by its name."""
    found: dict[str, type[Benchmark]] = {}
    for module in _MODULES:
        for benchmark in importlib.import_module(f"{__package__}.{module}").BENCHMARKS:
            found[benchmark.name] = benchmark
    for entry_point in _entry_points():
        benchmark = entry_point.load()
        found[benchmark.name] = benchmark
    return found


def _entry_points() -> Iterable[Any]:
    if sys.version_info >= (3, 10):
        return entry_points(group=ENTRY_POINTS)
    return entry_points().get(ENTRY_POINTS, ())  # type: ignore[unreachable, unused-ignore]
