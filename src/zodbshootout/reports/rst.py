"""A report in reStructuredText, for Sphinx, README files and PyPI."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from zodbshootout.reports.report import Report


def write(report: Report, console: Console) -> None:
    """Write the tables as grid tables, and the notes as a list."""
    blocks = []
    for table in report.tables:
        rows = [[table.title, *table.columns], *table.lines()]
        grid = _grid([[_escaped(text) for text in row] for row in rows])
        caption = f".. table:: {_escaped(table.caption)}"
        blocks.append("\n".join([caption, "", *(f"    {line}" for line in grid)]))
    if report.notes:
        blocks.append("\n".join(f"- {_escaped(note)}" for note in report.notes))
    console.file.write("\n\n".join(blocks) + "\n")
    for each in report.further:
        console.file.write("\n")
        write(each, console)


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
