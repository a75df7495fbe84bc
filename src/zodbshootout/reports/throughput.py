"""Charts of figures: a bar for each contender, or curves over what was varied."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from zodbshootout.client.specification import Parameters
from zodbshootout.reports.chart import Chart, Kind, Point
from zodbshootout.reports.figures import OBJECTS, Metric
from zodbshootout.reports.headings import (
    CLIENTS_AXIS,
    SIZE_AXIS,
    Heading,
    description,
    extent,
    heading_of,
    title_of,
)
from zodbshootout.reports.knee import knee_of
from zodbshootout.results.result import CellResult

FAR_APART = 4.0
"""From such a ratio of the largest gap to the smallest one on, an axis is logarithmic."""

Placed = tuple[str, CellResult]
"""A result, and what stands above its figures."""


@dataclass(frozen=True)
class Axis:
    """A parameter that figures are drawn over."""

    title: str
    value: Callable[[Parameters], int]
    without: Callable[[Parameters], Parameters]
    """Return parameters that are alike where only this one differs."""


CLIENTS = Axis(
    CLIENTS_AXIS,
    lambda parameters: parameters.crew.size,
    lambda parameters: replace(parameters, crew=replace(parameters.crew, size=0)),
)
OBJECTS_AXIS = Axis(
    "objects per transaction",
    lambda parameters: parameters.objects,
    lambda parameters: replace(parameters, objects=0),
)
SIZE = Axis(
    SIZE_AXIS,
    lambda parameters: parameters.object_size,
    lambda parameters: replace(parameters, object_size=0),
)
AXES = (CLIENTS, OBJECTS_AXIS, SIZE)
"""What a sweep varies."""

_Key = tuple[str, Parameters]


@dataclass(frozen=True)
class Figures:
    """What was measured, to be drawn in one unit."""

    placed: Sequence[Placed]
    columns: Sequence[str]
    headings: Mapping[str, Heading]
    ceiling: str | None = None
    """The column that is drawn as the limit of the others, if one is."""
    unit: Metric = OBJECTS

    def bars(self) -> Iterator[Chart]:
        """Return a chart for each row of the tables that is in no curve."""
        swept = {
            _whole(result)
            for axis in AXES
            for group in self._swept(axis).values()
            for _, result in group
        }
        rows: dict[_Key, list[Placed]] = {}
        for column, result in self.placed:
            rows.setdefault(_whole(result), []).append((column, result))
        for key, group in sorted(rows.items(), key=lambda row: extent(row[1][0][1])):
            if key not in swept:
                yield self._chart(Kind.BARS, group, title=title_of(group[0][1], self.headings))

    def curves(self) -> Iterator[Chart]:
        """Return a chart for each benchmark and each parameter that was varied.

        What else was varied has charts of its own.
        """
        for axis in AXES:
            for group in self._swept(axis).values():
                title = title_of(group[0][1], self.headings, swept=axis is OBJECTS_AXIS)
                chart = self._chart(Kind.CURVES, group, title, axis)
                if len({point.x for point in chart.points}) > 1:
                    yield chart

    def _swept(self, axis: Axis) -> dict[_Key, list[Placed]]:
        """Return the results that differ in the value of an axis alone, where there are several."""
        groups: dict[_Key, list[Placed]] = {}
        for column, result in self.placed:
            key = (result.cell.benchmark, axis.without(_whole(result)[1]))
            groups.setdefault(key, []).append((column, result))
        return {
            key: sorted(group, key=lambda each: axis.value(each[1].cell.parameters))
            for key, group in groups.items()
            if len({axis.value(result.cell.parameters) for _, result in group}) > 1
        }

    def _chart(
        self, kind: Kind, group: Sequence[Placed], title: str, axis: Axis | None = None
    ) -> Chart:
        result = group[0][1]
        heading = heading_of(self.headings, result)
        points = [
            point
            for column, each in group
            if (point := self._point(column, each, axis)) is not None
        ]
        rates = self.unit.better == "more"
        caption = self.unit.caption.format(counted=heading.counted)
        unit = f"{caption[0].lower()}{caption[1:]}"
        chart = Chart(
            kind,
            title,
            subtitle=description(result, heading, over=axis.title if axis else ""),
            x_title=axis.title if axis else "",
            y_title=f"{unit} ({self.unit.better} is better)",
            points=points,
            columns=self.columns,
            in_seconds=not rates,
            ceiling=self.ceiling,
            x_logarithmic=_far_apart({point.x for point in points}),
        )
        return _with_knees(chart) if kind is Kind.CURVES and rates else chart

    def _point(self, column: str, result: CellResult, axis: Axis | None) -> Point | None:
        value = self.unit.value(result)
        if value is None:
            return None
        low, high = _ends(result) if self.unit is OBJECTS else (None, None)
        text = self.unit.text(result, value)
        if result.half_width is not None and self.unit is OBJECTS:
            text = f"{text} ±{100 * result.half_width:.0f}%"
        x = axis.value(result.cell.parameters) if axis else 0
        return Point(column, x, value, text, low, high)


def _ends(result: CellResult) -> tuple[float, float] | tuple[None, None]:
    """Return the ends of the interval of a rate, which are not known where a time could be 0."""
    if result.interval is None or result.interval[0] <= 0:
        return None, None
    shortest, longest = result.interval
    return result.work / longest, result.work / shortest


def _whole(result: CellResult) -> _Key:
    return result.cell.benchmark, replace(result.cell.parameters, owner="")


def _far_apart(numbers: set[float]) -> bool:
    ordered = sorted(numbers)
    gaps = [second - first for first, second in pairwise(ordered)]
    return len(gaps) > 1 and ordered[0] > 0 and max(gaps) / min(gaps) >= FAR_APART


def _with_knees(chart: Chart) -> Chart:
    marked = []
    for column in chart.drawn():
        points = chart.of(column)
        across = [math.log(point.x) if chart.x_logarithmic else point.x for point in points]
        knee = knee_of(points, across)
        marked += [replace(point, knee=point is knee) for point in points]
    return replace(chart, points=marked)
