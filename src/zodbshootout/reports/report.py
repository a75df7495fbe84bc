"""A report: tables of figures, and the notes below them, before it is written as anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from zodbshootout.client.outcome import State
from zodbshootout.client.parameters import Parameters
from zodbshootout.model import Cell
from zodbshootout.reports.figures import OBJECTS, Unit
from zodbshootout.results import CellResult

UNSTABLE = 0.1
"""The relative standard deviation from which on pyperf, too, calls a benchmark unstable."""
_WORDS = {State.FAILED: "failed", State.UNSUPPORTED: "n/a", State.NOT_RUN: "not run"}
_NOTE_WORDS = {
    State.MEASURED: "incomplete",
    State.FAILED: "failed",
    State.UNSUPPORTED: "not supported",
}


@dataclass(frozen=True)
class Heading:
    """What the row of a benchmark says."""

    title: str
    """``{objects}`` in it stands for the number of objects."""
    counted: str = "objects"
    """What the figures in the row count: they are so many per second."""


@dataclass(frozen=True)
class Source:
    """Results of one file, or of the run that ends."""

    results: Sequence[CellResult]
    label: str = ""
    """What stands before the names of its contenders where there are several files."""

    def column(self, contender: str) -> str:
        """Return what stands above the figures of a contender."""
        return f"{self.label}: {contender}" if self.label else contender


@dataclass(frozen=True)
class Figure:
    """What a table shows of one cell."""

    result: CellResult
    value: float | None = None
    """In the unit of the table; ``None`` where there is no figure."""
    text: str = ""
    """The value, or a word in its place."""
    note: int = 0
    """The number of the note that belongs to it, if one does."""
    spread: float | None = None
    """The standard deviation of the values as a part of their mean, where it is shown."""

    @property
    def unstable(self) -> bool:
        """Whether the values differ so much that pyperf would call them unstable."""
        return self.spread is not None and self.spread >= UNSTABLE

    def line(self, plus_minus: str = "±") -> str:
        """Return everything that is shown of the cell."""
        note = f" [{self.note}]" if self.note else ""
        spread = "" if self.spread is None else f" {plus_minus}{self.spread:3.0%}"
        return f"{self.text}{note}{spread}"


@dataclass(frozen=True)
class Row:
    """A benchmark with so many objects."""

    title: str
    figures: Sequence[Figure | None]
    """One for each column; ``None`` where there is no such cell."""


@dataclass(frozen=True)
class Table:
    """Cells of one crew, one kind of objects and one thing that is counted."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Row]


@dataclass(frozen=True)
class Report:
    """Tables, notes, and the results that they were made of."""

    tables: Sequence[Table]
    notes: Sequence[str]
    sources: Sequence[Source]


class NoSuchContender(Exception):  # noqa: N818
    """Figures were to be relative to a contender that there is not; the message tells which."""


def make_report(
    sources: Sequence[Source],
    headings: Mapping[str, Heading],
    unit: Unit = OBJECTS,
    relative_to: str | None = None,
) -> Report:
    """Return the report of some results.

    There is a table for each crew, for each kind of objects, and for what the figures count.
    *headings* has the row of each benchmark.  With *relative_to*, a column's title, figures are
    multiples of that contender's.

    :raises NoSuchContender: when no column has that title
    """
    cells = [(source, result) for source in sources for result in source.results]
    columns = list(dict.fromkeys(source.column(each.cell.contender) for source, each in cells))
    if relative_to is not None and relative_to not in columns:
        raise NoSuchContender(f"no contender {relative_to!r}; there are {', '.join(columns)}")
    notes = _Notes(columns)
    groups: dict[tuple[object, ...], list[tuple[str, CellResult]]] = {}
    for source, result in cells:
        heading = _heading(headings, result)
        column = source.column(result.cell.contender)
        groups.setdefault(_group(result, heading), []).append((column, result))
    scale = _Scale(unit, relative_to, notes)
    tables = [_table(group, headings, scale) for group in groups.values()]
    return Report(tables, notes.lines(cells), sources)


def _heading(headings: Mapping[str, Heading], result: CellResult) -> Heading:
    """Return the heading of a benchmark, even of one that is installed elsewhere."""
    return headings.get(result.cell.benchmark) or Heading(f"{result.cell.benchmark} {{objects}}")


def _group(result: CellResult, heading: Heading) -> tuple[object, ...]:
    parameters = result.cell.parameters
    data = _data(parameters) if _depends_on_data(heading.counted, parameters) else ""
    return heading.counted, parameters.crew, data


@dataclass(frozen=True)
class _Scale:
    """How figures are shown."""

    unit: Unit
    relative_to: str | None
    """The column of which figures are multiples, if they are."""
    notes: _Notes

    def figure(self, by_column: Mapping[str, CellResult], column: str) -> Figure | None:
        """Return the figure of a column in a row of which *by_column* has the cells."""
        result = by_column.get(column)
        if result is None:
            return None
        note = self.notes.number(column, result) if result.reason else 0
        if not result.measured:
            return Figure(result, text=_WORDS[result.state], note=note)
        value = self._value(result)
        if self.relative_to is not None:
            base = self._value(by_column.get(self.relative_to))
            times = value / base if value is not None and base else None
            return Figure(result, times, "-" if times is None else f"{times:.2f}", note)
        if value is None:
            return Figure(result, text="-", note=note)
        spread = result.spread if self.unit is OBJECTS and result.unit == "second" else None
        return Figure(result, value, self.unit.text(result, value), note, spread)

    def _value(self, result: CellResult | None) -> float | None:
        return self.unit.value(result) if result is not None and result.measured else None


