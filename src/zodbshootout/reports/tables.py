"""The tables of figures, and the notes below them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from zodbshootout.client.outcome import State
from zodbshootout.errors import UserError
from zodbshootout.reports.comparison import column_report, columns_to_compare, in_words
from zodbshootout.reports.headings import (
    Columned,
    ResultSet,
    counted,
    description,
    extent,
    group_of,
    in_columns,
    row_of,
    title_of,
)
from zodbshootout.reports.metrics import OBJECTS, Metric
from zodbshootout.reports.records import records_of
from zodbshootout.reports.report import Entry, Report, Row, Style, Table
from zodbshootout.results.cell import Cell
from zodbshootout.results.comparison import overall
from zodbshootout.results.result import CellResult

UNSTABLE = 0.1
"""The least half width, as a fraction of the mean, of a figure that is called unstable if no
precision was asked for."""
_MEANS = {"objects", "seconds"}
"""The metrics whose figures are means, which have an interval."""
_STYLES = {State.FAILED: Style.BAD, State.UNSUPPORTED: Style.DIM, State.NOT_RUN: Style.DIM}
SLOW_HOST = 1.2
"""The least ratio of a host's time to that of all clients for a note about the host."""
WARMING_UP = 1.2
"""The least ratio of a run's first value to the later ones for a note about warming up."""


def tables_with_comparisons(
    result_sets: Sequence[ResultSet],
    metric: Metric = OBJECTS,
    relative_to: str | None = None,
    baseline: str | None = None,
) -> Report:
    """Return the report that a run prints: tables, then variants compared with their originals.

    :raises UserError: if no column has the title *relative_to* or *baseline*
    """
    report = make_report(result_sets, metric, relative_to, baseline)
    if metric is not OBJECTS:
        return report
    variants = {
        results.column(result.cell.contender)
        for results in result_sets
        for result in results.results
        if result.variant_of
    }
    comparisons = [
        column_report(base, new)
        for base, new in columns_to_compare(result_sets)
        if new.title in variants
    ]
    return replace(report, parts=[replace(part, title="") for part in comparisons if part])


def make_report(
    result_sets: Sequence[ResultSet],
    metric: Metric = OBJECTS,
    relative_to: str | None = None,
    baseline: str | None = None,
) -> Report:
    """Return the tables of results, and notes.

    There is a table for each crew, each kind of objects, and each kind of things that are counted.
    Figures are multiples of those in the column *relative_to*, if it is given.  A note for each
    contender compares it with the column *baseline*, by default with the first.

    :raises UserError: if no column has the title *relative_to* or *baseline*
    """
    cells = in_columns(result_sets)
    columns = list(dict.fromkeys(column for column, _ in cells))
    check_columns(columns, relative_to, baseline)
    footnotes = _Footnotes(columns)
    groups: dict[tuple[object, ...], list[Columned]] = {}
    for column, result in cells:
        groups.setdefault(group_of(result), []).append((column, result))
    scale = _Scale(metric, relative_to, footnotes)
    # A sweep begins with its smallest crews and objects.
    ordered = sorted(groups.values(), key=lambda group: extent(group[0][1]))
    tables = [_table(group, scale) for group in ordered]
    notes = [*footnotes.lines(cells), *_remarks(cells)]
    if relative_to is None and metric.name in _MEANS:
        notes += _precision([result for _, result in cells])
    if metric is OBJECTS:
        notes += _against_baseline(result_sets, baseline)
    return Report(tables, notes, list(records_of(result_sets)))


def check_columns(columns: Sequence[str], *titles: str | None) -> None:
    """Check that there is a column with each of the titles that the user has named.

    :raises UserError: if there is none
    """
    for title in filter(None, titles):
        if title not in columns:
            raise UserError(f"no contender {title!r}; there are {', '.join(columns)}")


@dataclass(frozen=True)
class _Scale:
    """How figures are shown."""

    metric: Metric
    relative_to: str | None
    """The column of which figures are multiples, if there is one."""
    footnotes: _Footnotes

    def entry(self, row: Mapping[str, CellResult], column: str) -> Entry:
        """Return the entry in a column of a row, whose results are given by column."""
        result = row.get(column)
        if result is None:
            return Entry()
        note = self.footnotes.number(column, result) if result.reason else 0
        if not result.measured:
            return Entry(result.state.value, style=_STYLES[result.state], note=note)
        value = self._value(result)
        if value is not None and self.relative_to is not None:
            base = self._value(row.get(self.relative_to))
            value = value / base if base else None
        if value is None:
            return Entry("-", note=note)
        style = Style.NOTABLE if result.reason else Style.PLAIN
        if self.relative_to is not None:
            return Entry(f"{value:.2f}", value, style, note=note)
        text = self.metric.text(result, value)
        if self.metric.name not in _MEANS:
            return Entry(text, value, style, note=note)
        half_width = result.half_width
        precision = "" if half_width is None else f"±{half_width:3.0%}"
        return Entry(text, value, style, precision, mark_of(result), note)

    def _value(self, result: CellResult | None) -> float | None:
        return self.metric.value(result) if result is not None and result.measured else None


def _table(group: Sequence[Columned], scale: _Scale) -> Table:
    columns = list(dict.fromkeys(column for column, _ in group))
    results: dict[tuple[str, int], dict[str, CellResult]] = {}
    for column, result in group:
        results.setdefault(row_of(result), {})[column] = result
    rows = [
        Row(
            title_of(next(iter(row.values()))),
            [scale.entry(row, column) for column in columns],
        )
        for _, row in sorted(results.items(), key=lambda item: item[0][1])
    ]
    return Table(_caption([result for _, result in group], scale), columns, rows)


