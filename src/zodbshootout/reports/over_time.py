"""Notes, tables and charts about trends, and about runs with ``--for``."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from rich.filesize import decimal

from zodbshootout.model.parameters import CLIENTS, RATE, SIZE
from zodbshootout.model.parameters import OBJECTS as NUMBER
from zodbshootout.model.quantities import TIME, Quantity, Shown, quantities
from zodbshootout.model.units import BYTES, SECONDS
from zodbshootout.reports.elements import (
    DASH,
    Chart,
    ChartKind,
    Entry,
    Point,
    Report,
    Row,
    Style,
    Table,
)
from zodbshootout.reports.headings import (
    Columned,
    ResultSet,
    capitalized,
    description,
    distance_of,
    in_columns,
    rows_of,
    title_of,
)
from zodbshootout.results.figures import figure_of
from zodbshootout.results.names import short_name, varied_parameters
from zodbshootout.results.result import CellResult, OverTime, Stall, Trend

_OF_MEMORY = {
    "client_memory_now_bytes": "a client grows",
    "server_memory_bytes": "its server grows",
}
NOTEWORTHY_LOAD = 0.05
"""If other programs used at least this fraction of the processors' time, a note says so."""
LISTED_STALLS = 3
TELLING = 2.0
"""A multiple of the time at the start.  If only a rise to more than this multiple would have been
detected, a note says that the cell changes too much to tell whether it gets slower."""
MINUTES_FROM = 180.0
"""Times of at least this many seconds are given in minutes."""
ROWS = 10
"""The maximum number of rows of a table over time."""
MEGABYTE = 1e6
_LEVELS = (0.001, 0.01)
"""The limits of p-values that a note may name: p < 0.001 or p < 0.01."""


def trend_notes(cells: Sequence[Columned]) -> Iterator[str]:
    """Yield a line for each contender that takes longer with time, or was measured with --for."""
    varied = varied_parameters(result.cell for _, result in cells)
    names = {
        result.cell: f"{short_name(result.cell, varied)} {distance_of(result)}".rstrip()
        for _, result in cells
    }
    several = len(set(names.values())) > 1
    groups: dict[tuple[str, bool, bool], list[tuple[Trend, str]]] = {}
    for column, result in cells:
        place = f" in {names[result.cell]}" if several else ""
        if result.over_time is not None:
            yield f"{column}{place}: {_course(result.trend, result.over_time)}"
        elif trend := result.trend:
            group = groups.setdefault((column, trend.within_runs, trend.alone), [])
            group.append((trend, place))
    for (column, _, _), trends in groups.items():
        trends.sort(key=lambda pair: -pair[0].times)
        yield f"{column}: takes longer {_described(trends)}"


def _course(trend: Trend | None, course: OverTime) -> str:
    """Describe how a cell with ``--for`` changes over time."""
    time = duration(course.seconds)
    is_alone = trend is not None and trend.alone
    whose = "it or the machine " if is_alone or course.loaded else ""
    doubts = ["only another contender would show which"] if is_alone else []
    if course.loaded or course.load >= NOTEWORTHY_LOAD:
        doubts.append(f"other programs used up to {100 * course.load:.2g} % of the processors")
    why = f" ({'; '.join(doubts)})" if doubts else ""
    clauses = [
        f"{_OF_MEMORY[key]} by {decimal(round(rate))} an hour" for key, rate in course.growths
    ]
    if course.stalls:
        clauses.append(_stalled(course.stalls))
    if trend is not None and trend.interval is not None:
        low, high = (_part(times) for times in trend.interval)
        slower = f"{whose}gets slower: {_part(trend.times)} % in {time} ({low} to {high} %)"
        return "; ".join([slower + why * bool(whose), *clauses])
    if course.faster:
        return "; ".join([f"{whose}gets faster in {time}{why * bool(whose)}", *clauses])
    if course.smallest is None:
        return "; ".join([*clauses, "too few runs to tell whether it gets slower"])
    if course.smallest > TELLING:
        unclear = f"changes too much in {time} to tell whether it gets slower{why}"
        return "; ".join([*clauses, unclear])
    steady = "does not get slower" if clauses else "steady"
    seen = f"a rise by {_part(course.smallest)} % in {time} would have been seen"
    return "; ".join([*clauses, f"{steady} ({seen})"])


def _stalled(stalls: Sequence[Stall]) -> str:
    longest = sorted(stalls, key=lambda stall: -stall.seconds)[:LISTED_STALLS]
    listed = [
        f"{stall.seconds:.2g} s after {duration(stall.after)}"
        for stall in sorted(longest, key=lambda stall: stall.after)
    ]
    more = len(stalls) - len(listed)
    return f"stalls for {', '.join([*listed, *([f'and {more} more times'] if more else [])])}"


def duration(seconds: float) -> str:
    """Return a time in words."""
    if seconds < MINUTES_FROM:
        return f"{seconds:.3g} seconds"
    return f"{seconds / 60:.3g} minutes"


def _part(times: float) -> str:
    return f"{float(f'{100 * (times - 1):.2g}'):,g}"


def _described(trends: Sequence[tuple[Trend, str]]) -> str:
    """Describe trends, each with the words for its cell; the first trend is the greatest."""
    (first, place), *others = trends
    since, end = ("during each run", "its") if first.within_runs else ("with time", "the")
    more = "".join(f", {_digits(trend.times)} times{where}" for trend, where in others)
    p_value = max(trend.p_value for trend, _ in trends)
    level = next((limit for limit in _LEVELS if p_value < limit), _LEVELS[-1])
    cause = "; it or the machine, which only another contender would show" if first.alone else ""
    return (
        f"{since}, {_digits(first.times)} times as long at {end} end{place}{more} (p < {level})"
        f"{cause}; its figure depends on how long it is measured"
    )


