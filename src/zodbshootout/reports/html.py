"""A page with charts that the reader can filter; it needs nothing but a browser."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from dataclasses import replace

import altair as alt
import vl_convert
from jinja2 import Environment, PackageLoader
from markupsafe import Markup, escape
from rich.console import Console

from zodbshootout.model.grouping import grouped
from zodbshootout.model.quantities import Shown, quantities
from zodbshootout.reports.drawing import DARK, LIGHT, draw
from zodbshootout.reports.elements import (
    NO_FIGURE,
    Chart,
    Entry,
    Note,
    Report,
    Row,
    Style,
    Table,
)

SHADES = (0.5, 2.0)
"""The binary logarithms of the ratios at which the second and the third shade begin."""


@functools.cache
def _libraries() -> str:
    """Return the libraries with which a browser draws charts; the bundling takes seconds."""
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", r"<\/script")


def write(report: Report, console: Console) -> None:
    """Write a page that loads nothing over the network."""
    parts = sorted([_results(report), *report.parts], key=lambda part: part.rank)
    charts = [chart for part in parts for chart in part.all_charts()]
    numbers = {id(chart): number for number, chart in enumerate(charts)}
    # Each chart is a separate document, so charts cannot share data.
    with alt.data_transformers.enable(consolidate_datasets=False):
        drawn = [draw(chart).to_dict(validate=False) for chart in charts]
    environment = Environment(
        loader=PackageLoader("zodbshootout.reports", "page"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.filters |= {
        "points": figures_of, "breakable": _breakable, "shade": _shade,
        "common": _common_notes, "anchor": _anchor,
        "number": lambda chart: numbers[id(chart)],
    }  # fmt: skip
    page = environment.get_template("page.html").render(
        report=report,
        parts=parts,
        percentiles=_percentiles(parts),
        source=[fact for fact in report.facts if fact][1:2],
        contenders=_colours(charts),
        charts=drawn,
        light=LIGHT,
        dark=DARK,
        bundle=_libraries(),
    )
    console.file.write(page)


def _colours(charts: Sequence[Chart]) -> dict[str, int]:
    numbers = grouped(
        (column, number) for chart in charts for number, column in enumerate(chart.columns)
    )
    return {column: first for column, (first, *_) in numbers.items()}


def _results(report: Report) -> Report:
    """Return the part with the tables of the report, and of the report for each baseline.

    If any figure on the page is missing, the notes say why.
    """
    views = [report, *report.alternatives]
    if NO_FIGURE not in report.notes and any(map(_lacks_figures, views)):
        views = [replace(view, notes=[*view.notes, NO_FIGURE]) for view in views]
    first, *others = (replace(view, parts=()) for view in views)
    return replace(first, title="Results", anchor="results", folded=False, alternatives=others)


def _lacks_figures(report: Report) -> bool:
    tables = [*report.tables, *filter(None, [report.matrix])]
    return any(one.lacks_figures for one in tables) or any(map(_lacks_figures, report.parts))


def _common_notes(part: Report) -> list[Note]:
    """Return the notes below the tables that are the same for each of several baselines."""
    views = [part, *part.alternatives] if part.alternatives else []
    below = [[note for note in view.notes if note not in view.verdicts] for view in views]
    return [note for note in part.notes if below and all(note in notes for notes in below)]


def _anchor(note: Note) -> str:
    """Return the anchor of a note; empty if no entry of a table refers to the note."""
    if note is NO_FIGURE:
        return "no-figure"
    return f"note-{note.number}" if note.number else ""


def _breakable(text: str) -> Markup:
    """Return a name as HTML that may be wrapped after its separators only."""
    return Markup(re.sub(r"([._/@])(?=\w)", r"\1<wbr>", str(escape(text))))  # noqa: S704


def _shade(entry: Entry) -> str:
    """Return the CSS class that colours a significant ratio by its distance from 1."""
    if entry.value is None or entry.style not in {Style.GOOD, Style.BAD}:
        return ""
    distance = abs(math.log2(entry.value))
    step = 1 if distance < SHADES[0] else 2 if distance < SHADES[1] else 3
    return f"{'fast' if entry.value > 1 else 'slow'}-{step}"


def figures_of(chart: Chart) -> Table:
    """Return the figures of a chart as a table."""
    columns = list(filter(None, [chart.x.title, "figure"]))
    rows = [
        Row(point.column, [Entry(text) for text in (chart.x.text(point.x), point.text) if text])
        for column in chart.drawn()
        for point in chart.of(column)
    ]
    words = frozenset([chart.x.title] if chart.x.names else [])
    return Table("", columns, rows, title="Contender", words=words)


def _percentiles(parts: Sequence[Report]) -> dict[str, str]:
    """Return the captions of the percentiles that have a table on the page, by percentile."""
    names = {table.percentile for part in parts for table in part.tables}
    return {one.name: one.title for one in quantities(Shown.LATENCY) if one.name in names}
