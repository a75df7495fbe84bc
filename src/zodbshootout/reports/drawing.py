"""Charts drawn with Altair, and pictures of them in SVG and PNG."""

from __future__ import annotations

import json
import math
import re
import struct
import zlib
from typing import Any

import altair as alt
import vl_convert
from rich.console import Console

from zodbshootout.errors import UserError
from zodbshootout.model.quantities import P99
from zodbshootout.reports.elements import Chart, ChartKind, Labels, Report, Scale

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
FEW = 12
"""With at most this many positions on a scale across, each has a tick; with at most this many
points on each line, points are large."""
_LABELS = {
    Labels.NUMBERS: "format(datum.value, ',~r')",
    Labels.SECONDS: "format(datum.value, '~s') + 's'",
    Labels.PERCENTILES: "format(1 - 1 / datum.value, '.5~%')",
}
_POWERS_OF_TEN = (10.0, 100.0, 1e3, 1e4, 1e5, 1e6)
_LENGTH_OF_END = 12
"""The length of the last chunk of a PNG, in bytes."""
_TEXT = b"tEXtSoftware\0zodbshootout"
_SOFTWARE = struct.pack(f">I{len(_TEXT)}sI", len(_TEXT) - 4, _TEXT, zlib.crc32(_TEXT))
"""A chunk of a PNG that names the program."""
_UNDRAWABLE = re.compile(
    r"((?<!\\)(?:\\\\)*)"
    r"(?:\\u00[0189][0-9a-f]|\\[bf]|\x7f|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2})"
)
"""In JSON, after escaped backslashes if there are any: a control character, or a character that is
two characters of JavaScript, which shortens texts and may cut it in half."""
_KNOWN = "isValid(datum.low)"


def draw(chart: Chart, *, in_picture: bool = False) -> alt.LayerChart | alt.FacetChart:
    """Return Altair's chart for a page, or for a picture.

    On a page, the chart is as wide as its container, and its signal :data:`SHOWN` holds the names
    of the visible columns.
    """
    layers = {ChartKind.LINES: _lines, ChartKind.BARS: _bars, ChartKind.STACKS: _stacks}
    base = alt.Chart(alt.InlineData(values=_rows(chart)))
    if not in_picture:
        base = base.transform_filter(f"indexof({SHOWN}, datum.column) >= 0")
    parts = [*layers[chart.kind](base, chart), *_marks(chart, in_picture=in_picture)]
    drawn = alt.layer(*parts).properties(
        width=WIDTH if in_picture else "container",
        height=_height(chart),
    )
    if _has_plain_bars(chart):
        drawn = drawn.resolve_axis(y="independent")
    if not in_picture:
        drawn = drawn.add_params(alt.param(name=SHOWN, value=chart.drawn()))
    return drawn


def _height(chart: Chart) -> int:
    if chart.kind is ChartKind.LINES:
        return HEIGHT
    bars = len(chart.drawn())
    if chart.kind is ChartKind.STACKS or _has_plain_bars(chart):
        return BAR_STEP * bars
    return len(chart.x.names) * (GROUP_GAP + GROUP_STEP * bars)


def _has_plain_bars(chart: Chart) -> bool:
    """Return whether there is one bar per column, whose name is the label of an axis."""
    return chart.kind is ChartKind.BARS and not chart.x.names


def _rows(chart: Chart) -> list[dict[str, Any]]:
    limit = _limit(chart)
    longest: dict[float, float] = {}
    for point in chart.points:
        longest[point.x] = max(point.y, longest.get(point.x, 0.0))
    rows = []
    for point in chart.points:
        row: dict[str, Any] = {"column": point.column, "y": _rounded(point.y), "text": point.text}
        if at := chart.x.text(point.x):
            row["at"] = at
        if chart.kind is ChartKind.LINES:
            row["x"] = _rounded(point.x)
        elif chart.kind is ChartKind.BARS and at:
            row["part"] = _rounded(max(0.0, point.y / longest[point.x]))
        if point.low is not None and point.high is not None:
            row |= {"low": _rounded(point.low), "high": _rounded(min(point.high, limit))}
            if point.high > limit:
                row["beyond"] = True
        rows.append(row)
    return rows


