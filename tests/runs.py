"""Made-up runs, as workers leave them, for what reads and reports results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyperf

from zodbshootout.model import Cell, CrewShape, Parameters, Unit
from zodbshootout.results import CellResult, State

THREADS = CrewShape(2, Unit.THREAD, shared=True)


def run(*values: float, loops: int = 1, unit: str = "second", **metadata: Any) -> pyperf.Benchmark:
    metadata = {"name": "cell", "loops": loops, "unit": unit, **metadata}
    return pyperf.Benchmark([pyperf.Run(values, metadata=metadata, collect_metadata=False)])


def cell(benchmark: str, contender: str, **parameters: Any) -> Cell:
    return Cell(benchmark, contender, Parameters(THREADS, **parameters))


def measured(
    of: Cell, values: Sequence[float], unit: str = "second", **metadata: Any
) -> CellResult:
    return CellResult(of).with_run(run(*values, unit=unit, **metadata))


def failed(of: Cell, reason: str) -> CellResult:
    return CellResult(of).without_number(State.FAILED, reason)


def unsupported(of: Cell, reason: str) -> CellResult:
    return CellResult(of).without_number(State.UNSUPPORTED, reason)
