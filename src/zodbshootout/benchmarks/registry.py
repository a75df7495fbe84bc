"""The benchmarks there are, in the order in which they run.

A new one is one module in this package and its name in ``_MODULES``, or one entry point in the
group ``zodbshootout.benchmarks`` of any other package.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from importlib.metadata import entry_points

from zodbshootout.benchmarks.benchmark import Benchmark

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
        for benchmark in importlib.import_module(f"zodbshootout.benchmarks.{module}").BENCHMARKS:
            found[benchmark.name] = benchmark
    for entry_point in entry_points(group=ENTRY_POINTS):
        benchmark = entry_point.load()
        found[benchmark.name] = benchmark
    return found