def _caption(results: Sequence[CellResult], scale: _Scale) -> str:
    noun = counted(results[0])
    better = scale.metric.better
    figures = scale.metric.caption.format(counted=f"{noun[0].upper()}{noun[1:]}")
    if any(result.measured and result.unit == "byte" for result in results):
        figures, better = "Memory of a worker", "less"
    if scale.relative_to is not None:
        figures = f"{figures}, relative to {scale.relative_to}"
    if better:
        figures = f"{figures} ({better} is better)"
    return f"{figures}: {description(results[0])}"


@dataclass
class _Footnotes:
    """The reasons of failures and warnings, numbered by their first reference."""

    columns: Sequence[str]
    """All columns of the report."""
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

    def lines(self, cells: Sequence[Columned]) -> Iterator[str]:
        """Return a line for each reason; *cells* are all of the report."""
        benchmarks = _benchmarks(cells)
        for number, ((state, reason), refused) in enumerate(self.reasons.items(), 1):
            advice = self._advice(refused) if state is State.UNSUPPORTED else ""
            places = _places(refused, benchmarks)
            word = "" if state is State.MEASURED else f"{state.value}: "
            yield f"[{number}] {places}: {word}{reason}{advice}"

    def _advice(self, cells: Sequence[tuple[str, Cell]]) -> str:
        """Return the option that leaves out a row which no contender of the table can run."""
        names = {cell.benchmark for _, cell in cells}
        if len(names) > 1 or len({column for column, _ in cells}) < len(self.columns):
            return ""
        return f" (leave it out: -{names.pop()})"


def _benchmarks(cells: Sequence[Columned]) -> list[str]:
    return list(dict.fromkeys(result.cell.benchmark for _, result in cells))


def _places(cells: Sequence[tuple[str, Cell]], all_benchmarks: Sequence[str]) -> str:
    """Return the columns and benchmarks of cells; columns with the same benchmarks are joined."""
    benchmarks: dict[str, list[str]] = {}
    for column, cell in cells:
        if cell.benchmark not in benchmarks.setdefault(column, []):
            benchmarks[column].append(cell.benchmark)
    columns: dict[str, list[str]] = {}
    for column, names in benchmarks.items():
        columns.setdefault(_listed(names, all_benchmarks), []).append(column)
    return "; ".join(f"{', '.join(titles)}{listed}" for listed, titles in columns.items())


def _listed(names: Sequence[str], all_benchmarks: Sequence[str]) -> str:
    if set(names) == set(all_benchmarks):
        return ", every benchmark" if len(all_benchmarks) > 1 else ""
    return f", {', '.join(names)}"


def _remarks(cells: Sequence[Columned]) -> Iterator[str]:
    """Return lines about the circumstances of the measurements."""
    restarted = [(column, result.cell) for column, result in cells if result.servers_restarted]
    if restarted:
        places = _places(restarted, _benchmarks(cells))
        yield f"{places}: servers restarted before each value"
    uncleared = [(column, result) for column, result in cells if result.uncleared_caches]
    if uncleared:
        caches = dict.fromkeys(
            f"{column}: {result.uncleared_caches}" for column, result in uncleared
        )
        yield f"{', '.join(_benchmarks(uncleared))}: not emptied: {'; '.join(caches)}"
    yield from _warming_up(cells)
    yield from _slow_hosts(cells)


def _warming_up(cells: Sequence[Columned]) -> Iterator[str]:
    """Return a line for each contender whose Python becomes faster while it runs."""
    slower: dict[str, list[tuple[float, str]]] = {}
    for column, result in cells:
        times = result.first_value
        if times is not None and times >= WARMING_UP:
            slower.setdefault(column, []).append((times, result.cell.benchmark))
    for column, factors in slower.items():
        listed = ", ".join(f"{times:.1f} times in {name}" for times, name in sorted(factors)[::-1])
        yield (
            f"{column}: warming up: the first value of a run takes longer than the later ones: "
            f"{listed}; -w leaves values out"
        )


def _slow_hosts(cells: Sequence[Columned]) -> Iterator[str]:
    """Return a line for each host whose clients are slower than those of the others."""
    slower: dict[str, list[tuple[float, str]]] = {}
    for column, result in cells:
        times, host = result.slowest_host or (0.0, "")
        if times >= SLOW_HOST:
            slower.setdefault(host, []).append((times, f"{column}, {result.cell.benchmark}"))
    for host, factors in slower.items():
        listed = "; ".join(f"{place}: {times:.1f} times" for times, place in sorted(factors)[::-1])
        yield f"{host}: slower than the clients of all hosts together: {listed}"


def _against_baseline(result_sets: Sequence[ResultSet], baseline: str | None) -> Iterable[str]:
    """Return a line for each comparison of two columns."""
    for base, new in columns_to_compare(result_sets, baseline):
        mean = overall(base.results, new.results)
        if mean is not None:
            ratio, cells = mean
            of = f", the geometric mean of {cells} benchmarks" if cells > 1 else ""
            yield f"{new.title}: {in_words(ratio)} times as fast as {base.title}{of}"


def mark_of(result: CellResult) -> str:
    """Return the word for a figure that is not known well, and an empty one for any other."""
    half_width = result.half_width
    if result.precision:
        return "missed" if half_width is None or half_width > result.precision else ""
    return "unstable" if half_width is not None and half_width >= UNSTABLE else ""


def _precision(results: Sequence[CellResult]) -> Iterable[str]:
    """Return lines that explain the sign ± and the marks."""
    measured = [result for result in results if result.measured]
    known = [result for result in measured if result.half_width is not None]
    marks = set(map(mark_of, measured))
    missed = [result for result in measured if mark_of(result) == "missed"]
    asked = ", ".join(dict.fromkeys(f"{100 * result.precision:g} %" for result in missed))
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
