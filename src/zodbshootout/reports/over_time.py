"""Notes, tables and charts of what changes with time, in particular in runs with ``--for``."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from zodbshootout.model.parameters import CLIENTS, RATE, SIZE
from zodbshootout.model.parameters import OBJECTS as NUMBER
from zodbshootout.model.quantities import LONGEST, QUANTITIES, TIME, Quantity, Shown, quantities
from zodbshootout.model.units import BYTES, significant
from zodbshootout.reports.cells import Cells, Group, ResultSet
from zodbshootout.reports.charts import scale_of
from zodbshootout.reports.elements import (
    Chart,
    ChartKind,
    Note,
    Point,
    Report,
    Row,
    Scale,
    Table,
)
from zodbshootout.reports.headings import capitalized, distance_of, entry_of
from zodbshootout.results.names import short_name, varied_parameters
from zodbshootout.results.result import CellResult

_MEMORIES = {"memory_now": "memory of a client", "server_memory": "memory of its server"}
MINUTES_FROM = 180.0
"""Times of at least this many seconds are given in minutes."""
ROWS = 10
"""The maximum number of rows of a table over time."""
MEGABYTE = 1e6


def trend_notes(cells: Cells) -> Iterator[str]:
    """Yield a line for each cell that gets slower with time, or was measured with ``--for``."""
    varied = varied_parameters(result.cell for result in cells.results)
    names = {
        result.cell: f"{short_name(result.cell, varied)} {distance_of(result)}".rstrip()
        for result in cells.results
    }
    several = len(set(names.values())) > 1
    for column, result in cells:
        if clauses := [*_change(result), *_course(result)]:
            place = f" in {names[result.cell]}" if several else ""
            yield f"{column}{place}: {'; '.join(clauses)}"


def _change(result: CellResult) -> Iterator[str]:
    """Describe how times change from the first run to the last, if that is worth a line."""
    if (trend := result.trend) is None:
        if result.over_time:
            yield "cannot tell whether it gets slower"
        return
    low, high = map(significant, trend.interval)
    others = "" if trend.alone else ", relative to the other contenders"
    if trend.found:
        subject = "it or the machine gets slower" if trend.alone else "gets slower"
        times = f"{significant(trend.times)} times as long at the end ({low} to {high}){others}"
        yield f"{subject} with time: {times}"
        yield "its figure depends on how long it is measured"
    elif result.over_time:
        yield f"no certain slowdown: {low} to {high} times as long at the end{others}"


def _course(result: CellResult) -> Iterator[str]:
    """Describe the memory at the beginning and the end, and the longest iteration."""
    if not result.over_time:
        return
    for name, title in _MEMORIES.items():
        sizes = [
            figure.text()
            for at in (0, -1)
            if (figure := replace(result, runs=(result.runs[at],)).figures[QUANTITIES[name]])
        ]
        if sizes:
            yield f"{title} {', at the end '.join(sizes)}"
    if longest := result.figures[LONGEST]:
        yield f"longest iteration {longest.text()}"


def duration(seconds: float) -> str:
    """Return a time in words."""
    if seconds < MINUTES_FROM:
        return f"{seconds:.3g} seconds"
    return f"{seconds / 60:.3g} minutes"


def over_time_report(result_sets: Sequence[ResultSet]) -> Report:
    """Return tables of the cells that were measured with ``--for``, and a record of each run.

    A table has at most ten rows, so a row may stand for several runs.
    """
    cells = Cells.of(result_sets).only(lambda result: result.over_time)
    notes = list(trend_notes(cells))
    if not notes:
        notes = ["nothing was measured with --for, whose runs share their clients"]
    records = [
        {"file": results.label or None, **record}
        for results in result_sets
        for result in results.results
        if result.over_time
        for record in _records(result)
    ]
    return Report(list(_tables(cells)), list(map(Note, notes)), records, title="Over time")


def _records(result: CellResult) -> Iterator[dict[str, Any]]:
    first = result.starts[0][0]
    for starts, run in zip(result.starts, result.runs, strict=True):
        alone = replace(result, runs=(run,))
        yield {
            "benchmark": result.cell.benchmark,
            "contender": result.cell.title,
            **{
                one.key: one.written(result.cell.parameters)
                for one in (CLIENTS, NUMBER, SIZE, RATE)
            },
            "start_s": round(starts[0] - first, 3),
            **{
                one.key: figure and figure.value
                for one in (TIME, *quantities(Shown.HOURS))
                for figure in [alone.figures[one]]
            },
        }


def _tables(cells: Cells) -> Iterator[Table]:
    """Yield a table of each quantity for each benchmark that was measured with ``--for``."""
    for row in cells.rows:
        parts = [_in_parts(result) for result in row.results]
        for quantity in quantities(Shown.HOURS):
            lines = [
                Row(
                    _on_the_clock(start),
                    [entry_of(of_column.get(part), quantity) for of_column in parts],
                )
                for part, start in enumerate(_starts_of_parts(row.results))
            ]
            if any(entry.value is not None for line in lines for entry in line.entries):
                where = f"{row.first.cell.benchmark} {distance_of(row.first)}".rstrip()
                yield Table(
                    f"{_caption(quantity, row.first)}, {where}: {row.description}",
                    row.columns,
                    lines,
                    "Time",
                )


def _on_the_clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _starts_of_parts(results: Sequence[CellResult]) -> list[float]:
    longest = max(results, key=lambda result: len(result.runs))
    size = _size_of_parts(longest)
    return [starts[0] - longest.starts[0][0] for starts in longest.starts[::size]]


def _size_of_parts(result: CellResult) -> int:
    return -(-len(result.runs) // ROWS)


def _in_parts(result: CellResult) -> dict[int, CellResult]:
    """Divide the runs of a result into at most ten parts, which are numbered."""
    size = _size_of_parts(result)
    return {
        number: replace(result, runs=result.runs[start : start + size])
        for number, start in enumerate(range(0, len(result.runs), size))
    }


def _caption(quantity: Quantity, result: CellResult) -> str:
    return capitalized(quantity.caption.format(counted=result.cell.words.counted))


def over_time_charts(cells: Cells) -> Iterator[Chart]:
    """Yield a chart of each quantity for each benchmark that was measured with ``--for``.

    For another benchmark in which a contender gets slower with time, yield a chart of the times.
    """
    for row in cells.only(lambda result: result.starts and not result.over_time).rows:
        if any(result.gets_slower for result in row.results):
            yield from _charts(row, cells.columns, [TIME])
    for row in cells.only(lambda result: result.over_time).rows:
        yield from _charts(row, cells.columns, quantities(Shown.HOURS))


def _charts(row: Group, columns: Sequence[str], shown: Sequence[Quantity]) -> Iterator[Chart]:
    for quantity in shown:
        if points := [point for c, result in row.cells for point in _points(c, result, quantity)]:
            unit = ", MB" if quantity.unit is BYTES else ""
            yield Chart(
                ChartKind.LINES,
                row.title,
                row.description,
                Scale("minutes since the start of the first run"),
                scale_of(quantity, f"{_caption(quantity, row.first)}{unit}"),
                points,
                columns,
                percentile=quantity.name if quantity.shown & Shown.LATENCY else "",
            )


def _points(column: str, result: CellResult, quantity: Quantity) -> Iterator[Point]:
    unit = MEGABYTE if quantity.unit is BYTES else 1.0
    for starts, run in zip(result.starts, result.runs, strict=True):
        figure = replace(result, runs=(run,)).figures[quantity]
        if figure is not None:
            minutes = (statistics.fmean(starts) - result.starts[0][0]) / 60
            yield Point(column, round(minutes, 3), figure.value / unit, figure.text())
