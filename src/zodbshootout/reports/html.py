"""A page with charts that can be filtered, which needs nothing but a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from itertools import accumulate

import altair as alt
import vl_convert
from jinja2 import Environment
from markupsafe import Markup
from rich.console import Console

from zodbshootout.reports.drawing import DARK, LIGHT, draw
from zodbshootout.reports.report import Chart, Entry, Kind, Report, Row, Table

_PAGE = files("zodbshootout.reports") / "page"


def write(report: Report, console: Console) -> None:
    """Write a page that loads nothing over the network."""
    parts = [replace(report, title="Results"), *report.parts]
    charts = [chart for part in parts for chart in part.charts]
    # Each chart is a document of its own.
    with alt.data_transformers.enable(consolidate_datasets=False):
        drawn = [draw(chart).to_dict() for chart in charts]
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"anchor": _anchor, "points": points_of}
    style = environment.from_string(_text("page.css")).render(light=LIGHT, dark=DARK)
    page = environment.from_string(_text("page.html")).render(
        name=report.title or "zodbshootout",
        parts=parts,
        contenders=list(dict.fromkeys(column for chart in charts for column in chart.columns)),
        first_chart=_first_charts(parts),
        charts=_json(drawn) if charts else "",
        colours=len(LIGHT),
        style=Markup(style),  # noqa: S704
        bundle=Markup(_bundle()),  # noqa: S704
        script=Markup(_text("page.js")),  # noqa: S704
    )
    console.file.write(page)


def points_of(chart: Chart) -> Table:
    """Return the figures of a chart as a table."""
    columns = [chart.x_title, "figure"]
    rows = [
        Row(point.column, [Entry(_position(chart, point.x)), Entry(point.text)])
        for column in chart.drawn()
        for point in chart.of(column)
    ]
    if chart.kind is Kind.BARS:
        columns = columns[1:]
        rows = [Row(row.title, row.entries[1:]) for row in rows]
    return Table("", columns, rows, title="Contender")


def _position(chart: Chart, x: float) -> str:
    return f"{100 * (1 - 1 / x):.5g} %" if chart.kind is Kind.PERCENTILES else f"{x:,g}"


def _first_charts(parts: Sequence[Report]) -> list[int]:
    """Return the number of charts before those of each part."""
    return list(accumulate((len(part.charts) for part in parts[:-1]), initial=0))


def _bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed in one script."""
    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return script.replace("</script", r"<\/script")


def _text(name: str) -> str:
    return (_PAGE / name).read_text(encoding="utf-8")


def _json(document: object) -> Markup:
    # A browser ends a script at the first "</script", even inside a string.
    return Markup(json.dumps(document, separators=(",", ":")).replace("<", r"\u003c"))  # noqa: S704


def _anchor(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower()).strip("-")
