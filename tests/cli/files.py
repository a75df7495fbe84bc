"""Files of results for commands that read them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.commands import outcome
from tests.reports.results import with_worker_metadata
from tests.runs import cell, measured, noisy
from zodbshootout.model.titles import Value
from zodbshootout.results.files import ResultFiles
from zodbshootout.results.result import CellResult


def written(path: Path, *results: CellResult) -> Path:
    ResultFiles(path).write([with_worker_metadata(result) for result in results])
    return path


def run(*arguments: str | Path) -> tuple[int, str, str]:
    return outcome("compare", *arguments)


def side(
    contender: str, slower: float, seed: int, variant: Mapping[str, Value] | None = None,
    rtt: float | None = None, **more: Any,
) -> list[CellResult]:  # fmt: skip
    return [
        measured(cell("add", contender, variant, rtt=rtt), *noisy(seed, slower), **more),
        measured(cell("hot", contender, variant, rtt=rtt), *noisy(seed + 1), **more),
    ]
