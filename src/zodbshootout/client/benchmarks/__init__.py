"""The benchmarks, in the order of the table.

To add a benchmark, write a module in this package and name the module in ``_MODULES``, or register
an entry point in the group ``zodbshootout.benchmarks`` in any other package.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from zodbshootout.model.specification import BenchmarkWords, Parameters
from zodbshootout.plugins import plugins

if TYPE_CHECKING:
    from zodbshootout.client.benchmarks.benchmark import Benchmark

ENTRY_POINTS = "zodbshootout.benchmarks"

DEFAULT = ("add", "update", "warm", "cold", "prefetch_cold", "hot", "steamin")
"""The benchmarks that run by default: they read and write as applications do."""

_MODULES = (
    "add", "update", "warm", "cold", "hot", "load", "store", "empty_commits", "read_current",
    "new_oid", "conflicts", "revisions", "opening", "pack", "copying", "replay",
)  # fmt: skip


@functools.cache
def benchmarks() -> Mapping[str, type[Benchmark]]:
    """Return the benchmarks by name; those of other packages replace ours of the same name."""
    return {benchmark.name: benchmark for benchmark in (*ours(), *plugins(ENTRY_POINTS))}


def ours() -> list[type[Benchmark]]:
    """Return the benchmarks of this package."""
    modules = (importlib.import_module(f"{__name__}.{name}") for name in _MODULES)
    return [benchmark for module in modules for benchmark in module.BENCHMARKS]


def words_of(benchmark: type[Benchmark]) -> BenchmarkWords:
    """Return the words that reports use for a benchmark."""
    return BenchmarkWords(benchmark.title, benchmark.legend, benchmark.topic, benchmark.counted)


def rate_refusal(benchmark: type[Benchmark], parameters: Parameters) -> str | None:
    """Return why a benchmark's iterations cannot come at a requested rate, or ``None``."""
    if not (parameters.rate or parameters.limit.percentile):
        return None
    name, traits = benchmark.name, benchmark.traits
    if traits.lengthy:
        return f"{name} has no rate: each iteration needs a preparation that takes longer"
    if benchmark.shape(parameters).in_rounds and not traits.numbered:
        return (
            f"{name} has no rate with {parameters.crew.kind}: its clients wait for each other "
            "before they go on"
        )
    return None
