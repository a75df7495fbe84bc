"""Tables and charts of costs other than time, such as memory and bytes sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from zodbshootout.model.grouping import grouped
from zodbshootout.model.quantities import Quantity, Shown, quantities
from zodbshootout.model.specification import duration
from zodbshootout.model.storage_facts import Place
from zodbshootout.reports.cells import Cells, Group, ResultSet
from zodbshootout.reports.csv_json import Records
from zodbshootout.reports.distance import distance_notes, tables_of_times
from zodbshootout.reports.elements import (
    MISSING,
    NO_FIGURE,
    Chart,
    ChartKind,
    Entry,
    Note,
    Point,
    Report,
    Row,
    Scale,
    Table,
)
from zodbshootout.reports.headings import capitalized, title_of
from zodbshootout.reports.releases import step_lines
from zodbshootout.results.axes import at_distance
from zodbshootout.results.result import CellResult

NOT_OURS = "servers that the run did not start: only the costs of their clients are known"


def costs_report(result_sets: Sequence[ResultSet]) -> Report:
    """Return the tables of costs, and the records of all cells."""
    cells = Cells.of(result_sets)
    tables = [*cost_tables(cells), *tables_of_times(cells)]
    steps = step_lines(cells, all_costs=True)
    notes = [*map(Note, [*steps, *distance_notes(cells), *_notes(cells)]), NO_FIGURE]
    return Report(tables, notes, records=Records(result_sets), title="Costs")


def costs_section(cells: Cells) -> Report:
    """Return a page's section on costs: charts, and folded tables."""
    tables = list(cost_tables(cells))
    if not tables:
        return Report()
    figures = Report(tables, title="All costs")
    charts = list(cost_charts(cells))
    notes = list(map(Note, _notes(cells)))
    return Report(notes=notes, title="Costs", charts=charts, parts=[figures])


def cost_tables(cells: Cells) -> Iterator[Table]:
    """Yield a table for each combination of clients and kind of objects.

    A benchmark has no row for a cost that is 0 or unknown for all contenders.
    """
    for group in _groups(cells):
        columns = group.columns
        rows = [line for title, row in group.rows.items() for line in _rows(title, row, columns)]
        if rows:
            yield Table(f"Costs (less is better): {group.description}", columns, rows)


def cost_charts(cells: Cells) -> Iterator[Chart]:
    """Yield a chart for each cost, in which each benchmark has a bar for each contender.

    Each bar is scaled to the longest bar of the same benchmark.
    """
    for group in _groups(cells):
        for cost in quantities(Shown.CHART):
            rows = {
                title: row
                for title, row in group.rows.items()
                if max(_entry(one, cost).value or 0.0 for one in row.values())
            }
            points = [
                Point(column, place, entry.value, entry.text)
                for place, row in enumerate(rows.values())
                for column, result in row.items()
                if (entry := _entry(result, cost)).value is not None
            ]
            per = f"per {cost.per}; " if cost.per else ""
            if points:
                yield Chart(
                    ChartKind.BARS,
                    capitalized(cost.title),
                    group.description,
                    Scale("benchmark", names=list(rows)),
                    Scale(f"{per}less is better; each benchmark has a scale of its own"),
                    points,
                    cells.columns,
                )


def _groups(cells: Cells) -> list[Group]:
    """Return the timed cells of each table, at the shortest round-trip time only."""
    shortest = min((_rtt(result) for result in cells.timed.results), default=0.0)
    nearest = [(c, at_distance(r, None)) for c, r in cells.timed if _rtt(r) == shortest]
    return replace(cells, columned=nearest).groups


def _rtt(result: CellResult) -> float:
    return result.cell.parameters.rtt or 0.0


def _rows(title: str, row: Mapping[str, CellResult], columns: Sequence[str]) -> Iterator[Row]:
    """Yield table rows with the costs of a benchmark; *row* maps columns to results."""
    lines = [
        (cost, [_entry(row.get(column), cost) for column in columns])
        for cost in quantities(Shown.COSTS)
    ]
    lines = [(cost, entries) for cost, entries in lines if any(entry.value for entry in entries)]
    if lines:
        first = next(iter(row.values()))
        yield Row(title, [Entry() for _ in columns], title_of(first))
    for cost, entries in lines:
        yield Row(f"  {cost.title}", entries, cost.caption)


def _entry(result: CellResult | None, cost: Quantity) -> Entry:
    figure = result and result.figures[cost]
    return Entry(figure.entry, figure.value) if figure else MISSING


def _notes(cells: Cells) -> Iterator[str]:
    yield (
        "processor time and bytes written are per iteration, growth and the server's log per "
        "object stored; memory is that of a client at its peak, and of the server at the end of "
        "a run"
    )
    rtts = sorted({rtt for _, result in cells if (rtt := result.cell.parameters.rtt) is not None})
    if len(rtts) > 1:
        nearest = duration(rtts[0], " ")
        yield f"costs are those at {nearest}; CSV and JSON have those at other distances"
    reasons = grouped(
        (str(reason), column)
        for column, result in cells
        if (reason := result.metadata.get("traffic_not_counted"))
    )
    for reason, columns in reasons.items():
        yield f"round trips of {', '.join(dict.fromkeys(columns))} were not counted: {reason}"
    places = {str(result.metadata.get("server_place", "")) for _, result in cells}
    if places & {Place.HERE.value, Place.ELSEWHERE.value}:
        yield NOT_OURS
