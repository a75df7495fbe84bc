"""The tables of figures, and the notes below them."""

from __future__ import annotations

import math
import shlex
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from zodbshootout.errors import UserError
from zodbshootout.model.grouping import grouped
from zodbshootout.model.outcome import State
from zodbshootout.model.quantities import Quantity, shown
from zodbshootout.model.titles import environment_of
from zodbshootout.model.wording import counted
from zodbshootout.reports.caches import cache_notes, caches_left
from zodbshootout.reports.cells import Cells, Group, ResultSet
from zodbshootout.reports.comparison import (
    NOT_SIGNIFICANT,
    comparison_report,
    comparisons_of_columns,
    exceptions,
    in_minutes,
    ratio_entry,
)
from zodbshootout.reports.csv_json import Records
from zodbshootout.reports.distance import measured_crossings, undelivered
from zodbshootout.reports.elements import MISSING, NO_FIGURE, Entry, Note, Report, Row, Style, Table
from zodbshootout.reports.footnotes import Footnotes
from zodbshootout.reports.headings import capitalized, caption_of, legend, pace_of, title_of
from zodbshootout.reports.operations import operation_notes
from zodbshootout.reports.over_time import trend_notes
from zodbshootout.reports.promises import promises
from zodbshootout.reports.releases import step_lines, with_releases
from zodbshootout.reports.replay_tables import replay_notes, replay_tables
from zodbshootout.reports.sentences import sentence, speed
from zodbshootout.results.cell import Cell
from zodbshootout.results.changes import Change
from zodbshootout.results.estimate import MIN_RUNS
from zodbshootout.results.figures import IMPRECISE, TILDE, compared
from zodbshootout.results.result import CellResult
from zodbshootout.results.sides import Comparison, rounds_needed

MAX_MINUTES = 600
"""The maximum number of additional minutes that a note suggests."""
SLOW_HOST = 1.2
"""A note names a host if its clients take at least this many times as long as the average."""
WARMING_UP = 1.2
"""If first values take at least this many times as long as later ones, a note says so."""
NOTEWORTHY_LOAD = 0.05
"""If other programs used at least this fraction of the processors' time, a note says so."""


def tables_with_comparisons(
    result_sets: Sequence[ResultSet],
    quantity: Quantity | None = None,
    baseline: str | None = None,
) -> Report:
    """Return the report that ``show`` prints: tables, then comparisons of variants with originals.

    :raises UserError: if no column has the title *baseline*
    """
    report = make_report(result_sets, quantity, baseline)
    if quantity is not None:
        return report
    parts = [
        comparison_report(columns)
        for columns in comparisons_of_columns(Cells.of(result_sets))
        if columns.is_variant and environment_of(columns.changes[0].new.cell.variant)
    ]
    return replace(report, parts=parts)


def make_report(
    result_sets: Sequence[ResultSet],
    quantity: Quantity | None = None,
    baseline: str | None = None,
    pending: str = State.NOT_RUN.value,
) -> Report:
    """Return a report with tables, notes and records; see :func:`tables_and_notes`.

    *pending* is the entry of cells that were not measured.
    """
    cells = Cells.of(result_sets)
    comparisons = [] if quantity else comparisons_of_columns(cells, baseline)
    report = tables_and_notes(cells, Footnotes.of(cells, pending), comparisons, quantity, baseline)
    return replace(report, records=Records(result_sets))


def tables_and_notes(
    cells: Cells,
    footnotes: Footnotes,
    comparisons: Sequence[Comparison],
    quantity: Quantity | None = None,
    baseline: str | None = None,
) -> Report:
    """Return a report with tables of a *quantity*, and the notes on them; see :func:`tables_of`.

    *comparisons* are those with *baseline*.

    :raises UserError: if no column has the title *baseline*
    """
    if baseline and baseline not in cells.columns:
        raise UserError(f"no contender {baseline!r}; there are {', '.join(cells.columns)}")
    tables = tables_of(cells, footnotes, quantity, comparisons)
    if quantity is None:
        tables += replay_tables(cells)
    legends = legend(result.cell for result in cells.results if _is_shown(result, quantity))
    conclusions = [*step_lines(cells), *measured_crossings(cells), *_verdicts(comparisons)]
    promised = list(map(Note, promises(cells)))
    remarks = [*legends, *_remarks(cells)]
    if quantity is None or quantity.watched:
        remarks += _imprecision(cells.files, quantity, baseline)
    notes = [
        *map(Note, conclusions),
        *promised,
        *footnotes.notes,
        *map(Note, remarks),
    ]
    if any(table.lacks_figures for table in tables):
        notes.append(NO_FIGURE)
    return Report(tables, notes, promises=promised)


