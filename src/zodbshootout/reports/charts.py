"""Charts made from results: rates as bars or as curves, and the distributions of latencies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import itemgetter

from zodbshootout.model.grouping import grouped
from zodbshootout.model.quantities import THROUGHPUT, TIME, Quantity
from zodbshootout.model.specification import Parameters
from zodbshootout.model.units import SECONDS
from zodbshootout.reports.elements import Chart, ChartKind, Labels, Point, Scale
from zodbshootout.reports.headings import (
    Columned,
    ResultSet,
    caption_of,
    description,
    in_columns,
    pace_of,
    rows_of,
    title_of,
)
from zodbshootout.results.axes import RTT, Axis, ParameterAxis, axes_of
from zodbshootout.results.cell import Cell
from zodbshootout.results.figures import Figure, figure_of
from zodbshootout.results.result import CellResult

WIDE_GAP = 4.0
"""An axis is logarithmic if its widest gap between values is this many times the narrowest."""
STEPS_PER_OCTAVE = 2
"""In charts of percentiles, the number of steps from 50 to 75 %, from 75 to 87.5 %, and so on."""


_LATENCY = replace(TIME, title="latency")
_Key = tuple[str, Parameters]
_Placed = tuple[float, str, CellResult]
"""A place on a chart's axis, the title of a column, and a result in the column."""


@dataclass(frozen=True)
class QuantityCharts:
    """The charts of one quantity."""

    cells: Sequence[Columned]
    columns: Sequence[str]
    quantity: Quantity

    def bars(self) -> Iterator[Chart]:
        """Yield a chart for each table row that is in no curve over a parameter."""
        axes = swept_axes([result for _, result in self.cells])
        swept = {
            _key(result.cell)
            for axis in axes
            for group in self._groups(axis)
            for _, _, result in group
        }
        for row in rows_of(cell for cell in self.cells if _key(cell[1].cell) not in swept):
            chart = self._chart([(0.0, *cell) for cell in row])
            if chart.points:
                yield chart

    def curves(self) -> Iterator[Chart]:
        """Yield the charts over each parameter that varies."""
        for axis in swept_axes([result for _, result in self.cells]):
            yield from self.over(axis)

    def over(self, axis: Axis) -> Iterator[Chart]:
        """Yield a chart for each combination of all else, with a curve over *axis* for a column."""
        for group in self._groups(axis):
            chart = self._chart(group, axis)
            if len({point.x for point in chart.points}) > 1:
                yield chart

    def _groups(self, axis: Axis) -> list[list[_Placed]]:
        """Return the cells of each chart over *axis*, with their places on the axis."""
        groups = grouped(
            (_key(axis.without(result.cell)), (place, column, result))
            for column, result in self.cells
            if (place := axis.place(result)) is not None
        )
        return [
            sorted(group, key=itemgetter(0))
            for group in groups.values()
            if len({place for place, *_ in group}) > 1
        ]

    def _chart(self, group: Sequence[_Placed], axis: Axis | None = None) -> Chart:
        """Return a chart of a group: curves over *axis*, or bars if it is ``None``."""
        results = [result for *_, result in group]
        first = results[0]
        parameter = axis.parameter if isinstance(axis, ParameterAxis) else None
        figures = [(x, column, figure_of(result, self.quantity)) for x, column, result in group]
        points = [
            point_of(figure, column, x)
            for x, column, figure in figures
            if figure is not None and figure.result.keeps_up
        ]
        pace = pace_of(first.cell.parameters) if self.quantity.better == "more" else ""
        caption = f"{caption_of(self.quantity, results, parameter)} {pace}".rstrip()
        return Chart(
            ChartKind.LINES if axis else ChartKind.BARS,
            title_of(first, parameter),
            description(first, parameter),
            Scale(
                _title_of(axis, results) if axis else "",
                logarithmic=_has_wide_gap({point.x for point in points}),
            ),
            scale_of(self.quantity, f"{caption} ({self.quantity.better} is better)"),
            points,
            self.columns,
        )


def scale_of(quantity: Quantity, title: str) -> Scale:
    """Return the scale of a quantity: logarithmic for times, from 0 on for all else."""
    is_time = quantity.unit is SECONDS
    return Scale(title, Labels.SECONDS if is_time else Labels.NUMBERS, logarithmic=is_time)


