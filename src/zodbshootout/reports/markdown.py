"""A report in Markdown, with the tables that GitHub and GitLab know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import indent

from rich.console import Console

from zodbshootout.reports.report import Report


def write(report: Report, console: Console) -> None:
    """Write the tables, the notes as a list, and its parts below headings."""
    console.file.write("\n\n".join(_blocks(report)) + "\n")


def _blocks(report: Report, level: int = 1) -> Iterator[str]:
    if report.title:
        yield f"{'#' * level} {_escaped(report.title)}"
    for table in report.tables:
        if table.caption:
            yield f"**{_escaped(table.caption)}**"
        rule = ["---", *("---" if each in table.words else "---:" for each in table.columns)]
        rows = [_row([table.title, *table.columns]), f"| {' | '.join(rule)} |"]
        yield "\n".join([*rows, *map(_row, table.lines())])
    if report.notes:
        yield "\n".join(f"- {_escaped(note)}" for note in report.notes)
    for listing in report.listings:
        yield f"{_escaped(listing.caption)}:"
        yield indent(listing.text, "    ")
    for each in report.without_charts:
        yield from _blocks(each, level + 1)


def _row(texts: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escaped, texts))} |"


def _escaped(text: str) -> str:
    for special in "\\|*_`<[]":
        text = text.replace(special, f"\\{special}")
    return text
