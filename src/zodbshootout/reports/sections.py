"""A whole report: tables, comparisons, charts, and the circumstances of the measurements."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import itemgetter
from typing import Any

from zodbshootout.model.grouping import grouped
from zodbshootout.model.quantities import Combine, Shown, quantities, shown
from zodbshootout.model.specification import Parameters
from zodbshootout.model.wording import listed
from zodbshootout.reports.cells import Cells, ResultSet
from zodbshootout.reports.charts import QuantityCharts, distributions, over_values
from zodbshootout.reports.comparison import (
    comparison_report,
    comparisons_of_columns,
    ratio_entry,
)
from zodbshootout.reports.costs import costs_section
from zodbshootout.reports.csv_json import Records
from zodbshootout.reports.distance import distance_section, measured_crossings
from zodbshootout.reports.elements import DASH, MISSING, Entry, Listing, Note, Report, Row, Table
from zodbshootout.reports.footnotes import Footnotes
from zodbshootout.reports.headings import description, figure_titles
from zodbshootout.reports.over_time import over_time_charts, over_time_report
from zodbshootout.reports.releases import largest_steps, releases_section, title_over_releases
from zodbshootout.reports.replay_tables import step_charts
from zodbshootout.reports.sentences import sentence, speed
from zodbshootout.reports.tables import other_load, tables_and_notes, tables_of
from zodbshootout.results.cell import Cell
from zodbshootout.results.changes import mean_ratio
from zodbshootout.results.result import CellResult
from zodbshootout.results.sides import Comparison

MAX_VERDICTS = 3
"""The maximum number of verdicts at the top of a report; the table of ratios has them all."""
MOST_COLUMNS = 12
"""The number of columns up to which a page draws all of them, and compares with each of them: its
size and time would grow with the square of their number."""
BOUNDED = Note(
    f"more than {MOST_COLUMNS} contenders: charts show the first {MOST_COLUMNS}, comparisons have "
    "one baseline, which --baseline sets"
)
"""The note on a page with more columns."""
INTERVALS = Note("lines on bars and bands around curves: 95 % confidence intervals")
"""The note on charts that show intervals."""
_MACHINE = {
    "date": "date",
    "hostname": "host",
    "cpu_model_name": "processor",
    "cpu_count": "CPUs",
    "platform": "platform",
    "python_version": "Python",
    "python_implementation": "implementation of Python",
    "version_zodbshootout": "zodbshootout",
    "label": "label",
}
"""The titles of rows about a run, by metadata key."""
_CONTENDER = {
    "storage_classes": "storage",
    "driver": "driver",
    "environment": "environment",
    "sharing": "can be opened by",
    "durability": "commits",
    "durability_detail": "by its settings",
    "server_place": "server",
    "corrections": "workarounds",
    "configuration_hash": "hash of the configuration",
}
"""The titles of rows about a contender, by metadata key; rows of versions follow these."""


def whole_report(result_sets: Sequence[ResultSet], baseline: str | None = None) -> Report:
    """Return the whole report.

    The columns are compared with the column *baseline*, by default the first.

    :raises UserError: if no column has the title *baseline*
    """
    cells = Cells.of(result_sets)
    footnotes = Footnotes.of(cells)
    main = _compared(cells, baseline, footnotes)
    columns = list(dict.fromkeys(column for column, _ in cells.timed))
    drawn, views = cells, []
    if len(columns) > MOST_COLUMNS:
        first = columns[:MOST_COLUMNS]
        drawn = cells.only(lambda result: result.cell.column in first)
        main = replace(main, notes=[*main.notes, BOUNDED])
    elif main.matrix:
        views = list(_alternatives(cells, columns, main, footnotes))
    faster, *others = (Report(parts=one.parts, baseline=one.baseline) for one in [main, *views])
    latencies, events = (
        _tables(cells, where, footnotes) for where in (Shown.LATENCY, Shown.EVENTS)
    )
    on_top: dict[str, Any] = {"rank": -1, "folded": False}
    sections = [
        replace(releases_section(cells), anchor="over-releases", **on_top),
        replace(costs_section(cells), anchor="costs", **on_top),
        replace(distance_section(drawn), anchor="at-a-distance", **on_top),
        replace(_by_benchmark(drawn), anchor="by-benchmark", folded=False),
        replace(faster, title="Which is faster", anchor="which-is-faster", alternatives=others),
        Report(latencies, title="Latency", anchor="latency"),
        replace(over_time_report(result_sets), anchor="over-time", records=[], notes=[]),
        Report(events, title="Conflicts, retries and caches", anchor="events"),
        replace(_contenders(cells), anchor="contenders"),
        replace(_runs(result_sets), anchor="machine-and-command"),
    ]
    titles = list(dict.fromkeys(title_over_releases(cells, column) for column in cells.columns))
    return replace(
        main,
        title=_title(result_sets, titles),
        records=Records(result_sets),
        facts=list(_facts_of_run(cells)),
        parts=Report(parts=sections).without_charts,
        alternatives=views,
    )


def _compared(cells: Cells, baseline: str | None, footnotes: Footnotes) -> Report:
    """Return a report of all that depends on the baseline; its parts are the comparisons."""
    comparisons = comparisons_of_columns(cells, baseline)
    return replace(
        tables_and_notes(cells, footnotes, comparisons, baseline=baseline),
        verdicts=_verdicts(comparisons, [*largest_steps(cells), *measured_crossings(cells)]),
        matrix=_matrix(comparisons, cells, footnotes),
        parts=[
            comparison_report(columns, f"{columns.new} and {columns.base}", verbose=True)
            for columns in comparisons
        ],
        baseline=", ".join(dict.fromkeys(columns.base for columns in comparisons)),
    )


def _alternatives(
    cells: Cells, columns: Sequence[str], main: Report, footnotes: Footnotes
) -> Iterator[Report]:
    """Yield a report for every column that could be the baseline instead."""
    for name in columns:
        if name != main.baseline and (report := _compared(cells, name, footnotes)).matrix:
            yield report


def _by_benchmark(cells: Cells) -> Report:
    """Return the charts of each benchmark: its throughput, then its latencies."""
    parts = []
    for benchmark in cells.timed.benchmarks:
        own = cells.timed.of_benchmark(benchmark)
        rates = dict.fromkeys(
            one
            for result in own.results
            for one in shown(result.cell.parameters, result.facts)
            if one.combine is Combine.PER_SECOND
        )
        of_rates = [QuantityCharts(own, one) for one in rates]
        curves = [chart for charts in of_rates for chart in charts.curves()]
        bars = [chart for charts in of_rates for chart in charts.bars()]
        percentiles = [
            replace(chart, percentile=quantity.name)
            for quantity in quantities(Shown.LATENCY)
            for chart in QuantityCharts(own, quantity).curves()
        ]
        latencies = [*percentiles, *distributions(own)]
        values, trends = over_values(cells, benchmark), over_time_charts(own)
        charts = [*curves, *values, *bars, *trends, *step_charts(own), *latencies]
        parts.append(Report(title=benchmark, anchor=_anchor_of(benchmark), charts=charts))
    points = (point for part in parts for chart in part.charts for point in chart.points)
    has_intervals = any(point.low is not None for point in points)
    return Report(notes=[INTERVALS] if has_intervals else [], parts=parts, title="By benchmark")


def _anchor_of(benchmark: str) -> str:
    """Return the anchor of the part with a benchmark's charts."""
    return f"part-{benchmark}"


