"""The tables of figures, and the notes below them."""

from __future__ import annotations

import math
import shlex
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from zodbshootout.errors import UserError
from zodbshootout.model.grouping import grouped
from zodbshootout.model.outcome import State
from zodbshootout.model.specification import exactly
from zodbshootout.reports.caches import cache_notes, caches_left
from zodbshootout.reports.comparison import (
    NOT_SIGNIFICANT,
    ColumnComparison,
    comparison_report,
    comparisons_of_columns,
    exceptions,
    in_minutes,
    ratio_entry,
)
from zodbshootout.reports.csv_json import Records
from zodbshootout.reports.distance import measured_crossings, undelivered
from zodbshootout.reports.elements import DASH, Entry, Report, Row, Style, Table
from zodbshootout.reports.footnotes import NO_FIGURE, Footnotes
from zodbshootout.reports.headings import (
    Columned,
    Group,
    ResultSet,
    groups_of,
    in_columns,
    legend,
    rate_caption,
    title_of,
    with_measures,
    with_work,
)
from zodbshootout.reports.metrics import OBJECTS, TILDE, Metric
from zodbshootout.reports.operations import operation_notes
from zodbshootout.reports.over_time import NOTEWORTHY_LOAD, trend_notes
from zodbshootout.reports.promises import promises
from zodbshootout.reports.ratios import speed
from zodbshootout.reports.releases import Releases
from zodbshootout.reports.replay_tables import replay_notes, replay_tables
from zodbshootout.results.cell import Cell
from zodbshootout.results.estimate import MIN_RUNS
from zodbshootout.results.result import IMPRECISE, REACHED, WATCHED, CellResult
from zodbshootout.results.verdicts import Pair, rounds_needed

MAX_MINUTES = 600
"""The maximum number of additional minutes that a note suggests."""
VAGUE = 0.5
"""A figure has only two digits if half of its interval exceeds this fraction of the figure."""
_MEANS = {"objects", "seconds"}
"""The metrics whose figures are means, which have intervals."""
SLOW_HOST = 1.2
"""A note names a host if its clients take at least this many times as long as the average."""
WARMING_UP = 1.2
"""If first values take at least this many times as long as later ones, a note says so."""


def tables_with_comparisons(
    result_sets: Sequence[ResultSet],
    metric: Metric = OBJECTS,
    baseline: str | None = None,
) -> Report:
    """Return the report that ``show`` prints: tables, then comparisons of variants with originals.

    :raises UserError: if no column has the title *baseline*
    """
    report = make_report(result_sets, metric, baseline)
    if metric is not OBJECTS:
        return report
    parts = [
        comparison_report(columns)
        for columns in comparisons_of_columns(result_sets)
        if columns.is_variant and not columns.comparison.pairs[0].new.definitions
    ]
    return replace(report, parts=parts)


def make_report(
    result_sets: Sequence[ResultSet],
    metric: Metric = OBJECTS,
    baseline: str | None = None,
    pending: str = State.NOT_RUN.value,
) -> Report:
    """Return a report with tables, notes and records; see :func:`tables_and_notes`.

    *pending* is the entry of cells that were not measured.
    """
    footnotes = Footnotes.of(in_columns(result_sets), pending)
    report = tables_and_notes(result_sets, footnotes, metric, baseline)
    return replace(report, records=Records(result_sets))


def tables_and_notes(
    result_sets: Sequence[ResultSet],
    footnotes: Footnotes,
    metric: Metric = OBJECTS,
    baseline: str | None = None,
) -> Report:
    """Return a report with tables and notes.

    The cells of a table have the same clients, the same kind of objects, and the same unit of work,
    such as transactions.  Figures of the metric :data:`OBJECTS` show their ratio to the column
    *baseline*, by default the first.  Reports made with the same *footnotes* give a note the same
    number.

    :raises UserError: if no column has the title *baseline*
    """
    cells = in_columns(result_sets)
    columns = list(dict.fromkeys(column for column, _ in cells))
    check_columns(columns, baseline)
    is_main = metric is OBJECTS
    comparisons = comparisons_of_columns(result_sets, baseline) if is_main else []
    pairs = {
        (columns.new, pair.new.cell, pair.new.measure): pair
        for columns in comparisons
        for pair in columns.comparison.pairs
    }
    scale = _Scale(metric, footnotes, pairs)
    groups = groups_of(with_measures(cells) if is_main else cells)
    tables = [table for group in groups if (table := _table(group, scale)).rows]
    rows = {row.title.partition(" ")[0] for table in tables for row in table.rows}
    legends = legend(result.cell for _, result in cells if result.cell.benchmark in rows)
    releases = Releases.of(result_sets)
    tables = list(map(releases.rows_of, tables))
    if is_main:
        tables += replay_tables(cells)
    notes = [
        *releases.lines(),
        *measured_crossings(cells),
        *_verdicts(comparisons),
        *promises(cells),
        *footnotes.lines(),
        *legends,
        *_remarks(cells),
    ]
    if metric.name in _MEANS:
        notes += _imprecision(result_sets, baseline)
    if any(table.has_dashes for table in tables):
        notes.append(NO_FIGURE)
    return Report(tables, notes)


