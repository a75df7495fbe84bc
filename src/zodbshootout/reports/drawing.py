"""Charts as Altair draws them."""

from __future__ import annotations

import math
from typing import Any, Literal

import altair as alt

from zodbshootout.reports.chart import Chart, Kind, Point
from zodbshootout.reports.report import NothingToShow, Report

LIGHT = (
    "#0067a5", "#b84a00", "#007a55", "#a0328c", "#7d5a00", "#4d4d4d", "#00788c", "#b01030",
)  # fmt: skip
"""The colours of columns, in their order, each of which has a contrast of 4.5 to 1 on white."""
DARK = (
    "#5ab4f0", "#ff9f5a", "#4fd0a5", "#e596d6", "#dcbf55", "#bdbdbd", "#66d1e6", "#ff8a9c",
)  # fmt: skip
"""The same on a dark ground."""
SHOWN = "shown"
"""The parameter of a chart that has the names of the columns which are to be seen."""
BAR_STEP = 28
HEIGHT = 220
WIDTH = 420
"""Of a picture; on a page the place decides."""
ROOM = 1.5
"""How much wider than the longest bar its place is: the figures stand beside the bars."""
MARGIN = 1.3
"""How far a logarithmic axis goes beyond the figures."""
SHORTEST = 1e-9
"""Seconds that a logarithmic axis has where all figures are 0."""
MANY = 1000.0
"""From such a ratio on, a logarithmic axis is marked at powers of ten alone."""
_SECONDS = "format(datum.value, '~s') + 's'"
_NUMBER = "format(datum.value, ',~r')"
_PERCENTILE = "format(1 - 1 / datum.value, '.5~%')"
_POWERS_OF_TEN = (10.0, 100.0, 1e3, 1e4, 1e5, 1e6)
_KNOWN = "isValid(datum.low)"


def draw(
    chart: Chart, width: int | str = "container", *, filtered: bool = True
) -> alt.LayerChart | alt.FacetChart:
    """Return a chart as Altair has it, as wide as the place it is put in unless told a *width*.

    If it can be *filtered*, a signal :data:`SHOWN` has the columns that are to be seen.
    """
    layers = {Kind.BARS: _bars, Kind.CURVES: _curves, Kind.PERCENTILES: _percentiles}
    data = alt.InlineData(values=[_row(chart, point) for point in chart.points])
    base = alt.Chart(data)
    if filtered:
        base = base.transform_filter(f"indexof({SHOWN}, datum.column) >= 0")
    height = BAR_STEP * len(chart.drawn()) if chart.kind is Kind.BARS else HEIGHT
    drawn = alt.layer(*layers[chart.kind](base, chart)).properties(width=width, height=height)
    if filtered:
        drawn = drawn.add_params(alt.param(name=SHOWN, value=chart.drawn()))
    return drawn


def _row(chart: Chart, point: Point) -> dict[str, Any]:
    row: dict[str, Any] = {"column": point.column, "y": _rounded(point.y), "text": point.text}
    if chart.kind is not Kind.BARS:
        row["x"] = _rounded(point.x)
    if point.low is not None and point.high is not None:
        row |= {"low": _rounded(point.low), "high": _rounded(point.high)}
    return row | ({"knee": True} if point.knee else {})


def _rounded(number: float) -> float:
    return float(f"{number:.5g}")


def _bars(base: alt.Chart, chart: Chart) -> list[alt.Chart]:
    place = alt.Y("column:N", sort=chart.drawn(), title=None, axis=alt.Axis(labelLimit=160))
    longest = max(point.high or point.y for point in chart.points)
    figure = alt.X(
        "y:Q",
        scale=alt.Scale(domain=[0, ROOM * longest], nice=False),
        title=None,
        axis=_axis(chart, 4),
    )
    bars = _without_ceiling(base, chart)
    layers = [
        bars.mark_bar(height={"band": 0.7}).encode(y=place, x=figure, color=_colour(chart)),
        bars.transform_calculate(end=f"{_KNOWN} ? datum.high : datum.y")
        .mark_text(align="left", dx=6)
        .encode(y=place, x=alt.X("end:Q", title=None), text="text:N"),
        *(each.mark_rule(strokeDash=[4, 3]).encode(x="y:Q") for each in _ceiling(base, chart)),
    ]
    if any(point.low is not None for point in chart.points):
        intervals = bars.transform_filter(_KNOWN).mark_rule(strokeWidth=2)
        layers.append(intervals.encode(y=place, x=alt.X("low:Q", title=None), x2="high:Q"))
    return layers


