"""Write the tables of a report as tab-separated values."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from zodbshootout.api.formats import Report


def write(report: Report, console: Console) -> None:
    """Write each table with a line for each row, then the notes."""
    for table in report.tables:
        console.file.write(f"# {table.caption}\n")
        for line in table.lines():
            console.file.write("\t".join(line) + "\n")
    for note in report.notes:
        console.file.write(f"# {note}\n")
    for part in report.without_charts:
        write(part, console)
