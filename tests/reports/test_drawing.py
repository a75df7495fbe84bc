"""The drawing of charts."""

from __future__ import annotations

import io
import re
from importlib.resources import files

import pytest
from rich.console import Console

from tests.runs import cell, measured
from zodbshootout.reports import format_named
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.drawing import DARK, LIGHT, draw
from zodbshootout.reports.elements import Chart, ChartKind, Labels, Point, Scale
from zodbshootout.reports.sections import whole_report

CSS = (files("zodbshootout.reports") / "page" / "page.css").read_text(encoding="utf-8")


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, as WCAG 2 defines it."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, as WCAG 2 defines it."""
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def page_colours(name: str) -> list[str]:
    """Return the light and the dark value of a colour of the page."""
    return re.findall(rf"--{name}: (#\w{{6}});", CSS)


@pytest.mark.parametrize("name", ["ground", "panel"])
def test_chart_colours_contrast_with_the_background(name: str) -> None:
    for colours, background in zip((LIGHT, DARK), page_colours(name), strict=True):
        assert min(contrast(colour, background) for colour in colours) >= 4.5


def test_the_light_and_dark_palettes_have_equally_many_distinct_colours() -> None:
    assert len(LIGHT) == len(DARK) == len({*LIGHT}) == len({*DARK})


@pytest.mark.parametrize("seconds", [[0.0, 0.0], [0.0, 0.5]])
def test_times_of_zero_are_drawn(seconds: list[float]) -> None:
    points = [Point("a", float(at), value, "0 s") for at, value in enumerate(seconds, 1)]
    chart = Chart(
        ChartKind.LINES,
        "Add",
        "1 process",
        Scale("clients"),
        Scale("p99", Labels.SECONDS, True),
        points,
        ["a"],
    )
    assert draw(chart).to_dict()["layer"]


@pytest.mark.parametrize("name", ["a\x01b\x1bc\x7f\x85", "\U0001f600" * 40, r"C:\u0001"])
def test_a_name_with_characters_that_cannot_be_drawn_has_a_picture(name: str) -> None:
    results = [measured(cell("add", one), *[[0.1, 0.2]] * 3) for one in (name, "other")]
    picture = io.StringIO()
    format_named("svg")(whole_report([ResultSet(results)]), Console(file=picture))
    assert picture.getvalue().startswith("<svg")
    assert ("�" in picture.getvalue()) == (name[0] != "C")
