"""A report as JSON: an object for each cell."""

from __future__ import annotations

import json

from rich.console import Console

from zodbshootout.reports.report import Report


def write(report: Report, console: Console) -> None:
    """Write a list of all cells, with parameters, figures, state and reason."""
    json.dump(list(report.records), console.file, indent=1)
    console.file.write("\n")
