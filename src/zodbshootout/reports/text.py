"""Plain text and colours for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from zodbshootout.reports.report import Entry, Report, Style, Table

_STYLES = {
    Style.PLAIN: "",
    Style.DIM: "dim",
    Style.NOTABLE: "yellow",
    Style.GOOD: "green",
    Style.BAD: "red",
}
_WHOLE, _WITHOUT_INTERVALS_OF_FIGURES, _WITHOUT_INTERVALS = range(3)
"""Levels of detail of an entry, from everything to numbers alone."""
_BRIEFLY = (_WHOLE, _WITHOUT_INTERVALS_OF_FIGURES, _WITHOUT_INTERVALS)


def write(report: Report, console: Console) -> None:
    """Print the tables, the notes, the listings and the sub-reports, with all intervals.

    A table that is too wide is printed in parts, all of which have the first column.
    """
    _write(report, console, [_WHOLE])


def write_briefly(report: Report, console: Console) -> None:
    """Print the same with those intervals that fit into the console's width."""
    _write(report, console, _BRIEFLY)


def tables(report: Report, console: Console) -> Iterator[RenderableType]:
    """Yield the tables as :func:`write_briefly` prints them, without notes."""
    for table in report.tables:
        yield Text(f"\n{_plain(table.caption, console)}", style="bold")
        yield from _laid_out(table, console, _BRIEFLY)


def _write(report: Report, console: Console, details: Sequence[int]) -> None:
    if report.title:
        _print_title(console, f"{report.title}\n{'=' * len(report.title)}")
    for table in report.tables:
        _print_title(console, table.caption)
        for number, laid_out in enumerate(_laid_out(table, console, details)):
            if number:
                console.print()
            _print_whole(console, laid_out)
    console.print()
    for line in report.notes:
        _print_line(console, Text(_plain(line, console)))
    for listing in report.listings:
        _print_title(console, listing.caption)
        console.print(Text(listing.text), soft_wrap=True)
    for part in report.without_charts:
        _write(part, console, details)


def _print_title(console: Console, title: str) -> None:
    console.print()
    if title:
        _print_line(console, Text(_plain(title, console), style="bold"))


def _print_line(console: Console, line: Text) -> None:
    """Print a line, which only a terminal wraps; elsewhere, paths stay whole."""
    console.print(line, soft_wrap=not console.is_terminal)


def _laid_out(table: Table, console: Console, details: Sequence[int]) -> list[RichTable]:
    """Return the table with as much detail as fits, in parts if even the least does not fit."""
    for detail in details:
        whole = _rich(table, detail, console)
        if table.words or _natural_width(whole, console) <= console.width:
            return [whole]
    # A single contender has nothing to be compared with, so its intervals are shown.
    detail = _WHOLE if len(table.columns) == 1 else details[-1]
    parts: list[list[int]] = [[0]]
    for number in range(1, len(table.columns)):
        wider = _rich(_part(table, [*parts[-1], number]), detail, console)
        if len(parts[-1]) > 1 and _natural_width(wider, console) > console.width:
            parts.append([0])
        parts[-1].append(number)
    return [_rich(_part(table, part), detail, console) for part in parts]


def _part(table: Table, numbers: Sequence[int]) -> Table:
    """Return some columns of a table."""
    return replace(
        table,
        columns=[table.columns[number] for number in numbers],
        rows=[
            replace(row, entries=[row.entries[number] for number in numbers]) for row in table.rows
        ],
    )


def _print_whole(console: Console, table: RichTable) -> None:
    """Print a table at its natural width, so that no terminal cuts off a number."""
    width = console.width
    console.width = max(width, _natural_width(table, console))
    console.print(table)
    console.width = width


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
        # rich strips trailing blanks, which would leave numbers out of line.
        width = 0 if column in table.words else max(len(column), *map(len, texts))
        laid_out.add_column(Text(column.rjust(width)), no_wrap=True)
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
    """Join the pieces of an entry, each padded to the width of its kind in the column."""
    padded = [
        Text(" " * (width - len(piece))) + piece
        for piece, width in zip(pieces, widths, strict=True)
        if width
    ]
    return Text(" ").join(padded)