def _title(result_sets: Sequence[ResultSet], columns: Sequence[str]) -> str:
    """Return the labels of the runs.

    Without labels, list the files or, if there is only one file, the *columns*.
    """
    labels = [str(_first_metadata(results).get("label", "")) for results in result_sets]
    named = " and ".join(dict.fromkeys(filter(None, labels)))
    if named or not columns:
        return named or "zodbshootout"
    if len(result_sets) > 1:
        return " and ".join(results.name for results in result_sets)
    return listed(columns)


def _facts_of_run(cells: Cells) -> Iterator[str]:
    """Return what was measured, where, when and with which versions."""
    names = " and ".join(file.name for file in cells.files if file.name)
    metadata = list(map(_first_metadata, cells.files))
    results = cells.timed.results
    kinds = dict.fromkeys(description(result) for result in results)
    yield f"{', '.join(cells.timed.benchmarks)}: {'; '.join(kinds)}"
    yield "; ".join(dict.fromkeys(filter(None, map(_where_and_when, metadata))))
    versions = {
        f"{name} {version}" for result in results for name, version in result.versions.items()
    }
    pythons = {f"Python {keys['python_version']}" for keys in metadata if "python_version" in keys}
    yield ", ".join([*sorted(pythons), *sorted(versions)])
    yield "; ".join(filter(None, [names and f"from {names}", *other_load(results)]))


def _where_and_when(metadata: Mapping[str, Any]) -> str:
    keys = ("hostname", "cpu_model_name", "cpu_count", "date")
    words = {key: str(metadata[key]) for key in keys if key in metadata}
    if "cpu_count" in words:
        words["cpu_count"] += " CPUs"
    if "date" in words:
        words["date"] = str(datetime.fromisoformat(words["date"]).replace(microsecond=0))
    return ", ".join(words.values())