def tables_of(
    cells: Cells,
    footnotes: Footnotes,
    quantity: Quantity | None = None,
    comparisons: Sequence[Comparison] = (),
) -> list[Table]:
    """Return tables of a *quantity* or, by default, of the figures of the cells.

    Figures that were compared have the ratios of *comparisons*.  The cells of a table have the same
    clients, the same kind of objects, and the same unit of work, such as transactions.  Tables made
    with the same *footnotes* give a note the same number.
    """
    changes = {
        (columns.new, change.new.cell, change.new.quantity): change
        for columns in comparisons
        for change in columns.changes
    }
    scale = _Scale(quantity, footnotes, changes)
    return [
        table if len(scale.quantities(group.results)) > 1 else with_releases(table, cells)
        for group in cells.groups
        if (table := _table(group, scale)).rows
    ]


@dataclass(frozen=True)
class _Scale:
    """The quantity, the footnotes and the comparisons from which entries are made."""

    quantity: Quantity | None
    """The quantity that the user named; ``None`` for the figures of each cell."""
    footnotes: Footnotes
    changes: Mapping[tuple[str, Cell, Quantity], Change]
    """The comparisons of cells, by column, cell and quantity."""

    def quantities(self, results: Iterable[CellResult]) -> Sequence[Quantity]:
        """Return the quantities of some results, each of which has a line of the table."""
        if self.quantity is not None:
            return [self.quantity]
        return max((shown(one.cell.parameters, one.facts) for one in results), key=len)

    def entry(self, quantity: Quantity, row: Mapping[str, CellResult], column: str) -> Entry:
        """Return the entry of a row in a column; *row* maps columns to results."""
        result = row.get(column)
        if result is None or quantity not in self.quantities([result]):
            return Entry()
        missing = self.footnotes.missing(column, result, quantity)
        if missing is not None:
            return missing
        note = self.footnotes.on(column, result)
        figure = result.figures[quantity]
        if figure is None:
            return replace(MISSING, note=note) if note else MISSING
        style = Style.NOTABLE if result.reason else Style.PLAIN
        if figure.is_imprecise:
            style = Style.DIM if style is Style.PLAIN else style
        within = "" if figure.half_width is None else f"±{figure.half_width:3.0%}"
        ratio = ratio_entry(self.changes.get((column, result.cell, quantity)))
        return Entry(figure.entry, figure.value, style, within, note, ratio)


def _is_shown(result: CellResult, quantity: Quantity | None) -> bool:
    """Return whether the table has more than a dash for a cell."""
    return not result.measured or quantity is None or result.figures[quantity] is not None


def _table(group: Group, scale: _Scale) -> Table:
    columns, rows = group.columns, []
    for title, row in group.rows.items():
        quantities = scale.quantities(row.values())
        several = len(quantities) > 1
        for number, quantity in enumerate(quantities):
            entries = [scale.entry(quantity, row, column) for column in columns]
            words = [f" {title}".strip() if not number else "", quantity.name if several else ""]
            long_title = ", ".join(filter(None, [title_of(next(iter(row.values()))), words[1]]))
            shown_title = " ".join(filter(None, words)) if not number else f"  {words[1]}"
            if not all(entry.is_missing for entry in entries):
                rows.append(Row(shown_title, entries, long_title))
    return Table(_caption(group, scale), columns, rows)


