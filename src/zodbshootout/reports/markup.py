"""Markdown with the tables of GitHub and GitLab."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import indent

from rich.console import Console

from zodbshootout.reports.elements import Report, Table

_ESCAPES = str.maketrans({character: f"\\{character}" for character in "\\|*_`<[]"})


def write_markdown(report: Report, console: Console) -> None:
    """Write the tables, the notes and the listings of a report and its parts."""
    console.file.write("\n\n".join(_blocks(report)) + "\n")


def _blocks(report: Report, level: int = 1) -> Iterator[str]:
    """Yield the blocks of a report whose title has this *level*; empty lines separate them."""
    if report.title:
        yield f"{'#' * level} {_escaped(report.title)}"
    for table in report.tables:
        yield from _table(table)
    if report.notes:
        yield "\n".join(f"- {_escaped(str(note))}" for note in report.notes)
    for listing in report.listings:
        yield f"{_escaped(listing.caption)}:"
        yield indent(listing.text, "    ")
    for part in report.without_charts:
        yield from _blocks(part, level + 1)


def _table(table: Table) -> Iterator[str]:
    if table.caption:
        yield f"**{_escaped(table.caption)}**"
    heading, *rows = (f"| {' | '.join(map(_escaped, line))} |" for line in table.lines())
    rule = ["---", *("---" if title in table.words else "---:" for title in table.columns)]
    yield "\n".join([heading, f"| {' | '.join(rule)} |", *rows])


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)
