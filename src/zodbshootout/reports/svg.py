"""The charts of a report as one picture in SVG."""

from __future__ import annotations

import json

import vl_convert
from rich.console import Console

from zodbshootout.reports.drawing import picture
from zodbshootout.reports.report import Report


def write(report: Report, console: Console) -> None:
    """Write the charts below each other."""
    console.file.write(vl_convert.vegalite_to_svg(json.dumps(picture(report).to_dict())))
