"""A report as comma-separated values: a line for each cell."""

from __future__ import annotations

import csv

from rich.console import Console

from zodbshootout.reports.report import Report


def write(report: Report, console: Console) -> None:
    """Write a line for each cell, with its parameters, figures, state and reason in columns."""
    records = report.records
    writer = csv.DictWriter(console.file, list(records[0]) if records else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
