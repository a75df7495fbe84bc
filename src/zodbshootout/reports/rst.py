"""A report in reStructuredText, for Sphinx, README files and PyPI."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import indent

from rich.console import Console

from zodbshootout.reports.report import Report

_UNDERLINES = "=-~^"
"""What stands below titles, by their level."""


def write(report: Report, console: Console) -> None:
    """Write the tables as grid tables, the notes as a list, and its parts below headings."""
    console.file.write("\n\n".join(_blocks(report)) + "\n")


def _blocks(report: Report, level: int = 0) -> Iterator[str]:
    if report.title:
        title = _escaped(report.title)
        yield f"{title}\n{_UNDERLINES[level] * len(title)}"
    for table in report.tables:
        rows = [[table.title, *table.columns], *table.lines()]
        grid = _grid([[_escaped(text) for text in row] for row in rows])
        caption = f".. table:: {_escaped(table.caption)}".rstrip()
        yield "\n".join([caption, "", *(f"    {line}" for line in grid)])
    if report.notes:
        yield "\n".join(f"- {_escaped(note)}" for note in report.notes)
    for listing in report.listings:
        yield f"{_escaped(listing.caption)}::\n\n{indent(listing.text, '    ')}"
    for each in report.without_charts:
        yield from _blocks(each, level + 1)


def _grid(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [_rule(widths, "-")]
    for number, row in enumerate(rows):
        first, *others = zip(row, widths, strict=True)
        cells = [first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)]
        lines += [f"| {' | '.join(cells)} |", _rule(widths, "-" if number else "=")]
    return lines


def _rule(widths: Sequence[int], mark: str) -> str:
    return f"+{'+'.join(mark * (width + 2) for width in widths)}+"


def _escaped(text: str) -> str:
    for special in "\\*`|_":
        text = text.replace(special, f"\\{special}")
    return text