def _digits(times: float) -> str:
    return f"{float(f'{times:.{3 if times < 2 else 2}g}'):,g}"  # noqa: PLR2004


def trend_charts(cells: Sequence[Columned], columns: Sequence[str]) -> Iterator[Chart]:
    """Yield charts of the table rows in which a contender takes longer with time."""
    for row in rows_of(cell for cell in cells if cell[1].starts and cell[1].over_time is None):
        kinds = {result.trend.within_runs for _, result in row if result.trend}
        for within_runs in sorted(kinds):
            yield _chart(row, columns, within_runs=within_runs)


def _chart(row: Sequence[Columned], columns: Sequence[str], *, within_runs: bool) -> Chart:
    """Return a row's chart over time; if *within_runs*, the time starts at 0 in every run."""
    result = row[0][1]
    points = []
    for column, result_of_column in row:
        curve = _within_runs(result_of_column) if within_runs else _runs(result_of_column)
        points += [
            Point(column, round(x, 1), seconds, SECONDS.text(seconds)) for x, seconds in curve
        ]
    means = "on average within a run" if within_runs else "on average in each run"
    return Chart(
        ChartKind.TIMES,
        title_of(result),
        subtitle=description(result),
        x_title=f"seconds since the start of {'a run' if within_runs else 'the first run'}",
        y_title=f"time of an iteration, {means} (less is better)",
        points=points,
        columns=columns,
        in_seconds=True,
    )


def _runs(result: CellResult) -> Iterator[tuple[float, float]]:
    """Yield a point for each run: the mean start of the run's values, and the mean of these values.

    Both are in seconds.  The starts count from the start of the first run.
    """
    runs = result.starts
    for run, starts in zip(result.runs, runs, strict=True):
        yield statistics.fmean(starts) - runs[0][0], statistics.fmean(run.values)


def _within_runs(result: CellResult) -> Iterator[tuple[float, float]]:
    """Yield one point for the first values of all runs, one for their second values, etc."""
    runs = list(zip(result.starts, (run.values for run in result.runs), strict=True))
    for number in range(min(len(starts) for starts, _ in runs)):
        instants = [starts[number] - starts[0] for starts, _ in runs]
        yield statistics.fmean(instants), statistics.fmean(values[number] for _, values in runs)


def over_time_report(result_sets: Sequence[ResultSet]) -> Report:
    """Return tables of the cells that were measured with ``--for``, and a record of each run.

    A table has at most ten rows, so a row may stand for several runs.
    """
    cells = in_columns(result_sets)
    notes = list(trend_notes([cell for cell in cells if cell[1].over_time]))
    if not notes:
        notes = ["nothing was measured with --for, whose runs share their clients"]
    records = [
        {"file": results.label or None, **record}
        for results in result_sets
        for result in results.results
        if result.over_time
        for record in _records(result)
    ]
    return Report(list(_tables(cells)), notes, records=records, title="Over time")


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
                for figure in [figure_of(alone, one)]
            },
        }


def _tables(cells: Sequence[Columned]) -> Iterator[Table]:
    """Yield a table of each quantity for each benchmark that was measured with ``--for``."""
    for row in rows_of(cell for cell in cells if cell[1].over_time):
        columns = [column for column, _ in row]
        parts = [_in_parts(result) for _, result in row]
        result = row[0][1]
        for quantity in quantities(Shown.HOURS):
            lines = [
                Row(
                    _on_the_clock(start),
                    [_entry(of_column.get(part), quantity) for of_column in parts],
                )
                for part, start in enumerate(_starts_of_parts(row))
            ]
            if any(entry.value is not None for line in lines for entry in line.entries):
                where = f"{result.cell.benchmark} {distance_of(result)}".rstrip()
                yield Table(
                    f"{_caption(quantity, result)}, {where}: {description(result)}",
                    columns,
                    lines,
                    "Time",
                )


def _on_the_clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _starts_of_parts(row: Sequence[Columned]) -> list[float]:
    longest = max((result for _, result in row), key=lambda result: len(result.runs))
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


def _entry(part: CellResult | None, quantity: Quantity) -> Entry:
    figure = part and figure_of(part, quantity)
    return Entry(figure.text(), figure.value) if figure else Entry(DASH, style=Style.DIM)


def over_time_charts(cells: Sequence[Columned], columns: Sequence[str]) -> Iterator[Chart]:
    """Yield a chart of each quantity for each benchmark that was measured with ``--for``."""
    for row in rows_of(cell for cell in cells if cell[1].over_time):
        for quantity in quantities(Shown.HOURS):
            if points := [point for cell in row for point in _points(*cell, quantity)]:
                result = row[0][1]
                unit = ", MB" if quantity.unit is BYTES else ""
                yield Chart(
                    ChartKind.TIMES,
                    title_of(result),
                    subtitle=description(result),
                    x_title="minutes since the start of the first run",
                    y_title=f"{_caption(quantity, result)}{unit}",
                    points=points,
                    columns=columns,
                    in_seconds=quantity.unit is SECONDS,
                    percentile=quantity.name if quantity.shown & Shown.LATENCY else "",
                )


def _points(column: str, result: CellResult, quantity: Quantity) -> Iterator[Point]:
    unit = MEGABYTE if quantity.unit is BYTES else 1.0
    for starts, run in zip(result.starts, result.runs, strict=True):
        figure = figure_of(replace(result, runs=(run,)), quantity)
        if figure is not None:
            minutes = (statistics.fmean(starts) - result.starts[0][0]) / 60
            yield Point(column, round(minutes, 3), figure.value / unit, figure.text())
