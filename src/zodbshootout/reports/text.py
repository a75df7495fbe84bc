"""Plain text and colours for a terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from zodbshootout.reports.elements import Entry, Report, Style, Table

_STYLES = {
    Style.PLAIN: "",
    Style.DIM: "dim",
    Style.NOTABLE: "yellow",
    Style.GOOD: "green",
    Style.BAD: "red",
}
_WHOLE, _WITHOUT_INTERVALS_OF_FIGURES, _WITHOUT_INTERVALS = _DETAILS = range(3)
"""Levels of detail of an entry, from all intervals to none."""
_INDENT = "    "
"""The indentation of a note's lines after the first line."""
_OPTION = r"--?[a-z][\w-]*(?: (?!-)(?:'[^']*'|\S+))?"
_OPTIONS = re.compile(rf"(?<![\w-]){_OPTION}(?: {_OPTION})*")
"""A pattern of options with arguments; lines do not break in them, so they can be copied."""
MIN_WORDS = 24
"""The minimum width, in characters, of a column of words."""


def write(report: Report, console: Console) -> None:
    """Print the tables, the notes, the listings and the sub-reports in the console's width.

    A table that is too wide leaves out the intervals of its figures, then those of its ratios.  If
    it is still too wide, it is printed in parts, each of which has the first column.
    """
    if report.title:
        _print_title(console, f"{report.title}\n{'=' * len(report.title)}")
    for table in report.tables:
        _print_title(console, table.caption)
        for number, laid_out in enumerate(_laid_out(table, console)):
            if number:
                console.print()
            _print_whole(console, laid_out, _width(table, laid_out, console))
    console.print()
    for note in report.notes:
        _print_lines(console, str(note))
    for listing in report.listings:
        _print_title(console, listing.caption)
        console.print(Text(listing.text), soft_wrap=True)
    for part in report.without_charts:
        write(part, console)


def tables(report: Report, console: Console) -> Iterator[RenderableType]:
    """Yield the tables as :func:`write` prints them, without notes."""
    for table in report.tables:
        yield Text(f"\n{_plain(table.caption, console)}", style="bold")
        yield from _laid_out(table, console)


def _print_title(console: Console, title: str) -> None:
    console.print()
    for line in title.splitlines():
        _print_lines(console, line, "bold")


def _print_lines(console: Console, text: str, style: str = "") -> None:
    """Print a text in lines as wide as the console; options stay with their arguments."""
    whole = _OPTIONS.sub(lambda match: match[0].replace(" ", "\N{NO-BREAK SPACE}"), text)
    lines = textwrap.wrap(
        _plain(whole, console),
        console.width,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in lines:
        console.print(Text(line.replace("\N{NO-BREAK SPACE}", " "), style), soft_wrap=True)


def _laid_out(table: Table, console: Console) -> list[RichTable]:
    """Return the table with as much detail as fits; divide the table if no level of detail fits."""
    for detail in _DETAILS:
        whole = _rich(table, detail, console)
        if table.words or _natural_width(whole, console) <= console.width:
            return [whole]
    # A table of a single contender has no ratios; it shows intervals instead.
    detail = _WHOLE if len(table.columns) == 1 else _DETAILS[-1]
    parts: list[list[int]] = [[0]]
    for number in range(1, len(table.columns)):
        wider = _rich(_part(table, [*parts[-1], number]), detail, console)
        if len(parts[-1]) > 1 and _natural_width(wider, console) > console.width:
            parts.append([0])
        parts[-1].append(number)
    return [_rich(_part(table, part), detail, console) for part in parts]


def _part(table: Table, numbers: Sequence[int]) -> Table:
    return replace(
        table,
        columns=[table.columns[number] for number in numbers],
        rows=[
            replace(row, entries=[row.entries[number] for number in numbers]) for row in table.rows
        ],
    )


def _print_whole(console: Console, table: RichTable, width: int) -> None:
    """Print a table in a *width* that may exceed the console's."""
    usual = console.width
    console.width = width
    console.print(table)
    console.width = usual


def _width(table: Table, laid_out: RichTable, console: Console) -> int:
    """Return the console's width, or a greater one if numbers would be cut off otherwise."""
    natural = _natural_width(laid_out, console)
    if natural > console.width and table.words:
        numbers = [at for at, column in enumerate(table.columns) if column not in table.words]
        without_words = _natural_width(_rich(_part(table, numbers), _WHOLE, console), console)
        words = len(table.columns) - len(numbers)
        natural = min(natural, without_words + words * (MIN_WORDS + 2))
    return max(console.width, natural)


def _natural_width(table: RichTable, console: Console) -> int:
    return console.measure(table, options=console.options.update(width=10_000)).maximum


def _plain(text: str, console: Console) -> str:
    """Return a text without the signs that the console's encoding may lack."""
    if console.encoding.lower().startswith("utf"):
        return text
    return text.replace("±", "+-").replace("×", "x").replace("…", "...")


def _rich(table: Table, detail: int, console: Console) -> RichTable:
    laid_out = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1))
    laid_out.add_column(table.title, no_wrap=True)
    columns = []
    for number, column in enumerate(table.columns):
        texts = _texts([row.entries[number] for row in table.rows], detail, console)
        # Pad here: to align at the right, rich would strip blanks that stand for missing parts.
        width = 0 if column in table.words else max(len(column), *map(len, texts))
        is_number = column not in table.words
        laid_out.add_column(Text(column.rjust(width)), no_wrap=is_number, overflow="fold")
        columns.append([Text(" " * (width - len(text))) + text for text in texts])
    for row, *texts in zip(table.rows, *columns, strict=True):
        laid_out.add_row(Text(row.title), *texts)
    return laid_out


def _texts(entries: Sequence[Entry], detail: int, console: Console) -> list[Text]:
    """Return the entries of a column, with their numbers aligned."""
    divided = [_pieces(entry, detail, console) for entry in entries]
    numbers = [
        pieces for entry, pieces in zip(entries, divided, strict=True) if entry.value is not None
    ]
    widths = [max(map(len, pieces)) for pieces in zip(*numbers, strict=True)]
    return [
        pieces[0] if entry.value is None else _aligned(pieces, widths)
        for entry, pieces in zip(entries, divided, strict=True)
    ]


def _pieces(entry: Entry, detail: int, console: Console) -> list[Text]:
    """Return the number, its interval, its ratio and the interval of the ratio."""
    ratio = entry.ratio or Entry()
    pieces = [
        (entry.noted, _STYLES[entry.style]),
        (entry.within if detail == _WHOLE else "", "dim"),
        (ratio.text, _STYLES[ratio.style]),
        (ratio.within if detail != _WITHOUT_INTERVALS else "", "dim"),
    ]
    return [Text(_plain(text, console), style) for text, style in pieces]


def _aligned(pieces: Sequence[Text], widths: Sequence[int]) -> Text:
    """Join the pieces of an entry; pad each to its width in *widths*."""
    padded = [
        Text(" " * (width - len(piece))) + piece
        for piece, width in zip(pieces, widths, strict=True)
        if width
    ]
    return Text(" ").join(padded)
