"""Markdown with the tables of GitHub and GitLab, and reStructuredText for Sphinx and PyPI."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from textwrap import indent

from rich.console import Console

from zodbshootout.reports.elements import Report, Table


class _Markup(ABC):
    """A language of blocks separated by empty lines."""

    special: str
    """The characters that need a backslash."""
    listing: str
    """The text between a caption and its listing, such as a colon."""

    def write(self, report: Report, console: Console) -> None:
        console.file.write("\n\n".join(self._blocks(report)) + "\n")

    @abstractmethod
    def title(self, text: str, level: int) -> str:
        """Return the block for a title; *level* counts from 0."""

    @abstractmethod
    def table(self, table: Table) -> Iterator[str]:
        """Yield the blocks for a table."""

    def escaped(self, text: str) -> str:
        return text.translate({ord(character): f"\\{character}" for character in self.special})

    def _blocks(self, report: Report, level: int = 0) -> Iterator[str]:
        if report.title:
            yield self.title(self.escaped(report.title), level)
        for table in report.tables:
            yield from self.table(table)
        if report.notes:
            yield "\n".join(f"- {self.escaped(note)}" for note in report.notes)
        for listing in report.listings:
            yield f"{self.escaped(listing.caption)}{self.listing}"
            yield indent(listing.text, "    ")
        for part in report.without_charts:
            yield from self._blocks(part, level + 1)


class _Markdown(_Markup):
    special = "\\|*_`<[]"
    listing = ":"

    def title(self, text: str, level: int) -> str:
        return f"{'#' * (level + 1)} {text}"

    def table(self, table: Table) -> Iterator[str]:
        if table.caption:
            yield f"**{self.escaped(table.caption)}**"
        heading, *rows = (f"| {' | '.join(map(self.escaped, line))} |" for line in table.lines())
        rule = ["---", *("---" if title in table.words else "---:" for title in table.columns)]
        yield "\n".join([heading, f"| {' | '.join(rule)} |", *rows])


class _RestructuredText(_Markup):
    """ReStructuredText with grid tables."""

    special = "\\*`|_"
    listing = "::"
    underlines = "=-~^"

    def title(self, text: str, level: int) -> str:
        return f"{text}\n{self.underlines[level] * len(text)}"

    def table(self, table: Table) -> Iterator[str]:
        grid = _grid([list(map(self.escaped, line)) for line in table.lines()])
        caption = f".. table:: {self.escaped(table.caption)}".rstrip()
        yield "\n".join([caption, "", *(f"    {line}" for line in grid)])


write_markdown = _Markdown().write
write_rst = _RestructuredText().write


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
