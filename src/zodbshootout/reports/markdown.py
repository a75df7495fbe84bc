"""A report in Markdown, with the tables that GitHub and GitLab know."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from zodbshootout.reports.report import Report


def write(report: Report, console: Console) -> None:
    """Write the tables, and the notes as a list."""
    blocks = []
    for table in report.tables:
        rule = ["---", *("---" if each in table.words else "---:" for each in table.columns)]
        rows = [_row([table.title, *table.columns]), f"| {' | '.join(rule)} |"]
        rows += map(_row, table.lines())
        blocks.append("\n".join([f"**{_escaped(table.caption)}**", "", *rows]))
    if report.notes:
        blocks.append("\n".join(f"- {_escaped(note)}" for note in report.notes))
    console.file.write("\n\n".join(blocks) + "\n")
    for each in report.further:
        console.file.write("\n")
        write(each, console)


def _row(texts: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escaped, texts))} |"


def _escaped(text: str) -> str:
    for special in "\\|*_`<[]":
        text = text.replace(special, f"\\{special}")
    return text
