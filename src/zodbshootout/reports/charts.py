"""Charts made from results: rates as bars or as curves, and the distributions of latencies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from zodbshootout.model.grouping import grouped
from zodbshootout.model.quantities import THROUGHPUT, TIME, Quantity
from zodbshootout.model.specification import Parameters
from zodbshootout.model.units import SECONDS
from zodbshootout.reports.cells import Cells, Columned, Curves, Group
from zodbshootout.reports.elements import Chart, ChartKind, Labels, Point, Scale
from zodbshootout.reports.headings import caption_of, description, pace_of, title_of
from zodbshootout.results.axes import RTT, Axis, ParameterAxis, axes_of
from zodbshootout.results.cell import Cell
from zodbshootout.results.figures import Figure, compared
from zodbshootout.results.result import CellResult

WIDE_GAP = 4.0
"""An axis is logarithmic if its widest gap between values is this many times the narrowest."""
STEPS_PER_OCTAVE = 2
"""In charts of percentiles, the number of steps from 50 to 75 %, from 75 to 87.5 %, and so on."""


_LATENCY = replace(TIME, title="latency")
_Key = tuple[str, Parameters]


@dataclass(frozen=True)
class QuantityCharts:
    """The charts of one quantity."""

    cells: Cells
    quantity: Quantity

    def bars(self) -> Iterator[Chart]:
        """Yield a chart for each table row that is in no curve over a parameter."""
        swept = {
            _key(result.cell)
            for axis in swept_axes(self.cells.results)
            for curves in self._curves(axis)
            for result in curves.group.results
        }
        for row in self.cells.only(lambda result: _key(result.cell) not in swept).rows:
            points = [
                point_of(figure, column, 0.0)
                for column, result in row.cells
                for figure in compared(result, self.quantity)
            ]
            if points:
                yield self._chart(row, points)

    def curves(self) -> Iterator[Chart]:
        """Yield the charts over each parameter that varies."""
        for axis in swept_axes(self.cells.results):
            yield from self.over(axis)

    def over(self, axis: Axis) -> Iterator[Chart]:
        """Yield a chart for each combination of all else, with a curve over *axis* for a column."""
        for curves in self._curves(axis):
            points = [
                point_of(figure, column, place)
                for column, series in curves.by_column.items()
                for figure in series.figures
                if (place := axis.place(figure.result)) is not None
            ]
            points.sort(key=lambda point: point.x)
            yield self._chart(curves.group, points, axis)

    def _curves(self, axis: Axis) -> list[Curves]:
        """Return the curves of each chart over *axis* with several places."""
        return [
            curves
            for curves in self.cells.curves(axis, self.quantity)
            if len({axis.place(figure.result) for figure in curves.figures} - {None}) > 1
        ]

    def _chart(self, group: Group, points: Sequence[Point], axis: Axis | None = None) -> Chart:
        """Return a chart with curves over *axis*, or with bars if it is ``None``."""
        pace = pace_of(group.first.cell.parameters) if self.quantity.better == "more" else ""
        caption = f"{caption_of(self.quantity, group.results, group.axis)} {pace}".rstrip()
        return Chart(
            ChartKind.LINES if axis else ChartKind.BARS,
            group.title,
            group.description,
            Scale(
                _title_of(axis, group.results) if axis else "",
                logarithmic=_has_wide_gap({point.x for point in points}),
            ),
            scale_of(self.quantity, f"{caption} ({self.quantity.better} is better)"),
            points,
            self.cells.columns,
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


def over_values(cells: Cells, benchmark: str) -> Iterator[Chart]:
    """Yield the charts of a benchmark over the numbers that ``--define`` gave to names.

    A curve joins the columns that differ in the number alone, and has the colour of the first.
    """
    for axis in axes_of(cells.results):
        if type(axis) is not Axis:
            continue
        curved = Cells.of(cells.files, axis)
        titles = {column: title for (column, _), (title, _) in zip(cells, curved, strict=True)}
        firsts = {title: column for column, title in reversed(titles.items())}
        shown = [titles[one] if firsts[titles[one]] == one else one for one in cells.columns]
        own = curved.timed.of_benchmark(benchmark)
        yield from QuantityCharts(replace(own, columns=shown), THROUGHPUT).over(axis)


def _key(cell: Cell) -> _Key:
    return cell.benchmark, cell.parameters


def _has_wide_gap(numbers: set[float]) -> bool:
    ordered = sorted(numbers)
    gaps = [second - first for first, second in pairwise(ordered)]
    return len(gaps) > 1 and ordered[0] > 0 and max(gaps) / min(gaps) >= WIDE_GAP


def distributions(cells: Cells) -> Iterator[Chart]:
    """Yield a chart for each table row that has recorded latencies.

    If an operation such as a pack ran, each column has a chart with a line for each phase.
    """
    recorded = cells.only(_has_latencies)
    for row in recorded.only(lambda result: not result.cell.parameters.during).rows:
        yield _distribution(row.cells, cells.columns, row.description)
    phases = grouped(
        ((column, result.cell.without_operation), (result.cell.parameters.moment, result))
        for column, result in recorded
        if result.cell.parameters.during
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
