"""Charts made from results: rates as bars or as curves, and the distributions of latencies."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import itemgetter

from zodbshootout.model.grouping import grouped
from zodbshootout.model.parameters import RATE, SWEPT, Parameter, with_values
from zodbshootout.model.quantities import THROUGHPUT, TIME, Quantity
from zodbshootout.model.specification import Parameters
from zodbshootout.model.titles import ENVIRONMENT, RELEASE
from zodbshootout.model.titles import title_of as title_of_variant
from zodbshootout.model.units import SECONDS
from zodbshootout.reports.elements import Chart, ChartKind, Point
from zodbshootout.reports.headings import (
    Columned,
    caption_of,
    description,
    pace_of,
    rows_of,
    title_of,
)
from zodbshootout.results.figures import Figure, figure_of
from zodbshootout.results.result import CellResult

WIDE_GAP = 4.0
"""An axis is logarithmic if its widest gap between values is this many times the narrowest."""
MEGABYTE = 2**20
STEPS_PER_OCTAVE = 2
"""In charts of percentiles, the number of steps from 50 to 75 %, from 75 to 87.5 %, and so on."""


_LATENCY = replace(TIME, title="latency")
_Key = tuple[str, Parameters]
_Numbered = tuple[float, CellResult]
"""A number given by ``--define``, and a result that was measured with it."""


@dataclass(frozen=True)
class QuantityCharts:
    """The charts of one quantity."""

    cells: Sequence[Columned]
    columns: Sequence[str]
    quantity: Quantity

    def bars(self) -> Iterator[Chart]:
        """Yield a chart for each table row that is in no curve."""
        swept = {
            _key(result) for axis in SWEPT for group in self._swept(axis) for _, result in group
        }
        for row in rows_of(cell for cell in self.cells if _key(cell[1]) not in swept):
            chart = self._chart(row)
            if chart.points:
                yield chart

    def curves(self) -> Iterator[Chart]:
        """Yield a chart for each varying parameter and each combination of the other parameters."""
        for axis in SWEPT:
            for group in self._swept(axis):
                chart = self._chart(group, axis)
                if len({point.x for point in chart.points}) > 1:
                    yield chart

    def _swept(self, axis: Parameter) -> list[list[Columned]]:
        """Return groups of cells that differ in *axis* alone."""

        def value(cell: Columned) -> float:
            return float(axis.of(cell[1].cell.parameters))

        def others(cell: Columned) -> _Key:
            benchmark, parameters = _key(cell[1])
            # Rate 0 means no rate; such cells are in no curve over rates.
            any_value = float(parameters.rate > 0) if axis is RATE else 0
            return benchmark, with_values(parameters, {axis: any_value})

        groups = grouped((others(cell), cell) for cell in self.cells).values()
        return [sorted(group, key=value) for group in groups if len(set(map(value, group))) > 1]

    def _chart(self, group: Sequence[Columned], axis: Parameter | None = None) -> Chart:
        """Return a chart of a group: curves over *axis*, or bars if it is ``None``."""
        result = group[0][1]
        points = [
            point
            for column, result_of_column in group
            if (point := self._point(column, result_of_column, axis)) is not None
        ]
        results = [result for _, result in group]
        pace = pace_of(result.cell.parameters) if self.quantity.better == "more" else ""
        caption = f"{caption_of(self.quantity, results, axis)} {pace}".rstrip()
        return Chart(
            ChartKind.CURVES if axis else ChartKind.BARS,
            title_of(result, axis),
            subtitle=description(result, axis),
            x_title=axis.axis if axis else "",
            y_title=f"{caption} ({self.quantity.better} is better)",
            points=points,
            columns=self.columns,
            in_seconds=self.quantity.unit is SECONDS,
            x_logarithmic=_has_wide_gap({point.x for point in points}),
        )

    def _point(self, column: str, result: CellResult, axis: Parameter | None) -> Point | None:
        figure = figure_of(result, self.quantity)
        if figure is None or not result.keeps_up:
            return None
        return point_of(figure, column, axis.of(result.cell.parameters) if axis else 0)


def point_of(figure: Figure, column: str, x: float) -> Point:
    """Return a figure in a chart."""
    within = "" if figure.half_width is None else f" ±{100 * figure.half_width:.0f}%"
    text = f"{figure.text()}{within}"
    return Point(column, x, figure.value, text, *(figure.interval or (None, None)))


def _key(result: CellResult) -> _Key:
    return result.cell.benchmark, result.cell.parameters


def _has_wide_gap(numbers: set[float]) -> bool:
    ordered = sorted(numbers)
    gaps = [second - first for first, second in pairwise(ordered)]
    return len(gaps) > 1 and ordered[0] > 0 and max(gaps) / min(gaps) >= WIDE_GAP


def over_values(cells: Sequence[Columned], columns: Sequence[str]) -> Iterator[Chart]:
    """Yield a chart for each benchmark and each name to which ``--define`` gave several numbers.

    A curve joins the columns that differ only in the number.  The curve has the colour of the first
    of these columns.
    """
    names = dict.fromkeys(
        name
        for _, result in cells
        for name in result.cell.variant
        if name not in {RELEASE, ENVIRONMENT}
    )
    groups: dict[tuple[str, _Key], dict[str, list[_Numbered]]] = {}
    titles: dict[tuple[str, str], str] = {}
    for name in names:
        for column, result in cells:
            variant = dict(result.cell.variant)
            number = _number(str(variant.pop(name, "")))
            if number is not None:
                title = titles[name, column] = title_of_variant(result.cell.contender, variant)
                curves = groups.setdefault((name, _key(result)), {})
                curves.setdefault(title, []).append((number, result))
    for (name, _), curves in groups.items():
        if all(len(curve) > 1 for curve in curves.values()):
            firsts = {titles.get((name, column), column): column for column in reversed(columns)}
            in_colours = {column: title for title, column in firsts.items()}
            shown = [in_colours.get(column, column) for column in columns]
            yield _chart_over_values(name, curves, shown)


def _chart_over_values(
    name: str, curves: Mapping[str, Sequence[_Numbered]], columns: Sequence[str]
) -> Chart:
    _, first = next(iter(curves.values()))[0]
    is_size = not str(first.cell.variant[name]).replace(".", "").isdigit()
    points = []
    for column, curve in curves.items():
        for number, result in sorted(curve, key=itemgetter(0)):
            x = number / MEGABYTE if is_size else number
            points.append(point_of(Figure(result, THROUGHPUT), column, x))
    return Chart(
        ChartKind.CURVES,
        title_of(first),
        subtitle=description(first),
        x_title=f"{name} (MB)" if is_size else name,
        y_title=f"{caption_of(THROUGHPUT, [first])} (more is better)",
        points=points,
        columns=columns,
        x_logarithmic=_has_wide_gap({point.x for point in points}),
    )


def _number(text: str) -> float | None:
    """Parse a number or a size (in bytes); return ``None`` for any other text."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)b?", text.strip().lower())
    return float(match[1]) * 1024.0 ** " kmgt".index(match[2] or " ") if match else None


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
        ChartKind.PERCENTILES,
        title_of(result),
        subtitle=about,
        x_title="percentile of the iterations",
        y_title=f"{caption_of(_LATENCY, [result])} (less is better)",
        points=[point for line in lines for point in _percentiles(*line)],
        columns=names,
        in_seconds=True,
        x_logarithmic=True,
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
