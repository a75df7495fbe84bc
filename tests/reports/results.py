"""Results of every kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.runs import cell, failed, measured, noisy, run, unpaired, unsupported
from zodbshootout.reports.cells import Cells, ResultSet
from zodbshootout.results.result import CellResult

EVERYTHING = [
    unpaired(cell("add", "fs"), [0.02], [0.02], [0.02]),
    unpaired(cell("add", "zeo"), [0.08], [0.12], [0.1]),
    failed(cell("add", "pg"), "OperationalError: connection refused"),
    unpaired(cell("cold", "fs"), [0.01]),
    unsupported(cell("cold", "zeo"), "it makes no sense"),
    failed(cell("cold", "pg"), "OperationalError: connection refused"),
    CellResult(cell("hot", "fs")),
    unpaired(cell("hot", "zeo"), [0.0005, 0.00051], [0.000504, 0.000505], [0.00050]),
    failed(cell("hot", "pg"), "another reason"),
]


def cells_of(results: Sequence[CellResult]) -> Cells:
    return Cells.of([ResultSet(results)])


def with_worker_metadata(result: CellResult) -> CellResult:
    """Return a result whose runs have the metadata that a worker adds."""
    if not result.measured:
        return result
    metadata: dict[str, Any] = {
        **result.cell.metadata(),
        "configuration_text": '"<zodb fs>"',
        "command_line": "zodbshootout",
    }
    with_metadata = CellResult(result.cell)
    for before in result.runs:
        with_metadata = with_metadata.with_run(
            run(*before.values, **{**before.get_metadata(), **metadata})
        )
    return replace(result, runs=with_metadata.runs)


FOUR = ("filestorage", "zeo", "sqlite", "memory")


def noisy_run(names: Sequence[str], noise: float) -> list[CellResult]:
    """Return results of the default benchmarks, each contender half as fast as the one before."""
    rates = {"add": 1, "update": 1, "warm": 10, "cold": 2, "prefetch_cold": 2, "hot": 100,
             "steamin": 900}  # fmt: skip
    return [
        measured(
            cell(benchmark, name),
            *noisy(10 * number + row, slower=0.02 * 2**number / rate, noise=noise),
            precision=0.05,
            duration=4.0,
            other_load=0.4,
        )
        for number, name in enumerate(names)
        for row, (benchmark, rate) in enumerate(rates.items())
    ]