def check_columns(columns: Sequence[str], *titles: str | None) -> None:
    """Check that each title that the user gave is the title of a column.

    :raises UserError: if a title is not that of a column
    """
    for title in filter(None, titles):
        if title not in columns:
            raise UserError(f"no contender {title!r}; there are {', '.join(columns)}")


@dataclass(frozen=True)
class _Scale:
    """The metric, the footnotes and the comparisons from which entries are made."""

    metric: Metric
    footnotes: Footnotes
    pairs: Mapping[tuple[str, Cell, str], Pair]
    """The comparisons of cells, by column, cell and measure."""

    def entry(self, row: Mapping[str, CellResult], column: str) -> Entry:
        """Return the entry of a row in a column; *row* maps columns to results."""
        result = row.get(column)
        if result is None:
            return Entry()
        missing = self.footnotes.missing(column, result)
        if missing is not None:
            return missing
        note = self.footnotes.number(column, result)
        value = self.metric.value(result)
        if value is None:
            return Entry(DASH, note=note)
        style = Style.NOTABLE if result.reason else Style.PLAIN
        text = self.metric.text(result, value)
        if self.metric.name not in _MEANS:
            return Entry(text, value, style, note=note)
        if result.is_imprecise:
            style = Style.DIM if style is Style.PLAIN else style
            digits = 3 if (result.half_width or 1.0) <= VAGUE else 2
            text = f"{TILDE}{self.metric.text(result, float(f'{value:.{digits}g}'))}"
        within = "" if result.half_width is None else f"±{result.half_width:3.0%}"
        ratio = ratio_entry(self.pairs.get((column, result.cell, result.measure)))
        return Entry(text, value, style, within, note, ratio)


def _table(group: Group, scale: _Scale) -> Table:
    columns, rows = group.columns, []
    for title, row in group.rows.items():
        first = next(iter(row.values()))
        # A cell at a rate may have several rows; only the first row has the full title.
        shown = title if first.measure in {"", REACHED} else f"  {first.measure}"
        entries = [scale.entry(row, column) for column in columns]
        if any(entry.text != DASH for entry in entries):
            rows.append(Row(shown, entries, title_of(first)))
    return Table(_caption(group, scale), columns, rows)


def _caption(group: Group, scale: _Scale) -> str:
    better, figures, results = scale.metric.better, scale.metric.caption, group.results
    if better == "less":
        figures = with_work(figures, results, group.axis)
    parameters = results[0].cell.parameters
    if any(result.measured and result.unit == "byte" for result in results):
        figures, better = "Memory of a worker", "less"
    elif scale.metric is OBJECTS and parameters.rate:
        figures, better = "Latency at a given rate", "less"
    elif scale.metric is OBJECTS and (speed := parameters.workload.speed):
        figures, better = f"Mean latency at {exactly(speed)} times the recorded speed", "less"
    elif scale.metric is OBJECTS:
        rate = rate_caption(results[0])
        figures = f"{rate[0].upper()}{rate[1:]}"
    if better == "less":
        figures = f"{figures} (less is better)"
    return f"{figures}: {group.description}"


def _remarks(cells: Sequence[Columned]) -> Iterator[str]:
    """Yield lines about the circumstances of the measurements."""
    yield from caches_left(cells)
    yield from cache_notes(cells)
    yield from replay_notes(cells)
    yield from _warming_up(cells)
    yield from operation_notes(cells)
    yield from trend_notes(cells)
    yield from _slow_hosts(cells)
    yield from undelivered(cells)


def _warming_up(cells: Sequence[Columned]) -> Iterator[str]:
    """Yield a line for each contender whose Python becomes faster while it runs."""
    slower = grouped(
        (column, (times, result.cell.benchmark))
        for column, result in cells
        if (times := result.first_value or 0.0) >= WARMING_UP
    )
    for column, factors in slower.items():
        listed = ", ".join(f"{times:.1f} times in {name}" for times, name in sorted(factors)[::-1])
        yield (
            f"{column}: warming up: the first value of a run takes longer than the later ones: "
            f"{listed}; -w leaves values out"
        )


