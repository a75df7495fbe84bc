"""Charts drawn with Altair, and pictures of them in SVG and PNG."""

from __future__ import annotations

import json
import math
from typing import Any, Literal

import altair as alt
import vl_convert
from rich.console import Console

from zodbshootout.errors import UserError
from zodbshootout.model.quantities import P99
from zodbshootout.reports.elements import Chart, ChartKind, Point, Report

LIGHT = (
    "#0067a5", "#b84a00", "#007a55", "#a0328c", "#7d5a00", "#4d4d4d", "#00788c", "#b01030",
)  # fmt: skip
"""The colours of columns, in order; each has a contrast of at least 4.5 to 1 on white."""
DARK = (
    "#5ab4f0", "#ff9f5a", "#4fd0a5", "#e596d6", "#dcbf55", "#bdbdbd", "#66d1e6", "#ff8a9c",
)  # fmt: skip
"""The colours of columns on a dark background, in the same order."""
SHOWN = "shown"
"""The name of the signal that holds the names of a chart's visible columns."""
BAR_STEP = 28
GROUP_STEP = 15
GROUP_GAP = 12
ROOM_FOR_FIGURES = 1.5
"""The length of an axis relative to its longest bar, so that a figure fits after the bar."""
HEIGHT = 220
WIDTH = 420
"""The width of a chart in a picture, in pixels; on a page, a chart is as wide as its container."""
ROOM = 1.3
"""The highest value on an axis, as a multiple of the highest figure."""
MARGIN = 1.3
"""The factor by which a logarithmic axis extends beyond the figures."""
SHORTEST = 1e-9
"""The time in the middle of a logarithmic axis, in seconds, if all times are 0."""
WIDE = 1000.0
"""If the longest time is at least this multiple of the shortest, only powers of ten have ticks."""
_SECONDS = "format(datum.value, '~s') + 's'"
_NUMBER = "format(datum.value, ',~r')"
_PERCENTILE = "format(1 - 1 / datum.value, '.5~%')"
_POWERS_OF_TEN = (10.0, 100.0, 1e3, 1e4, 1e5, 1e6)
_KNOWN = "isValid(datum.low)"


def draw(chart: Chart, *, in_picture: bool = False) -> alt.LayerChart | alt.FacetChart:
    """Return Altair's chart for a page, or for a picture.

    On a page, the chart is as wide as its container, and its signal :data:`SHOWN` holds the names
    of the visible columns.
    """
    layers = {
        ChartKind.BARS: _bars,
        ChartKind.STACKS: _stacks,
        ChartKind.GROUPS: _groups,
        ChartKind.CURVES: _curves,
        ChartKind.DISTANCES: _distances,
        ChartKind.RELEASES: _distances,
        ChartKind.PERCENTILES: _percentiles,
        ChartKind.TIMES: _times,
    }
    limit = _limit(chart)
    data = alt.InlineData(values=[_row(chart, point, limit) for point in chart.points])
    base = alt.Chart(data)
    if not in_picture:
        base = base.transform_filter(f"indexof({SHOWN}, datum.column) >= 0")
    parts = [*layers[chart.kind](base, chart), *_marks(chart, in_picture=in_picture)]
    drawn = alt.layer(*parts).properties(
        width=WIDTH if in_picture else "container",
        height=_height(chart),
    )
    if chart.kind is ChartKind.BARS:
        drawn = drawn.resolve_axis(y="independent")
    if not in_picture:
        drawn = drawn.add_params(alt.param(name=SHOWN, value=chart.drawn()))
    return drawn


def _height(chart: Chart) -> int:
    if chart.kind is ChartKind.GROUPS:
        groups = len({point.part for point in chart.points})
        return groups * (GROUP_GAP + GROUP_STEP * len(chart.drawn()))
    has_bars = chart.kind in {ChartKind.BARS, ChartKind.STACKS}
    return BAR_STEP * len(chart.drawn()) if has_bars else HEIGHT


def _row(chart: Chart, point: Point, limit: float) -> dict[str, Any]:
    row: dict[str, Any] = {"column": point.column, "y": _rounded(point.y), "text": point.text}
    if point.part:
        row["part"] = point.part
    if chart.kind is not ChartKind.STACKS and chart.kind is not ChartKind.BARS:
        row["x"] = _rounded(point.x)
    if point.low is not None and point.high is not None:
        row |= {"low": _rounded(point.low), "high": _rounded(min(point.high, limit))}
        if point.high > limit:
            row["beyond"] = True
    return row