def point_of(figure: Figure, column: str, x: float) -> Point:
    """Return a figure in a chart."""
    within = "" if figure.half_width is None else f" ±{100 * figure.half_width:.0f}%"
    text = f"{figure.text()}{within}"
    return Point(column, x, figure.value, text, *(figure.interval or (None, None)))


def _title_of(axis: Axis, results: Iterable[CellResult]) -> str:
    unit = axis.unit(map(axis.of, results))
    return f"{axis.title} ({unit})" if unit else axis.title


def swept_axes(results: Sequence[CellResult]) -> list[ParameterAxis]:
    """Return the parameters along which results differ, except the distance."""
    axes = (axis for axis in axes_of(results) if isinstance(axis, ParameterAxis))
    return [axis for axis in axes if axis is not RTT]


def over_values(
    result_sets: Sequence[ResultSet], benchmark: str, columns: Sequence[str]
) -> Iterator[Chart]:
    """Yield the charts of a benchmark over the numbers that ``--define`` gave to names.

    A curve joins the columns that differ in the number alone, and has the colour of the first.
    """
    plain = in_columns(result_sets)
    for axis in axes_of([result for _, result in plain]):
        if type(axis) is not Axis:
            continue
        curved = in_columns(result_sets, axis)
        titles = {column: title for (column, _), (title, _) in zip(plain, curved, strict=True)}
        firsts = {title: column for column, title in reversed(titles.items())}
        shown = [titles[one] if firsts[titles[one]] == one else one for one in columns]
        cells = [
            (column, result)
            for column, result in curved
            if result.timed and result.cell.benchmark == benchmark
        ]
        yield from QuantityCharts(cells, shown, THROUGHPUT).over(axis)


def _key(cell: Cell) -> _Key:
    return cell.benchmark, cell.parameters


def _has_wide_gap(numbers: set[float]) -> bool:
    ordered = sorted(numbers)
    gaps = [second - first for first, second in pairwise(ordered)]
    return len(gaps) > 1 and ordered[0] > 0 and max(gaps) / min(gaps) >= WIDE_GAP


def distributions(cells: Sequence[Columned], columns: Sequence[str]) -> Iterator[Chart]:
    """Yield a chart for each table row that has recorded latencies.

    If an operation such as a pack ran, each column has a chart with a line for each phase.
    """
    recorded = [
        (*cell, cell[1].cell.without_operation) for cell in cells if _has_latencies(cell[1])
    ]
    for row in rows_of(
        (column, result) for column, result, plain in recorded if result.cell == plain
    ):
        yield _distribution(row, columns, description(row[0][1]))
    phases = grouped(
        ((column, plain), (result.cell.parameters.moment, result))
        for column, result, plain in recorded
        if result.cell != plain
    )
    for (column, plain), lines in phases.items():
        about = f"{column}, {description(lines[0][1])}"
        chart = _distribution(lines, [moment for moment, _ in lines], about)
        yield replace(chart, title=title_of(replace(lines[0][1], cell=plain)))


def _has_latencies(result: CellResult) -> bool:
    histogram = result.latencies_of()
    return histogram is not None and histogram.get_total_count() > 0


def _distribution(lines: Sequence[Columned], names: Sequence[str], about: str) -> Chart:
    result = lines[0][1]
    return Chart(
        ChartKind.LINES,
        title_of(result),
        about,
        Scale("percentile of the iterations", Labels.PERCENTILES, logarithmic=True),
        scale_of(_LATENCY, f"{caption_of(_LATENCY, [result])} (less is better)"),
        [point for line in lines for point in _percentiles(*line)],
        names,
    )


def _percentiles(column: str, result: CellResult) -> Iterator[Point]:
    """Yield points from the median to the longest latency."""
    iterations = result.latencies_of().get_total_count()
    steps = math.ceil(STEPS_PER_OCTAVE * math.log2(iterations))
    positions = [2 ** (step / STEPS_PER_OCTAVE) for step in range(STEPS_PER_OCTAVE, steps)]
    latencies = result.latencies_at([100.0, *(100 * (1 - 1 / x) for x in positions)])
    longest = max(latencies.values())
    for x in positions:
        seconds = latencies[100 * (1 - 1 / x)]
        yield Point(column, x, seconds, SECONDS.text(seconds))
    yield Point(column, max(2.0, iterations), longest, SECONDS.text(longest))