def _limit(chart: Chart) -> float:
    """Return the highest value on the axis that shows figures."""
    return ROOM * max(point.y for point in chart.points)


def _rounded(number: float) -> float:
    return float(f"{number:.5g}")


def _bars(base: alt.Chart, chart: Chart) -> list[alt.Chart]:
    """Return the layers of one bar per column, with intervals, or of groups of bars."""
    if chart.x.names:
        return _groups(base, chart)
    texts = json.dumps({point.column: point.text for point in chart.points})
    # The figures are labels of a second axis, because text in the chart could be clipped.
    figures = alt.Axis(
        orient="right", offset=8, domain=False, ticks=False, labelLimit=200,
        labelExpr=f"{texts}[datum.value]",
    )  # fmt: skip
    place = _place(chart)
    scale = alt.Scale(domain=[0, _limit(chart)], nice=False)
    figure = alt.X("y:Q", scale=scale, title=None, axis=_axis(chart.y, tickCount=4))
    height = {"band": 0.7}
    layers = [
        base.mark_bar(height=height).encode(y=place, x=figure, color=_colour(chart)),
        base.mark_bar(opacity=0).encode(y=place.axis(figures), x=figure),
    ]
    bare = place.axis(None)
    if any(point.low is None for point in chart.points):
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


def _groups(base: alt.Chart, chart: Chart) -> list[alt.Chart]:
    names = alt.Axis(labelLimit=200, domain=False, ticks=False)
    scale = alt.Scale(paddingInner=GROUP_GAP / (GROUP_GAP + GROUP_STEP * len(chart.drawn())))
    bars = base.encode(
        y=alt.Y("at:N", sort=list(chart.x.names), title=None, axis=names, scale=scale),
        yOffset=alt.YOffset("column:N", sort=chart.drawn()),
        x=alt.X("part:Q", scale=alt.Scale(domain=[0, ROOM_FOR_FIGURES]), title=None, axis=None),
    )
    return [
        bars.mark_bar().encode(color=_colour(chart)),
        bars.mark_text(align="left", baseline="middle", dx=4).encode(text="text:N"),
    ]


def _stacks(base: alt.Chart, chart: Chart) -> list[alt.Chart]:
    parts = list(chart.x.names)
    legend = alt.Legend(title=None, orient="bottom", columns=len(parts), symbolOpacity=1)
    bars = base.mark_bar(height={"band": 0.7}).encode(
        y=_place(chart),
        x=alt.X("sum(y):Q", title=None, axis=_axis(chart.y, tickCount=4)),
        color=alt.Color("at:N", scale=alt.Scale(domain=parts), legend=legend),
        order=alt.Order("place:Q"),
        tooltip=_tooltip(chart),
    )
    return [bars.transform_calculate(place=f"indexof({json.dumps(parts)}, datum.at)")]


def _place(chart: Chart) -> alt.Y:
    """Return the vertical axis of charts with one bar per column."""
    return alt.Y("column:N", sort=chart.drawn(), title=None, axis=alt.Axis(labelLimit=200))


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


def _lines(base: alt.Chart, chart: Chart) -> list[alt.Chart]:
    """Return the layers of one line per column, with points, tooltips and intervals."""
    across, up, colour = _across(chart), _up(chart), _colour(chart)
    is_dense = len(chart.points) > FEW * len(chart.drawn())
    point, target = (40, 300) if is_dense else (60, 400)
    line: dict[str, Any] = {"strokeDash": [6, 4]} if chart.estimated else {}
    if chart.x.labels is Labels.PERCENTILES:
        line["interpolate"] = "step-before"
    lines = base.encode(x=across, y=up, color=colour)
    shape = alt.Shape("column:N", scale=alt.Scale(domain=list(chart.columns)))
    layers = [
        lines.mark_line(**line),
        lines.mark_point(filled=True, size=point, opacity=1).encode(shape=shape),
        lines.mark_circle(size=target, opacity=0).encode(tooltip=_tooltip(chart)),
    ]
    if any(point.low is not None for point in chart.points):
        known = base.transform_filter(_KNOWN)
        bars = known.mark_rule(strokeWidth=2, clip=True)
        band = known.mark_area(opacity=0.18, clip=True)
        intervals = bars if chart.x.names else band
        low = alt.Y("low:Q", title=None)
        layers.insert(0, intervals.encode(x=across, y=low, y2="high:Q", color=colour))
    return layers


