"""The table of figures: what was measured, in one unit, and the notes below it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from zodbshootout.client.outcome import State
from zodbshootout.reports.baseline import against_baseline
from zodbshootout.reports.comparison import in_words
from zodbshootout.reports.figures import OBJECTS, Metric
from zodbshootout.reports.headings import (
    Heading,
    description,
    extent,
    group_of,
    heading_of,
    row_of,
    title_of,
)
from zodbshootout.reports.records import Source, placed, records_of
from zodbshootout.reports.report import Entry, Report, Row, Style, Table
from zodbshootout.results.cell import Cell
from zodbshootout.results.comparison import overall
from zodbshootout.results.result import CellResult

UNSTABLE = 0.1
"""From such a part of a figure on, its interval is called unstable where no precision was asked."""
_MEANS = {"objects", "seconds"}
"""The units whose figures are means, of which an interval can be given."""
_STYLES = {State.FAILED: Style.BAD, State.UNSUPPORTED: Style.DIM, State.NOT_RUN: Style.DIM}
SLOW_HOST = 1.2
"""How many times as long as all clients those of a host take where that is told of."""
WARMING_UP = 1.2
"""How many times as long a run's first value takes where that is told of."""


class NoSuchContender(Exception):  # noqa: N818
    """Figures were to be relative to a contender that there is not; the message tells which."""


def make_report(
    sources: Sequence[Source],
    headings: Mapping[str, Heading],
    unit: Metric = OBJECTS,
    relative_to: str | None = None,
    baseline: str | None = None,
) -> Report:
    """Return the report of some results.

    There is a table for each crew, for each kind of objects, and for what the figures count.
    *headings* has the row of each benchmark.  With *relative_to*, a column's title, figures are
    multiples of that contender's.  A line for each contender says how it compares with that of the
    column *baseline*, the first one unless told otherwise.

    :raises NoSuchContender: when no column has that title
    """
    cells = placed(sources)
    columns = list(dict.fromkeys(column for column, _ in cells))
    for wanted in filter(None, (relative_to, baseline)):
        if wanted not in columns:
            raise NoSuchContender(f"no contender {wanted!r}; there are {', '.join(columns)}")
    notes = _Notes(columns)
    groups: dict[tuple[object, ...], list[tuple[str, CellResult]]] = {}
    for column, result in cells:
        heading = heading_of(headings, result)
        groups.setdefault(group_of(result, heading), []).append((column, result))
    scale = _Scale(unit, relative_to, notes)
    # A sweep begins with the ends of what it covers.
    ordered = sorted(groups.values(), key=lambda group: extent(group[0][1]))
    tables = [_table(group, headings, scale) for group in ordered]
    told = notes.lines(cells)
    if relative_to is None and unit.name in _MEANS:
        told += _precision([result for _, result in cells])
    if unit is OBJECTS:
        told += _against_baseline(sources, baseline)
    return Report(tables, told, list(records_of(sources)))


@dataclass(frozen=True)
class _Scale:
    """How figures are shown."""

    unit: Metric
    relative_to: str | None
    """The column of which figures are multiples, if they are."""
    notes: _Notes

    def entry(self, by_column: Mapping[str, CellResult], column: str) -> Entry:
        """Return what stands in a column of a row of which *by_column* has the cells."""
        result = by_column.get(column)
        if result is None:
            return Entry()
        note = self.notes.number(column, result) if result.reason else 0
        if not result.measured:
            return Entry(result.state.value, style=_STYLES[result.state], note=note)
        value = self._value(result)
        if value is not None and self.relative_to is not None:
            base = self._value(by_column.get(self.relative_to))
            value = value / base if base else None
        if value is None:
            return Entry("-", note=note)
        style = Style.NOTABLE if result.reason else Style.PLAIN
        if self.relative_to is not None:
            return Entry(f"{value:.2f}", value, style, note=note)
        return Entry(self.unit.text(result, value), value, style, self._within(result), note)

    def _within(self, result: CellResult) -> str:
        """Return how well the figure is known, where it is a mean."""
        if self.unit.name not in _MEANS:
            return ""
        half_width = result.half_width
        known = "" if half_width is None else f"±{half_width:3.0%}"
        return f"{known} {mark_of(result)}".strip()

    def _value(self, result: CellResult | None) -> float | None:
        return self.unit.value(result) if result is not None and result.measured else None


def _table(
    group: Sequence[tuple[str, CellResult]], headings: Mapping[str, Heading], scale: _Scale
) -> Table:
    columns = list(dict.fromkeys(column for column, _ in group))
    rows: dict[tuple[str, int], dict[str, CellResult]] = {}
    for column, result in group:
        rows.setdefault(row_of(result), {})[column] = result
    made = [
        Row(
            title_of(next(iter(by_column.values())), headings),
            [scale.entry(by_column, column) for column in columns],
        )
        for _, by_column in sorted(rows.items(), key=lambda row: row[0][1])
    ]
    return Table(_caption([result for _, result in group], headings, scale), columns, made)


def _caption(results: Sequence[CellResult], headings: Mapping[str, Heading], scale: _Scale) -> str:
    heading = heading_of(headings, results[0])
    better = scale.unit.better
    what = scale.unit.caption.format(counted=f"{heading.counted[0].upper()}{heading.counted[1:]}")
    if any(result.measured and result.unit == "byte" for result in results):
        what, better = "Memory of a worker", "less"
    if scale.relative_to is not None:
        what = f"{what}, relative to {scale.relative_to}"
    told = f"{what} ({better} is better)" if better else what
    return f"{told}: {description(results[0], heading)}"