def _limit(chart: Chart) -> float:
    """Return the highest value on the axis that shows figures."""
    return ROOM * max(point.y for point in chart.points)


def _rounded(number: float) -> float:
    return float(f"{number:.5g}")


def _bars(base: alt.Chart, chart: Chart) -> list[alt.Chart]:
    names = alt.Axis(labelLimit=200)
    texts = json.dumps({point.column: point.text for point in chart.points})
    # The figures are labels of a second axis, because text in the chart could be clipped.
    figures = alt.Axis(
        orient="right", offset=8, domain=False, ticks=False, labelLimit=200,
        labelExpr=f"{texts}[datum.value]",
    )  # fmt: skip
    place = alt.Y("column:N", sort=chart.drawn(), title=None, axis=names)
    figure = alt.X(
        "y:Q",
        scale=alt.Scale(domain=[0, _limit(chart)], nice=False),
        title=None,
        axis=_axis(chart, 4),
    )
    height = {"band": 0.7}
    layers = [
        base.mark_bar(height=height).encode(y=place, x=figure, color=_colour(chart)),
        base.mark_bar(opacity=0).encode(y=place.axis(figures), x=figure),
    ]
    bare = place.axis(None)
    if any(point.low is None for point in chart.points) and not chart.in_seconds:
        unknown = base.transform_filter(f"!{_KNOWN}")
        layers.append(unknown.mark_bar(height=height, color=_HATCHES).encode(y=bare, x=figure))
    if any(point.low is not None for point in chart.points):
        intervals = base.transform_filter(_KNOWN).mark_rule(strokeWidth=2)
        layers.append(intervals.encode(y=bare, x=alt.X("low:Q", title=None), x2="high:Q"))
    if any(point.high is not None and point.high > _limit(chart) for point in chart.points):
        beyond = base.transform_filter("datum.beyond")
        arrows = beyond.mark_point(shape="triangle-right", filled=True, size=90, opacity=1)
        layers.append(arrows.encode(y=bare, x="high:Q"))
    return layers


def _stacks(base: alt.Chart, chart: Chart) -> list[alt.Chart]:
    parts = list(dict.fromkeys(point.part for point in chart.points))
    legend = alt.Legend(title=None, orient="bottom", columns=len(parts), symbolOpacity=1)
    bars = base.mark_bar(height={"band": 0.7}).encode(
        y=alt.Y(
            "column:N", sort=chart.drawn(), title=None, axis=alt.Axis(labelLimit=200)
        ),
        x=alt.X("sum(y):Q", title=None, axis=_axis(chart, 4)),
        color=alt.Color("part:N", scale=alt.Scale(domain=parts), legend=legend),
        order=alt.Order("place:Q"),
        tooltip=[
            alt.Tooltip("column:N", title="contender"),
            alt.Tooltip("part:N", title="step"),
            alt.Tooltip("text:N", title="time"),
        ],
    )  # fmt: skip
    return [bars.transform_calculate(place=f"indexof({json.dumps(parts)}, datum.part)")]


def _groups(base: alt.Chart, chart: Chart) -> list[alt.Chart]:
    groups = list(dict.fromkeys(point.part for point in chart.points))
    names = alt.Axis(labelLimit=200, domain=False, ticks=False)
    scale = alt.Scale(paddingInner=GROUP_GAP / (GROUP_GAP + GROUP_STEP * len(chart.drawn())))
    bars = base.encode(
        y=alt.Y("part:N", sort=groups, title=None, axis=names, scale=scale),
        yOffset=alt.YOffset("column:N", sort=chart.drawn()),
        x=alt.X("x:Q", scale=alt.Scale(domain=[0, ROOM_FOR_FIGURES]), title=None, axis=None),
    )
    return [
        bars.mark_bar().encode(color=_colour(chart)),
        bars.mark_text(align="left", baseline="middle", dx=4).encode(text="text:N"),
    ]


_HATCHES: Any = {
    "gradient": "linear",
    "x1": 0, "y1": 0, "x2": 1, "y2": 1,
    "stops": [
        {"color": f"rgba(255,255,255,{opacity})", "offset": (step + end) / 20}
        for step, opacity in enumerate([0, 0.65] * 10)
        for end in (0, 1)
    ],
}  # fmt: skip
"""Stripes over a bar whose interval is unknown."""