def _curves(base: alt.Chart, chart: Chart) -> list[alt.Chart]:
    values = sorted({point.x for point in chart.points})
    kind: Literal["log", "linear"] = "log" if chart.x_logarithmic else "linear"
    across = alt.X(
        "x:Q",
        scale=alt.Scale(type=kind, domain=[values[0], values[-1]], nice=False, padding=10),
        title=chart.x_title,
        axis=alt.Axis(values=values, labelExpr=_NUMBER, grid=False),
    )
    figure = _measured(chart)
    curves = _without_ceiling(base, chart)
    lines = curves.encode(x=across, y=figure, color=_colour(chart))
    layers = [
        lines.mark_line(),
        lines.mark_point(filled=True, size=60, opacity=1).encode(shape=_shape(chart)),
        lines.mark_circle(size=400, opacity=0).encode(tooltip=_told(chart)),
        *(
            each.mark_line(strokeDash=[4, 3]).encode(x=across, y=figure)
            for each in _ceiling(base, chart)
        ),
    ]
    # Vega says so on the console where a layer has nothing in it.
    if any(point.knee for point in chart.points):
        knees = lines.transform_filter("datum.knee")
        layers.insert(2, knees.mark_point(size=300, strokeWidth=1.5, filled=False))
    if any(point.low is not None for point in chart.points):
        bands = curves.transform_filter(_KNOWN).mark_area(opacity=0.18)
        low = alt.Y("low:Q", title=None)
        layers.insert(0, bands.encode(x=across, y=low, y2="high:Q", color=_colour(chart)))
    return layers


def _percentiles(base: alt.Chart, chart: Chart) -> list[alt.Chart]:
    last = max(4.0, *(point.x for point in chart.points))
    across = alt.X(
        "x:Q",
        scale=alt.Scale(type="log", domain=[2, last], nice=False),
        title=chart.x_title,
        axis=alt.Axis(
            values=[2.0, *(each for each in _POWERS_OF_TEN if each <= last)],
            labelExpr=_PERCENTILE,
        ),
    )
    figure = _measured(chart)
    lines = base.encode(x=across, y=figure, color=_colour(chart))
    return [
        lines.mark_line(interpolate="step-before"),
        lines.mark_point(filled=True, size=40, opacity=1).encode(shape=_shape(chart)),
        lines.mark_circle(size=300, opacity=0).encode(tooltip=_told(chart)),
    ]


def _measured(chart: Chart) -> alt.Y:
    """Return the axis of curves, from 0 on for rates; times are too different for that."""
    if not chart.in_seconds:
        return alt.Y("y:Q", scale=alt.Scale(zero=True), title=None, axis=_axis(chart, 5))
    seconds = [point.y for point in chart.points if point.y > 0] or [SHORTEST]
    low, high = min(seconds), max(seconds)
    scale = alt.Scale(type="log", domain=[low / MARGIN, high * MARGIN], nice=False)
    ticks = [each for each in _round_numbers(low, high) if low / MARGIN <= each <= high * MARGIN]
    axis = alt.Axis(values=ticks, labelExpr=_SECONDS) if ticks else _axis(chart, 3)
    return alt.Y("y:Q", scale=scale, title=None, axis=axis)


def _round_numbers(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten from *low* to *high*."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < MANY else (1,)
    return [step * 10.0**power for power in powers for step in steps]


def _axis(chart: Chart, ticks: int) -> alt.Axis:
    label = _SECONDS if chart.in_seconds else _NUMBER
    return alt.Axis(tickCount=ticks, labelExpr=label, labelOverlap=True)


def _colour(chart: Chart) -> alt.Color:
    # The names of bars stand beside them.
    legend = alt.Legend(
        title=None, orient="bottom", columns=2, values=chart.drawn(), symbolOpacity=1
    )
    return alt.Color(
        "column:N",
        scale=alt.Scale(domain=list(chart.columns)),
        legend=None if chart.kind is Kind.BARS else legend,
    )


def _shape(chart: Chart) -> alt.Shape:
    return alt.Shape("column:N", scale=alt.Scale(domain=list(chart.columns)))


def _told(chart: Chart) -> list[alt.Tooltip]:
    """Return what is shown of a point under the pointer."""
    column, figure = (
        alt.Tooltip("column:N", title="contender"),
        alt.Tooltip("text:N", title="figure"),
    )
    if chart.kind is Kind.PERCENTILES:  # the figure says of which
        return [column, figure]
    return [column, alt.Tooltip("x:Q", title=chart.x_title, format=",~r"), figure]


def _without_ceiling(base: alt.Chart, chart: Chart) -> alt.Chart:
    if chart.ceiling is None:
        return base
    return base.transform_filter(alt.datum.column != chart.ceiling)


def _ceiling(base: alt.Chart, chart: Chart) -> list[alt.Chart]:
    if chart.ceiling is None:
        return []
    return [base.transform_filter(alt.datum.column == chart.ceiling)]


def picture(report: Report) -> alt.ConcatChart:
    """Return the charts of a report and of its parts, two beside each other.

    :raises NothingToShow: when it has none
    """
    charts = [chart for part in (report, *report.further) for chart in part.charts]
    if not charts:
        raise NothingToShow("no chart can be drawn: there are no figures")
    drawn = [
        draw(chart, WIDTH, filtered=False).properties(
            title=alt.Title(chart.title, subtitle=[chart.y_title, chart.subtitle])
        )
        for chart in charts
    ]
    whole: alt.ConcatChart = (
        alt.concat(*drawn, columns=2)
        .resolve_scale(color="independent", shape="independent")
        .configure(background="white", font="sans-serif", padding=16)
        .configure_range(category=list(LIGHT))
        .configure_view(stroke=None)
        .configure_title(anchor="start", subtitleColor="#555555")
    )
    return whole
