"""The charts of a report as one picture in PNG."""

from __future__ import annotations

import json
from typing import Any

import vl_convert
from rich.console import Console

from zodbshootout.reports.drawing import picture
from zodbshootout.reports.report import Report


def write(report: Report, console: Console) -> None:
    """Write the charts below each other, as bytes."""
    file: Any = console.file
    drawn = vl_convert.vegalite_to_png(json.dumps(picture(report).to_dict()), scale=2)
    file.flush()
    file.buffer.write(drawn)