def _lines(base: alt.Chart, chart: Chart, across: alt.X, **line: Any) -> list[alt.Chart]:
    """Return the layers of one line per column, with points and tooltips."""
    is_dense = chart.kind in {ChartKind.PERCENTILES, ChartKind.TIMES}
    point, target = (40, 300) if is_dense else (60, 400)
    lines = base.encode(x=across, y=_measured(chart), color=_colour(chart))
    shape = alt.Shape("column:N", scale=alt.Scale(domain=list(chart.columns)))
    return [
        lines.mark_line(**line),
        lines.mark_point(filled=True, size=point, opacity=1).encode(shape=shape),
        lines.mark_circle(size=target, opacity=0).encode(tooltip=_tooltip(chart)),
    ]


def _curves(base: alt.Chart, chart: Chart) -> list[alt.Chart]:
    values = sorted({point.x for point in chart.points})
    kind: Literal["log", "linear"] = "log" if chart.x_logarithmic else "linear"
    across = alt.X(
        "x:Q",
        scale=alt.Scale(type=kind, domain=[values[0], values[-1]], nice=False, padding=10),
        title=chart.x_title,
        axis=alt.Axis(values=values, labelExpr=_NUMBER, grid=False),
    )
    return [*_intervals(base, chart, across), *_lines(base, chart, across)]


def _intervals(base: alt.Chart, chart: Chart, across: alt.X) -> list[alt.Chart]:
    """Return a layer of intervals, drawn as bands or bars, if any interval is known."""
    if all(point.low is None for point in chart.points):
        return []
    known = base.transform_filter(_KNOWN)
    band, bars = known.mark_area(opacity=0.18, clip=True), known.mark_rule(strokeWidth=2, clip=True)
    drawn = band if chart.kind is ChartKind.CURVES else bars
    low = alt.Y("low:Q", title=None)
    return [drawn.encode(x=across, y=low, y2="high:Q", color=_colour(chart))]


def _distances(base: alt.Chart, chart: Chart) -> list[alt.Chart]:
    across = alt.X(
        "x:Q",
        scale=alt.Scale(nice=False, padding=8),
        title=chart.x_title,
        axis=_releases(chart) or alt.Axis(tickCount=6, labelExpr=_NUMBER),
    )
    dashes = {"strokeDash": [6, 4]} if chart.estimated else {}
    return [*_intervals(base, chart, across), *_lines(base, chart, across, **dashes)]


def _releases(chart: Chart) -> alt.Axis | None:
    """Return the horizontal axis of a chart over releases, ``None`` for other charts."""
    if chart.kind is not ChartKind.RELEASES:
        return None
    names = {int(point.x): point.part for point in chart.points}
    label = f"{json.dumps(names)}[datum.value]"
    return alt.Axis(values=sorted(names), labelExpr=label, labelOverlap=True, grid=False)


def _marks(chart: Chart, *, in_picture: bool) -> list[alt.Chart]:
    """Return the layers of the chart's marks: the interval, the point and the label of each."""
    if not chart.marks:
        return []
    values = [
        {"x": mark.x, "y": mark.y, "low": mark.low, "high": mark.high, "label": mark.text,
         "sentence": mark.sentence, "one": mark.columns[0], "other": mark.columns[1],
         "number": number}
        for number, mark in enumerate(chart.marks)
    ]  # fmt: skip
    base = alt.Chart(alt.InlineData(values=values))
    if not in_picture:
        base = base.transform_filter(
            f"indexof({SHOWN}, datum.one) >= 0 && indexof({SHOWN}, datum.other) >= 0"
        )
    place = base.encode(y=alt.Y("y:Q", title=None))
    across = alt.X("x:Q", title=chart.x_title)
    kind = "step" if chart.kind is ChartKind.RELEASES else "crossing"
    sentence = alt.Tooltip("sentence:N", title=kind)
    return [
        place.mark_rule(strokeWidth=1.5, clip=True).encode(x=alt.X("low:Q"), x2="high:Q"),
        place.mark_point(shape="diamond", size=110, strokeWidth=2).encode(
            x=across, tooltip=[sentence]
        ),
        *(
            place.transform_filter(f"datum.number === {number}")
            .mark_text(dy=_offset(number), fontWeight="bold")
            .encode(x=across, text="label:N")
            for number in range(len(values))
        ),
    ]


