"""Files of results for commands that read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.commands import outcome
from tests.reports.results import with_worker_metadata
from tests.runs import in_rounds, noisy
from zodbshootout.results.files import ResultFiles
from zodbshootout.results.result import CellResult


def written(path: Path, *results: CellResult) -> Path:
    ResultFiles(path).write([with_worker_metadata(result) for result in results])
    return path


def run(*arguments: str | Path) -> tuple[int, str, str]:
    return outcome("compare", *arguments)


def side(contender: str, slower: float, seed: int, **more: Any) -> list[CellResult]:
    return [
        in_rounds(contender, noisy(seed, slower), "add", **more),
        in_rounds(contender, noisy(seed + 1), "hot", **more),
    ]
