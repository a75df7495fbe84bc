"""Footnotes: the reasons for missing figures, and warnings about other figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zodbshootout.model.grouping import grouped
from zodbshootout.model.outcome import State
from zodbshootout.model.quantities import AT_A_RATE, REACHED, Quantity
from zodbshootout.model.wording import counted
from zodbshootout.reports.cells import Cells
from zodbshootout.reports.elements import Entry, Note, Style
from zodbshootout.results.cell import Cell
from zodbshootout.results.result import CellResult

OVERLOADED = "cannot keep up: the queue grows as long as the load lasts, so no latency can be given"
"""The note on a cell that cannot do as many iterations a second as its rate demands."""
_STYLES = {State.FAILED: Style.BAD, State.UNSUPPORTED: Style.DIM, State.NOT_RUN: Style.DIM}
_Place = tuple[str, Cell]
"""The title of a column, and a cell in it."""


@dataclass(frozen=True)
class Footnotes:
    """The notes on cells, numbered in the order of the tables, which refer to them."""

    of_cells: Mapping[_Place, Note]
    pending: str
    """The word for cells that were not run."""

    @classmethod
    def of(cls, cells: Cells, pending: str = State.NOT_RUN.value) -> Footnotes:
        """Return the footnotes for all tables of *cells*."""
        in_order = [
            (column, row[column])
            for group in cells.groups
            for row in group.rows.values()
            for column in group.columns
            if column in row
        ]
        by_reason = grouped(
            ((result.state, reason), (column, result.cell))
            for column, result in in_order
            if (reason := _reason(result))
        )
        notes: dict[_Place, Note] = {}
        for number, ((state, reason), refused) in enumerate(by_reason.items(), 1):
            word = "" if state is State.MEASURED else f"{state.value}: "
            advice = _advice(refused, cells) if state is State.UNSUPPORTED else ""
            text = f"{places(refused, cells.benchmarks)}: {word}{reason}{advice}"
            notes |= dict.fromkeys(refused, Note(text, number))
        return cls(notes, pending)

    @property
    def notes(self) -> list[Note]:
        """All footnotes in order."""
        return list(dict.fromkeys(self.of_cells.values()))

    def on(self, column: str, result: CellResult) -> Note | None:
        """Return the footnote on a cell, if there is one."""
        return self.of_cells.get((column, result.cell))

    def missing(
        self, column: str, result: CellResult, quantity: Quantity | None = None
    ) -> Entry | None:
        """Return the entry that says why a cell lacks a quantity, ``None`` if it has a figure.

        Only the rate that was reached is known of a cell that cannot keep up.
        """
        if not result.measured:
            words = {State.UNSUPPORTED: "n/a", State.NOT_RUN: self.pending}
            word, style = words.get(result.state, result.state.value), _STYLES[result.state]
        elif quantity is not REACHED and not result.keeps_up:
            word, style = "" if quantity in AT_A_RATE[2:] else "cannot keep up", Style.BAD
        else:
            return None
        return Entry(word, style=style, note=self.on(column, result))


def _reason(result: CellResult) -> str:
    """Return the reason for a missing figure, or the warning about a figure, if there is one."""
    reason = result.reason
    if result.measured and result.state is not State.MEASURED:
        reason = f"{reason}; the figure is from {counted(len(result.runs), 'run')} before that"
    return "; ".join(filter(None, [reason, "" if result.keeps_up else OVERLOADED]))


def _advice(refused: Sequence[_Place], cells: Cells) -> str:
    """Return advice to leave out a benchmark, if no contender can run it."""
    names = {cell.benchmark for _, cell in refused}
    is_all = len(names) > 1 or names == set(cells.benchmarks)
    if is_all or {column for column, _ in refused} < {column for column, _ in cells}:
        return ""
    return f" (leave it out: -{names.pop()})"


def places(cells: Sequence[_Place], all_benchmarks: Sequence[str]) -> str:
    """List cells by column and benchmark; columns with the same benchmarks are joined."""
    benchmarks = grouped((column, cell.benchmark) for column, cell in cells)
    columns = grouped(
        (_listed(list(dict.fromkeys(names)), all_benchmarks), column)
        for column, names in benchmarks.items()
    )
    return "; ".join(f"{', '.join(titles)}{listed}" for listed, titles in columns.items())


def _listed(names: Sequence[str], all_benchmarks: Sequence[str]) -> str:
    if set(names) == set(all_benchmarks):
        return ", every benchmark" if len(all_benchmarks) > 1 else ""
    return f", {', '.join(names)}"