def _offset(number: int) -> int:
    """Return a label's distance below its mark, in pixels; it is negative for labels above."""
    distance = 14 + 14 * (number // 2)
    return distance if number % 2 else -distance


def _percentiles(base: alt.Chart, chart: Chart) -> list[alt.Chart]:
    last = max(4.0, *(point.x for point in chart.points))
    ticks = [2.0, *(power for power in _POWERS_OF_TEN if power <= last)]
    across = alt.X(
        "x:Q",
        scale=alt.Scale(type="log", domain=[2, last], nice=False),
        title=chart.x_title,
        axis=alt.Axis(values=ticks, labelExpr=_PERCENTILE),
    )
    return _lines(base, chart, across, interpolate="step-before")


def _times(base: alt.Chart, chart: Chart) -> list[alt.Chart]:
    across = alt.X("x:Q", title=chart.x_title, axis=alt.Axis(tickCount=6, labelExpr=_NUMBER))
    return _lines(base, chart, across)


def _measured(chart: Chart) -> alt.Y:
    """Return the vertical axis: logarithmic for times, from 0 on for other figures.

    Times over distances have a linear axis, on which they are straight lines.  Releases differ so
    little that an axis from 0 on would hide their steps.
    """
    if chart.kind is ChartKind.RELEASES:
        return alt.Y("y:Q", scale=alt.Scale(zero=False), title=None, axis=_axis(chart, 5))
    if not chart.in_seconds or chart.kind is ChartKind.DISTANCES:
        scale = alt.Scale(domain=[0, _limit(chart)], nice=False)
        return alt.Y("y:Q", scale=scale, title=None, axis=_axis(chart, 5))
    seconds = [point.y for point in chart.points if point.y > 0] or [SHORTEST]
    low, high = min(seconds), max(seconds)
    scale = alt.Scale(type="log", domain=[low / MARGIN, high * MARGIN], nice=False)
    ticks = [tick for tick in _round_numbers(low, high) if low / MARGIN <= tick <= high * MARGIN]
    axis = alt.Axis(values=ticks, labelExpr=_SECONDS) if len(ticks) > 1 else _axis(chart, 3)
    return alt.Y("y:Q", scale=scale, title=None, axis=axis)


def _round_numbers(low: float, high: float) -> list[float]:
    """Return powers of ten that span *low* to *high*.

    If the range is short, also return 2 and 5 times each power.
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < WIDE else (1,)
    return [step * 10.0**power for power in powers for step in steps]


def _axis(chart: Chart, ticks: int) -> alt.Axis:
    label = _SECONDS if chart.in_seconds else _NUMBER
    return alt.Axis(tickCount=ticks, labelExpr=label, labelOverlap=True)


def _colour(chart: Chart) -> alt.Color:
    # Bars need no legend: their names are the labels of an axis.
    legend = alt.Legend(
        title=None, orient="bottom", columns=2, values=chart.drawn(), symbolOpacity=1
    )
    return alt.Color(
        "column:N",
        scale=alt.Scale(domain=list(chart.columns)),
        legend=None if chart.kind is ChartKind.BARS else legend,
    )


def _tooltip(chart: Chart) -> list[alt.Tooltip]:
    column = alt.Tooltip("column:N", title="contender")
    figure = alt.Tooltip("text:N", title="figure")
    if chart.kind is ChartKind.PERCENTILES:  # x is the inverse of a fraction
        return [column, figure]
    if chart.kind is ChartKind.RELEASES:
        return [column, alt.Tooltip("part:N", title="release"), figure]
    return [column, alt.Tooltip("x:Q", title=chart.x_title, format=",~r"), figure]


def write_svg(report: Report, console: Console) -> None:
    """Write the charts as one picture in SVG.

    :raises UserError: if the report has no charts
    """
    console.file.write(vl_convert.vegalite_to_svg(_picture(report)))


def write_png(report: Report, console: Console) -> None:
    """Write the charts as one picture in PNG.

    :raises UserError: if the report has no charts
    """
    file: Any = console.file
    picture = vl_convert.vegalite_to_png(_picture(report), scale=2)
    file.flush()
    file.buffer.write(picture)


def _picture(report: Report) -> str:
    """Return the charts of a report and of its parts in two columns, as JSON for Vega-Lite."""
    charts = [chart for chart in report.all_charts() if chart.percentile in {"", P99.name}]
    if not charts:
        raise UserError("no chart can be drawn: there are no figures")
    drawn = []
    for chart in charts:
        subtitle = [chart.y_title, chart.subtitle, *(mark.sentence for mark in chart.marks)]
        title = alt.Title(chart.title, subtitle=subtitle)
        drawn.append(draw(chart, in_picture=True).properties(title=title))
    picture = (
        alt.concat(*drawn, columns=2)
        .resolve_scale(color="independent", shape="independent")
        .configure(background="white", font="sans-serif", padding=16)
        .configure_range(category=list(LIGHT))
        .configure_view(stroke=None)
        .configure_point(color="black")
        .configure_title(anchor="start", subtitleColor="#555555")
    )
    return json.dumps(picture.to_dict())