@dataclass
class _Notes:
    """Reasons, numbered in the order in which they are first referred to."""

    columns: Sequence[str]
    """All that there are."""
    reasons: dict[tuple[State, str], list[tuple[str, Cell]]] = field(default_factory=dict)

    def number(self, column: str, result: CellResult) -> int:
        """Return the number of the reason of a result."""
        reason = result.reason
        if result.measured and result.state is not State.MEASURED:
            runs = f"{len(result.runs)} run{'' if len(result.runs) == 1 else 's'}"
            reason = f"{reason}; the figure is that of {runs} before that"
        key = (result.state, reason)
        self.reasons.setdefault(key, []).append((column, result.cell))
        return list(self.reasons).index(key) + 1

    def lines(self, results: Sequence[tuple[str, CellResult]]) -> list[str]:
        """Return the notes, one line each, and what else is to be said of all results."""
        names = list(dict.fromkeys(result.cell.benchmark for _, result in results))
        return [
            *self._reasons(names),
            *_restarted(results, names),
            *_not_emptied(results),
            *_warming_up(results),
            *_slow_hosts(results),
        ]

    def _reasons(self, benchmarks: Sequence[str]) -> Iterable[str]:
        for number, ((state, reason), cells) in enumerate(self.reasons.items(), 1):
            advice = self._advice(cells) if state is State.UNSUPPORTED else ""
            where = _where(cells, benchmarks)
            word = "" if state is State.MEASURED else f"{state.value}: "
            yield f"[{number}] {where}: {word}{reason}{advice}"

    def _advice(self, cells: Sequence[tuple[str, Cell]]) -> str:
        """Return the words that leave out a row which no contender of the table can run."""
        names = {cell.benchmark for _, cell in cells}
        if len(names) > 1 or len({column for column, _ in cells}) < len(self.columns):
            return ""
        return f" (leave it out: -{names.pop()})"


def _where(cells: Sequence[tuple[str, Cell]], all_benchmarks: Sequence[str]) -> str:
    """Return the columns of some cells with their benchmarks, those together that have the same."""
    benchmarks: dict[str, list[str]] = {}
    for column, cell in cells:
        if cell.benchmark not in benchmarks.setdefault(column, []):
            benchmarks[column].append(cell.benchmark)
    columns: dict[str, list[str]] = {}
    for column, names in benchmarks.items():
        columns.setdefault(_which(names, all_benchmarks), []).append(column)
    return "; ".join(f"{', '.join(each)}{which}" for which, each in columns.items())


def _which(names: Sequence[str], all_benchmarks: Sequence[str]) -> str:
    if set(names) == set(all_benchmarks):
        return ", every benchmark" if len(all_benchmarks) > 1 else ""
    return f", {', '.join(names)}"


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


def _warming_up(results: Sequence[tuple[str, CellResult]]) -> Iterable[str]:
    """Return a line for each contender whose Python becomes faster while it runs."""
    slower: dict[str, list[tuple[float, str]]] = {}
    for column, result in results:
        times = result.first_value
        if times is not None and times >= WARMING_UP:
            slower.setdefault(column, []).append((times, result.cell.benchmark))
    for column, cells in slower.items():
        told = ", ".join(f"{times:.1f} times in {name}" for times, name in sorted(cells)[::-1])
        yield (
            f"{column}: warming up: the first value of a run takes longer than the later ones: "
            f"{told}; -w leaves values out"
        )


def _slow_hosts(results: Sequence[tuple[str, CellResult]]) -> Iterable[str]:
    """Return a line for each host whose clients are slower than those of others."""
    found: dict[str, list[tuple[float, str]]] = {}
    for column, result in results:
        times, name = result.slowest_host or (0.0, "")
        if times >= SLOW_HOST:
            found.setdefault(name, []).append((times, f"{column}, {result.cell.benchmark}"))
    for name, cells in found.items():
        told = "; ".join(f"{where}: {times:.1f} times" for times, where in sorted(cells)[::-1])
        yield f"{name}: slower than the clients of all hosts together: {told}"


def _against_baseline(sources: Sequence[Source], baseline: str | None) -> Iterable[str]:
    """Return a line for each contender that says how fast it is beside the one of *baseline*."""
    for sides in against_baseline(sources, baseline):
        found = overall(sides.of_base, sides.of_new)
        if found is not None:
            ratio, cells = found
            of = f", the geometric mean of {cells} benchmarks" if cells > 1 else ""
            yield f"{sides.new}: {in_words(ratio)} times as fast as {sides.base}{of}"


def mark_of(result: CellResult) -> str:
    """Return the word for a figure that is not known well, and nothing for any other."""
    half_width = result.half_width
    if result.precision:
        return "missed" if half_width is None or half_width > result.precision else ""
    return "unstable" if half_width is not None and half_width >= UNSTABLE else ""


def _precision(results: Sequence[CellResult]) -> Iterable[str]:
    """Return the line that says what the figures after ± and the words beside them mean."""
    measured = [result for result in results if result.measured]
    known = [result for result in measured if result.half_width is not None]
    marks = set(map(mark_of, measured))
    missed = [result for result in measured if mark_of(result) == "missed"]
    asked = ", ".join(dict.fromkeys(f"{100 * each.precision:g} %" for each in missed))
    words = {
        "missed": f"missed: wider than the {asked} of --precision; --at-most gives it more time",
        "unstable": f"unstable: {UNSTABLE:.0%} or more",
    }
    explained = [words[mark] for mark in words if mark in marks]
    if known:
        explained.insert(0, "±: half of the 95 % confidence interval of the mean, over runs")
    if explained:
        yield "; ".join(explained)
    if len(known) < len(measured):
        yield "without ±: one run cannot tell how well a mean is known"
