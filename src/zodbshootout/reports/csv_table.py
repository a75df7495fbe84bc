"""A report as comma-separated values in the layout of the table: a column for each contender."""

from __future__ import annotations

import csv

from rich.console import Console

from zodbshootout.reports.report import Report


def write(report: Report, console: Console) -> None:
    """Write the tables, an empty line between them; what has no figure is a word."""
    writer = csv.writer(console.file, lineterminator="\n")
    for number, table in enumerate(report.tables):
        if number:
            writer.writerow([])
        writer.writerow([table.caption])
        writer.writerow([table.title, *table.columns])
        for row in table.rows:
            shown = (each.text if each.value is None else each.value for each in row.entries)
            writer.writerow([row.title, *shown])