def _caption(group: Group, scale: _Scale) -> str:
    results = group.results
    quantities = scale.quantities(results)
    words = "latency"
    if len(quantities) == 1:
        words = caption_of(quantities[0], results, group.axis)
    if scale.quantity is None:
        words = f"{words} {pace_of(results[0].cell.parameters)}".rstrip()
    less = " (less is better)" if quantities[-1].better == "less" else ""
    return f"{capitalized(words)}{less}: {group.description}"


def _remarks(cells: Cells) -> Iterator[str]:
    """Yield lines about the circumstances of the measurements."""
    yield from caches_left(cells)
    yield from cache_notes(cells)
    yield from replay_notes(cells)
    yield from _warming_up(cells)
    yield from operation_notes(cells)
    yield from trend_notes(cells)
    yield from _slow_hosts(cells)
    yield from undelivered(cells)
    yield from _reconnections(cells)


def _reconnections(cells: Cells) -> Iterator[str]:
    """Yield a line for each contender whose connections were made again on the clock."""
    again = grouped(
        (column, (sum(numbers), result))
        for column, result in cells
        if not result.cell.parameters.during
        and (numbers := [run.get_metadata().get("reconnections", 0) for run in result.runs])
        and any(numbers)
    )
    for column, those in again.items():
        number = sum(count for count, _ in those)
        limit = str(those[0][1].metadata.get("idle_limit", ""))
        remedy = f" ({limit}); raise it for the user of the benchmark" if limit else ""
        listed_rows = ", ".join(dict.fromkeys(result.cell.benchmark for _, result in those))
        yield (
            f"{column}: at least {counted(number, 'connection')} closed while waiting for a turn, "
            f"so that figures include connecting again: {listed_rows}{remedy}"
        )


def _warming_up(cells: Cells) -> Iterator[str]:
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


def _slow_hosts(cells: Cells) -> Iterator[str]:
    """Yield a line for each host whose clients are slower than the mean of all clients."""
    slower = grouped(
        (slowest[1], (slowest[0], f"{column}, {result.cell.benchmark}"))
        for column, result in cells
        if (slowest := result.slowest_host) and slowest[0] >= SLOW_HOST
    )
    for host, factors in slower.items():
        listed = "; ".join(f"{place}: {times:.1f} times" for times, place in sorted(factors)[::-1])
        yield f"{host}: slower than the clients of all hosts together: {listed}"


def _imprecision(
    result_sets: Sequence[ResultSet], quantity: Quantity | None, baseline: str | None
) -> Iterator[str]:
    """Yield a line about imprecise figures, if there are any: their number, cause and remedy."""
    measured = [
        figure
        for results in result_sets
        for result in results.results
        for figure in compared(result, quantity)
    ]
    figures = [
        figure for figure in measured if figure.is_imprecise and not figure.result.gets_slower
    ]
    if not figures:
        return
    imprecise = [figure.result for figure in figures]
    precision = max(result.precision for result in imprecise) or IMPRECISE
    counts = f"{len(imprecise)} of {len(measured)}"
    clauses = [f"{TILDE} imprecise: {counts} figures (±{100 * precision:g}% wanted)"]
    few = sum(figure.half_width is None for figure in figures)
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
        (result.cell.row, result)
        for result in results.results
        if result.timed and not result.gets_slower
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


def _verdicts(comparisons: Sequence[Comparison]) -> Iterator[str]:
    for columns in comparisons:
        if not columns.is_release:
            yield from filter(None, map(sentence, columns.by_distance))
    changes = [change for columns in comparisons for change in columns.changes]
    yield from exceptions(changes)
    if any(change.ratio.is_known for change in changes):
        bases = dict.fromkeys(columns.base for columns in comparisons if not columns.is_variant)
        originals = any(columns.is_variant for columns in comparisons)
        references = [*bases, *(["its original, for a variant"] if originals else [])]
        at_distances = any(change.base.cell.parameters.rtt is not None for change in changes)
        where = " at the same round-trip time" if at_distances else ""
        yield (
            f"×: the {speed(changes)} as a multiple of that of {', or of '.join(references)}"
            f"{where}; {NOT_SIGNIFICANT}: not significant; ±: 95% confidence interval"
        )