def _across(chart: Chart) -> alt.X:
    """Return the horizontal axis of lines, from the first to the last position."""
    places = sorted({point.x for point in chart.points})
    last = max(4.0, places[-1])
    if chart.x.labels is Labels.PERCENTILES:
        places = [2.0, *(power for power in _POWERS_OF_TEN if power <= last), last]
        ticks = _axis(chart.x, values=places[:-1])
    elif len(places) <= FEW or chart.x.names:
        ticks = _axis(chart.x, values=places, grid=False)
    else:
        ticks = _axis(chart.x, tickCount=6)
    scale = alt.Scale(
        type="log" if chart.x.logarithmic else "linear",
        domain=[places[0], places[-1]], nice=False, padding=10,
    )  # fmt: skip
    return alt.X("x:Q", scale=scale, title=chart.x.title, axis=ticks)


def _up(chart: Chart) -> alt.Y:
    """Return the vertical axis of lines."""
    if not chart.y.logarithmic:
        zero = alt.Scale(domain=[0, _limit(chart)], nice=False)
        scale = zero if chart.y.from_zero else alt.Scale(zero=False)
        return alt.Y("y:Q", scale=scale, title=None, axis=_axis(chart.y, tickCount=5))
    figures = [point.y for point in chart.points if point.y > 0] or [SHORTEST]
    low, high = min(figures), max(figures)
    scale = alt.Scale(type="log", domain=[low / MARGIN, high * MARGIN], nice=False)
    ticks = [tick for tick in _round_numbers(low, high) if low / MARGIN <= tick <= high * MARGIN]
    axis = _axis(chart.y, values=ticks) if len(ticks) > 1 else _axis(chart.y, tickCount=3)
    return alt.Y("y:Q", scale=scale, title=None, axis=axis)


def _round_numbers(low: float, high: float) -> list[float]:
    """Return powers of ten that span *low* to *high*.

    If the range is short, also return 2 and 5 times each power.
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < WIDE else (1,)
    return [step * 10.0**power for power in powers for step in steps]


def _axis(scale: Scale, **ticks: Any) -> alt.Axis:
    names = f"{json.dumps(list(scale.names))}[datum.value]"
    label = names if scale.names else _LABELS[scale.labels]
    return alt.Axis(labelExpr=label, labelOverlap=True, **ticks)


def _colour(chart: Chart) -> alt.Color:
    legend = alt.Legend(
        title=None, orient="bottom", columns=2, values=chart.drawn(), symbolOpacity=1
    )
    scale = alt.Scale(domain=list(chart.columns))
    return alt.Color("column:N", scale=scale, legend=None if _has_plain_bars(chart) else legend)


def _tooltip(chart: Chart) -> list[alt.Tooltip]:
    rows = {"column": "contender", "at": chart.x.title, "text": "figure"}
    return [alt.Tooltip(f"{field}:N", title=title) for field, title in rows.items()]


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
    across = alt.X("x:Q", title=chart.x.title)
    return [
        place.mark_rule(strokeWidth=1.5, clip=True).encode(x=alt.X("low:Q"), x2="high:Q"),
        place.mark_point(shape="diamond", size=110, strokeWidth=2).encode(
            x=across, tooltip="sentence:N"
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
    file.buffer.write(picture[:-_LENGTH_OF_END] + _SOFTWARE + picture[-_LENGTH_OF_END:])


def _picture(report: Report) -> str:
    """Return the charts of a report and of its parts in two columns, as JSON for Vega-Lite."""
    charts = [chart for chart in report.all_charts() if chart.percentile in {"", P99.name}]
    if not charts:
        raise UserError("no chart can be drawn: there are no figures")
    drawn = []
    for chart in charts:
        subtitle = [chart.y.title, chart.subtitle, *(mark.sentence for mark in chart.marks)]
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
    # What draws pictures ends this process at a control character.
    return _UNDRAWABLE.sub(r"\1\\ufffd", json.dumps(picture.to_dict()))
