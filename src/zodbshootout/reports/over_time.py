"""Notes and charts about cells that take longer with time."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from zodbshootout.model.specification import Parameters
from zodbshootout.reports.elements import Chart, ChartKind, Point
from zodbshootout.reports.headings import Columned, description, title_of
from zodbshootout.reports.metrics import METRICS
from zodbshootout.results.names import short_name, varied_parameters
from zodbshootout.results.result import CellResult, Trend

_SECONDS = METRICS["seconds"]
_LEVELS = (0.001, 0.01)
"""The limits of p-values that a note names; no trend has a greater one than the last."""


def trend_notes(cells: Sequence[Columned]) -> Iterator[str]:
    """Yield a line for each contender that takes longer with time."""
    varied = varied_parameters(result.cell for _, result in cells)
    names = {result.cell: short_name(result.cell, varied) for _, result in cells}
    several = len(set(names.values())) > 1
    groups: dict[tuple[str, bool, bool], list[tuple[Trend, str]]] = {}
    for column, result in cells:
        if trend := result.trend:
            place = f" in {names[result.cell]}" if several else ""
            group = groups.setdefault((column, trend.within_runs, trend.alone), [])
            group.append((trend, place))
    for (column, _, _), trends in groups.items():
        trends.sort(key=lambda pair: -pair[0].times)
        yield f"{column}: takes longer {_described(trends)}"


def _described(trends: Sequence[tuple[Trend, str]]) -> str:
    """Describe trends of one kind, which are given with their places, the greatest first."""
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
    """Return a chart for each row of the tables in which a contender takes longer with time."""
    rows: dict[tuple[str, Parameters], list[Columned]] = {}
    for column, result in cells:
        if _starts(result):
            row = rows.setdefault((result.cell.benchmark, result.cell.parameters), [])
            row.append((column, result))
    for row in rows.values():
        kinds = {result.trend.within_runs for _, result in row if result.trend}
        for within_runs in sorted(kinds):
            yield _chart(row, columns, within_runs=within_runs)


def _chart(row: Sequence[Columned], columns: Sequence[str], *, within_runs: bool) -> Chart:
    """Return the chart of the values of a row over the time since its start, or within its runs."""
    result = row[0][1]
    points = []
    for column, result_of_column in row:
        curve = _within_runs(result_of_column) if within_runs else _runs(result_of_column)
        points += [
            Point(column, round(x, 1), seconds, _SECONDS.text(result_of_column, seconds))
            for x, seconds in curve
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
    """Return when the slices of each run were taken on average, and the mean of its values."""
    runs = _starts(result)
    for run, starts in zip(result.runs, runs, strict=True):
        yield statistics.fmean(starts) - runs[0][0], statistics.fmean(run.values)


def _within_runs(result: CellResult) -> Iterator[tuple[float, float]]:
    """Return the means over runs of the instant of each slice, in its run, and of its value."""
    runs = list(zip(_starts(result), (run.values for run in result.runs), strict=True))
    for number in range(min(len(starts) for starts, _ in runs)):
        instants = [starts[number] - starts[0] for starts, _ in runs]
        yield statistics.fmean(instants), statistics.fmean(values[number] for _, values in runs)


def _starts(result: CellResult) -> list[list[float]]:
    """Return when the slices of each run were started, in seconds; nothing if that is unknown."""
    starts = [
        [float(seconds) for seconds in str(run.get_metadata().get("slice_starts_s", "")).split()]
        for run in result.runs
    ]
    counts = [len(run.values) for run in result.runs]
    return starts if list(map(len, starts)) == counts else []
