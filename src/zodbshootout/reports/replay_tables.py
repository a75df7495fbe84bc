"""Tables and charts of replays: the time of each step, latencies, and events such as conflicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zodbshootout.model.quantities import CONFLICTS, THROUGHPUT, Quantity, Shown, quantities
from zodbshootout.reports.cells import Cells, Group
from zodbshootout.reports.elements import (
    MISSING,
    Chart,
    ChartKind,
    Entry,
    Labels,
    Point,
    Row,
    Scale,
    Table,
)
from zodbshootout.reports.headings import entry_of
from zodbshootout.results.result import CellResult

RECORDED = "recorded"
"""The title of the column with the events that were recorded in the workload."""


def replay_tables(cells: Cells) -> Iterator[Table]:
    """Yield the tables about the replays among the cells: times of steps, latencies, events."""
    for group in _groups(cells):
        about, columns, results = _about(group), group.columns, group.results
        tables = [
            Table(
                f"Time by step (less is better): {about}", columns,
                [_row(one, results) for one in quantities(Shown.STEPS)], "Step",
            ),
            Table(
                f"Latency (less is better): {about}", columns,
                list(filter(_has_figure, (_row(one, results) for one in quantities(Shown.KINDS)))),
                "Transactions",
            ),
            Table(
                f"Events per transaction: {about}", [RECORDED, *columns],
                list(_events(results)), "Event",
            ),
        ]  # fmt: skip
        yield from (table for table in tables if table.rows)


def replay_notes(cells: Cells) -> Iterator[str]:
    """Yield a note if replays at full speed had conflicts."""
    replays = cells.only(lambda result: _is_replay(result) and result.figures[THROUGHPUT])
    if any(figure.value for one in replays.results if (figure := one.figures[CONFLICTS])):
        yield (
            "replay: as fast as possible, so the conflicts are not those of the application; "
            "--speed 1 begins transactions at their recorded times"
        )


def step_charts(cells: Cells) -> Iterator[Chart]:
    """Yield a chart for each table of steps."""
    for group in _groups(cells):
        steps = [
            step
            for step in quantities(Shown.STEPS)
            if any(result.figures[step] is not None for result in group.results)
        ]
        points = [
            Point(column, place, figure.value, figure.text())
            for column, result in group.cells
            for place, step in enumerate(steps)
            if (figure := result.figures[step]) is not None
        ]
        yield Chart(
            ChartKind.STACKS,
            "Where the time goes",
            _about(group),
            Scale("step", names=[step.title for step in steps]),
            Scale("time of a transaction by step (less is better)", Labels.SECONDS),
            points,
            cells.columns,
        )


def _groups(cells: Cells) -> list[Group]:
    """Return the replays that have the same parameters."""
    return cells.only(_is_replay).rows


def _is_replay(result: CellResult) -> bool:
    return result.timed and bool(result.cell.parameters.workload.name)


def _about(group: Group) -> str:
    parameters = group.first.cell.parameters
    replayed = f"{parameters.workload.name} {parameters.moment}".rstrip()
    return f"{replayed}, {group.description}"


def _row(quantity: Quantity, results: Sequence[CellResult]) -> Row:
    return Row(quantity.title, [entry_of(result, quantity) for result in results])


def _has_figure(row: Row) -> bool:
    return row.has_figure


def _events(results: Sequence[CellResult]) -> Iterator[Row]:
    """Yield a row for each kind of event, with what was recorded in the first column."""
    workload = results[0].cell.parameters.workload
    for event in quantities(Shown.REPLAY):
        row = _row(event, results)
        recorded = getattr(workload, event.name, None)
        first = MISSING
        if recorded is not None:
            share = recorded / max(1, workload.transactions)
            first = Entry(event.unit.text(share), share)
        if any(entry.value for entry in (first, *row.entries)):
            yield Row(row.title, [first, *row.entries])