def _slow_hosts(cells: Sequence[Columned]) -> Iterator[str]:
    """Yield a line for each host whose clients are slower than the mean of all clients."""
    slower = grouped(
        (slowest[1], (slowest[0], f"{column}, {result.cell.benchmark}"))
        for column, result in cells
        if (slowest := result.slowest_host) and slowest[0] >= SLOW_HOST
    )
    for host, factors in slower.items():
        listed = "; ".join(f"{place}: {times:.1f} times" for times, place in sorted(factors)[::-1])
        yield f"{host}: slower than the clients of all hosts together: {listed}"


def _imprecision(result_sets: Sequence[ResultSet], baseline: str | None) -> Iterator[str]:
    """Yield a line about imprecise figures, if there are any: their number, cause and remedy."""
    measured = [
        result
        for results in result_sets
        for _, result in with_measures(("", result) for result in results.results)
        if result.measured and result.measure in {"", *WATCHED}
    ]
    imprecise = [result for result in measured if result.is_imprecise and not result.trend]
    if not imprecise:
        return
    precision = max(result.precision for result in imprecise) or IMPRECISE
    counts = f"{len(imprecise)} of {len(measured)}"
    clauses = [f"{TILDE} imprecise: {counts} figures (±{100 * precision:g}% wanted)"]
    few = sum(result.half_width is None for result in imprecise)
    if few:
        number = "all" if few == len(imprecise) else str(few)
        clauses.append(
            f"{number} with fewer than {MIN_RUNS} runs, too few for an interval or a ratio"
        )
    clauses += other_load(imprecise)
    if len(result_sets) == 1:
        clauses += _remedy(result_sets[0], baseline, precision)
    yield "; ".join(clauses)


def other_load(results: Sequence[CellResult]) -> Iterator[str]:
    """Yield clauses about other programs and virtual machines that took much processor time."""
    metadata = [one for result in results for one in result.facts]
    for key, users in {"other_load": "programs", "steal": "virtual machines"}.items():
        parts = [keys[key] for keys in metadata if key in keys]
        part = statistics.fmean(parts) if parts else 0.0
        if part >= NOTEWORTHY_LOAD:
            yield f"other {users} used {part:.0%} of the processors"


def _remedy(results: ResultSet, baseline: str | None, precision: float) -> Iterator[str]:
    """Yield a clause: the minutes that would make all figures precise, and the options to type."""
    rows = grouped(
        ((result.cell.benchmark, result.cell.parameters), result)
        for result in results.results
        if result.timed and not result.trend
    )
    seconds, runs = 0.0, 0
    for row in rows.values():
        made = min(len(result.runs) for result in row)
        missing = rounds_needed(row, baseline, precision) - made
        seconds += missing * max(result.run_seconds for result in row)
        runs = max(runs, missing)
    minutes = math.ceil(seconds / 60)
    if minutes > MAX_MINUTES:
        yield f"it would take more than {MAX_MINUTES // 60} hours: a quieter machine is needed"
    elif minutes:
        effort = (
            f"--at-most {minutes}"
            if any(result.precision for result in results.results)
            else f"-p {runs}"
        )
        how = (
            f": repeat the command with --append {shlex.quote(str(results.path))} {effort}"
            if results.path
            else ""
        )
        yield f"{in_minutes(minutes)}{how}"


def _verdicts(comparisons: Sequence[ColumnComparison]) -> Iterator[str]:
    for columns in comparisons:
        if not columns.is_release:
            yield from filter(None, (there.sentence for there in columns.by_distance))
    pairs = [pair for columns in comparisons for pair in columns.comparison.pairs]
    yield from exceptions(pairs)
    if any(pair.speed.is_known for pair in pairs):
        bases = dict.fromkeys(columns.base for columns in comparisons if not columns.is_variant)
        originals = any(columns.is_variant for columns in comparisons)
        references = [*bases, *(["its original, for a variant"] if originals else [])]
        at_distances = any(pair.base.cell.parameters.rtt is not None for pair in pairs)
        where = " at the same round-trip time" if at_distances else ""
        yield (
            f"×: the {speed(pairs)} as a multiple of that of {', or of '.join(references)}{where}; "
            f"{NOT_SIGNIFICANT}: not significant; ±: 95% confidence interval"
        )
