"""Which contender of a report each of the others is compared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from zodbshootout.reports.records import Source, placed
from zodbshootout.results.result import CellResult


@dataclass(frozen=True)
class Sides:
    """Two contenders that are compared: what stands above their figures, and their results."""

    base: str
    new: str
    of_base: Sequence[CellResult]
    of_new: Sequence[CellResult]


def against_baseline(sources: Sequence[Source], baseline: str | None) -> Iterator[Sides]:
    """Return each contender of which anything was timed, and the one it is compared with.

    That is the one in the column *baseline*.  Unless told otherwise it is the contender of the same
    section as it is installed, and where there is none, the first one that was timed.
    """
    timed: dict[str, list[CellResult]] = {}
    beside: dict[str, str] = {}
    for source in sources:
        for result in source.results:
            if result.measured and result.unit == "second":
                column = source.column(result.cell.contender)
                timed.setdefault(column, []).append(result)
                if result.beside and baseline is None:
                    beside[column] = source.column(result.beside)
    columns = list(dict.fromkeys(column for column, _ in placed(sources)))
    usual = baseline or next((column for column in columns if column in timed), "")
    for column in columns:
        base = beside.get(column, usual)
        if column in timed and column != base:
            yield Sides(base, column, timed.get(base, []), timed[column])