def _verdicts(comparisons: Sequence[Comparison], first: Sequence[str]) -> list[Note]:
    """Return at most three conclusions: *first*, then one on each mean ratio.

    If there are more than three mean ratios, there is one on the greatest and one on the least.
    """
    known = [
        (mean.value, sentence(there))
        for columns in comparisons
        for there in (() if columns.is_release else columns.by_distance)
        if (mean := mean_ratio(there.changes)) is not None
    ]
    if len(known) > MAX_VERDICTS:
        known.sort(key=itemgetter(0), reverse=True)
        known = [known[0], known[-1]]
    return list(map(Note, [*first, *(words for _, words in known)][:MAX_VERDICTS]))


def _matrix(comparisons: Sequence[Comparison], cells: Cells, footnotes: Footnotes) -> Table | None:
    """Return the table of all ratios, ``None`` if nothing was compared."""
    by_row = grouped(
        (
            (change.base.cell.benchmark, change.base.cell.parameters, change.base.quantity),
            (one.new, change),
        )
        for one in comparisons
        for change in one.changes
    )
    rows = list(map(dict, by_row.values()))
    if not rows:
        return None
    results = {
        (column, result.cell.benchmark, result.cell.parameters): result for column, result in cells
    }
    sides = {columns.new: columns.base for columns in comparisons}
    bases = ", ".join(dict.fromkeys(sides.values()))
    firsts = [next(iter(row.values())).base for row in rows]
    titles = figure_titles(firsts)
    several = Counter(titles)
    lines = []
    for title, first, row in zip(titles, firsts, rows, strict=True):
        title = title if several[title] == 1 else f"{title}, {description(first.result)}"  # noqa: PLW2901
        entries = [
            ratio_entry(row.get(name)) or _no_ratio(first.cell, (name, base), results, footnotes)
            for name, base in sides.items()
        ]
        lines.append(Row(title, entries, anchor=_anchor_of(first.cell.benchmark)))
    compared = speed(change for columns in comparisons for change in columns.changes)
    where = "" if firsts[0].cell.parameters.rtt is None else " at the same round-trip time"
    caption = f"{compared.capitalize()} as a multiple of that of {bases}{where}"
    return Table(caption, list(sides), lines)


def _no_ratio(
    first: Cell,
    columns: tuple[str, str],
    results: Mapping[tuple[str, str, Parameters], CellResult],
    footnotes: Footnotes,
) -> Entry:
    """Return the entry in place of a ratio: empty if a cell is missing, else a reason or a dash."""
    for column in columns:
        result = results.get((column, first.benchmark, first.parameters))
        if result is None:
            return Entry()
        if (missing := footnotes.missing(column, result)) is not None:
            return missing
    return MISSING


def _tables(cells: Cells, where: Shown, footnotes: Footnotes) -> list[Table]:
    """Return the tables of some quantities, without rows that have no figure."""
    return [
        replace(table, rows=rows, percentile=quantity.name if where is Shown.LATENCY else "")
        for quantity in quantities(where)
        for table in tables_of(cells, footnotes, quantity)
        if (rows := [row for row in table.rows if row.has_figure])
    ]


def _contenders(cells: Cells) -> Report:
    first = {column: result for column, result in reversed(cells.columned) if result.measured}
    results = {column: first[column] for column in cells.columns if column in first}
    packages = sorted(
        {name for one in results.values() for name in one.versions} - {"zodbshootout"}
    )
    facts = {
        column: {**_titled(result.metadata, _CONTENDER), **result.versions}
        for column, result in results.items()
    }
    table = _facts("Contender", facts, [*_CONTENDER.values(), *packages])
    return Report(
        [table] if results else [],
        title="Contenders",
        listings=[
            Listing(column, text)
            for column, result in results.items()
            if (text := str(json.loads(result.metadata.get("configuration_text", '""'))))
        ],
    )


def _runs(result_sets: Sequence[ResultSet]) -> Report:
    facts = {
        results.label or "this run": _titled(_first_metadata(results), _MACHINE)
        for results in result_sets
    }
    commands = [
        Listing(f"Command{f' of {results.label}' if results.label else ''}", command)
        for results in result_sets
        if (command := _first_metadata(results).get("command_line"))
    ]
    table = _facts("Run", facts, list(_MACHINE.values()))
    return Report([table], title="Machine and command", listings=commands)


def _first_metadata(results: ResultSet) -> Mapping[str, Any]:
    return next((result.metadata for result in results.results if result.measured), {})


def _titled(metadata: Mapping[str, Any], titles: Mapping[str, str]) -> dict[str, str]:
    return {title: str(metadata[key]) for key, title in titles.items() if key in metadata}


def _facts(title: str, facts: Mapping[str, Mapping[str, str]], rows: Sequence[str]) -> Table:
    """Return a table with a column for each key of *facts*, and a row for each fact."""
    lines = [
        Row(row, [Entry(of_column.get(row, DASH)) for of_column in facts.values()])
        for row in rows
        if any(row in of_column for of_column in facts.values())
    ]
    return Table("", list(facts), lines, title=title, words=frozenset(facts))