def _table(
    group: Sequence[tuple[str, CellResult]], headings: Mapping[str, Heading], scale: _Scale
) -> Table:
    columns = list(dict.fromkeys(column for column, _ in group))
    rows: dict[tuple[str, int], dict[str, CellResult]] = {}
    for column, result in group:
        key = (result.cell.benchmark, result.cell.parameters.objects)
        rows.setdefault(key, {})[column] = result
    made = []
    for (_, objects), by_column in rows.items():
        heading = _heading(headings, next(iter(by_column.values())))
        figures = [scale.figure(by_column, column) for column in columns]
        made.append(Row(heading.title.format(objects=objects), figures))
    results = [result for _, result in group]
    counted = _heading(headings, results[0]).counted
    return Table(_caption(results, counted, scale), columns, made)


def _caption(results: Sequence[CellResult], counted: str, scale: _Scale) -> str:
    first = results[0].cell.parameters
    data = f", {_data(first)}" if _depends_on_data(counted, first) else ""
    more = scale.unit.more_is_better
    what = scale.unit.caption.format(counted=f"{counted[0].upper()}{counted[1:]}")
    if any(result.measured and result.unit == "byte" for result in results):
        what, more = "Memory of a worker", False
    if scale.relative_to is not None:
        what = f"{what}, relative to {scale.relative_to}"
    return f"{what} ({'more' if more else 'less'} is better): {first.crew}{data}"


def _depends_on_data(counted: str, parameters: Parameters) -> bool:
    return counted == "objects" or parameters.min_objects > 0


def _data(parameters: Parameters) -> str:
    mapping = parameters.mapping.value
    article = "an" if mapping[0] in "IO" else "a"
    what = "blobs" if parameters.blobs else "objects"
    return f"{what} of {parameters.object_size} bytes in {article} {mapping}"


@dataclass
class _Notes:
    """Reasons, numbered in the order in which they are first referred to."""

    columns: Sequence[str]
    """All that there are."""
    reasons: dict[tuple[State, str], list[tuple[str, Cell]]] = field(default_factory=dict)

    def number(self, column: str, result: CellResult) -> int:
        """Return the number of the reason of a result."""
        key = (result.state, result.reason)
        self.reasons.setdefault(key, []).append((column, result.cell))
        return list(self.reasons).index(key) + 1

    def lines(self, cells: Sequence[tuple[Source, CellResult]]) -> list[str]:
        """Return the notes, one line each, and what else is to be said of all results."""
        names = list(dict.fromkeys(result.cell.benchmark for _, result in cells))
        placed = [(source.column(result.cell.contender), result) for source, result in cells]
        return [*self._reasons(names), *_restarted(placed, names), *_not_emptied(placed)]

    def _reasons(self, benchmarks: Sequence[str]) -> Iterable[str]:
        for number, ((state, reason), cells) in enumerate(self.reasons.items(), 1):
            advice = self._advice(cells) if state is State.UNSUPPORTED else ""
            where = _where(cells, benchmarks)
            yield f"[{number}] {where}: {_NOTE_WORDS[state]}: {reason}{advice}"

    def _advice(self, cells: Sequence[tuple[str, Cell]]) -> str:
        """Return the words that leave out a row which no contender of the table can run."""
        names = {cell.benchmark for _, cell in cells}
        if len(names) > 1 or len({column for column, _ in cells}) < len(self.columns):
            return ""
        return f" (leave it out: -{names.pop()})"


def _where(cells: Sequence[tuple[str, Cell]], all_benchmarks: Sequence[str]) -> str:
    columns = ", ".join(dict.fromkeys(column for column, _ in cells))
    names = list(dict.fromkeys(cell.benchmark for _, cell in cells))
    if set(names) == set(all_benchmarks):
        return f"{columns}, every benchmark" if len(all_benchmarks) > 1 else columns
    return f"{columns}, {', '.join(names)}"


def _restarted(
    results: Sequence[tuple[str, CellResult]], all_benchmarks: Sequence[str]
) -> Iterable[str]:
    """Return a line that tells which figures were measured with servers newly started."""
    cells = [(column, result.cell) for column, result in results if result.servers_restarted]
    if cells:
        yield f"{_where(cells, all_benchmarks)}: servers restarted before each value"


def _not_emptied(results: Sequence[tuple[str, CellResult]]) -> Iterable[str]:
    """Return a line that tells which caches a cold read may have come from all the same."""
    cold = [(column, result) for column, result in results if result.uncleared_caches]
    if cold:
        names = ", ".join(dict.fromkeys(result.cell.benchmark for _, result in cold))
        left = dict.fromkeys(f"{column}: {result.uncleared_caches}" for column, result in cold)
        yield f"{names}: not emptied: {'; '.join(left)}"
