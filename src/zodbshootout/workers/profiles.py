"""The profiles of a cell: those of its clients and runs, merged."""

from __future__ import annotations

import pstats
import shutil
from pathlib import Path

from zodbshootout.workers.task import Profiling

PREFIX = "profile: "
"""How a line begins that tells what went wrong with a profile."""
LISTED = 60
"""Functions in the text, those first that take most time with all that they call."""


def collect(parts: Path, profiling: Profiling) -> None:
    """Add the profiles in *parts* to those that earlier runs of the cell have left.

    cProfile's are merged into one file, with a text beside it.  vmprof's cannot be merged and get
    numbers.
    """
    target = Path(profiling.directory) / profiling.name
    found = sorted(parts.glob("*.prof"))
    if found:
        path = target.with_name(f"{target.name}.prof")
        _merge([*([path] if path.exists() else []), *found], path)
    for number, part in enumerate(sorted(parts.glob("*.vmprof")), _taken(target)):
        shutil.move(part, target.with_name(f"{target.name}-{number}.vmprof"))


def _merge(parts: list[Path], path: Path) -> None:
    with path.with_name(f"{path.name[: -len('.prof')]}.txt").open("w", encoding="utf-8") as text:
        stats = pstats.Stats(*map(str, parts), stream=text)
        stats.files = []  # type: ignore[attr-defined]  # those that were merged are gone by now
        stats.sort_stats("cumulative").print_stats(LISTED)
    temporary = path.with_name(f".{path.name}")
    stats.dump_stats(temporary)
    temporary.replace(path)


def _taken(target: Path) -> int:
    return 1 + len(list(target.parent.glob(f"{target.name}-*.vmprof")))
