"""Footnotes: the reasons for missing figures, and warnings about other figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from zodbshootout.model.grouping import grouped
from zodbshootout.model.outcome import State
from zodbshootout.model.quantities import AT_A_RATE, REACHED, Quantity
from zodbshootout.model.wording import counted
from zodbshootout.reports.elements import DASH, Entry, Style
from zodbshootout.reports.headings import Columned, benchmarks_of
from zodbshootout.results.cell import Cell
from zodbshootout.results.result import CellResult

NO_FIGURE = f"dash ({DASH}): not recorded, or too few runs or values"
"""The note on dashes that have no numbered note."""
OVERLOADED = "cannot keep up: the queue grows as long as the load lasts, so no latency can be given"
"""The note on a cell that cannot do as many iterations a second as its rate demands."""
_STYLES = {State.FAILED: Style.BAD, State.UNSUPPORTED: Style.DIM, State.NOT_RUN: Style.DIM}


@dataclass
class Footnotes:
    """The reasons for missing figures, and warnings, numbered in the order of first reference."""

    columns: Sequence[str]
    benchmarks: Sequence[str]
    pending: str
    """The word for cells that were not run."""
    reasons: dict[tuple[State, str], list[tuple[str, Cell]]] = field(default_factory=dict)

    @classmethod
    def of(cls, cells: Sequence[Columned], pending: str = State.NOT_RUN.value) -> Footnotes:
        """Return footnotes for tables of *cells*, without any reason yet."""
        columns = list(dict.fromkeys(column for column, _ in cells))
        return cls(columns, benchmarks_of(cells), pending)

    def missing(
        self, column: str, result: CellResult, quantity: Quantity | None = None
    ) -> Entry | None:
        """Return the entry that says why a cell lacks a quantity, ``None`` if it has a figure."""
        if not result.measured:
            words = {State.UNSUPPORTED: "n/a", State.NOT_RUN: self.pending}
            word, style = words.get(result.state, result.state.value), _STYLES[result.state]
        elif quantity is not REACHED and not result.keeps_up:
            is_first = quantity not in AT_A_RATE[2:]
            word, style = "cannot keep up" if is_first else DASH, Style.BAD
        else:
            return None
        return Entry(word, style=style, note=self.number(column, result, quantity))

    def number(self, column: str, result: CellResult, quantity: Quantity | None = None) -> int:
        """Return the number of the footnote on a result, 0 if there is none."""
        reason = result.reason
        if result.measured and result.state is not State.MEASURED:
            runs = counted(len(result.runs), "run")
            reason = f"{reason}; the figure is from {runs} before that"
        if quantity is not REACHED and not result.keeps_up:
            reason = "; ".join(filter(None, [reason, OVERLOADED]))
        if not reason:
            return 0
        key = (result.state, reason)
        self.reasons.setdefault(key, []).append((column, result.cell))
        return list(self.reasons).index(key) + 1

    def lines(self) -> Iterator[str]:
        """Return a line for each reason."""
        for number, ((state, reason), refused) in enumerate(self.reasons.items(), 1):
            advice = self._advice(refused) if state is State.UNSUPPORTED else ""
            where = places(refused, self.benchmarks)
            word = "" if state is State.MEASURED else f"{state.value}: "
            yield f"[{number}] {where}: {word}{reason}{advice}"

    def _advice(self, cells: Sequence[tuple[str, Cell]]) -> str:
        """Return advice to leave out a benchmark, if no contender can run it."""
        names = {cell.benchmark for _, cell in cells}
        is_all = len(names) > 1 or names == set(self.benchmarks)
        if is_all or len({column for column, _ in cells}) < len(self.columns):
            return ""
        return f" (leave it out: -{names.pop()})"


def places(cells: Sequence[tuple[str, Cell]], all_benchmarks: Sequence[str]) -> str:
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
