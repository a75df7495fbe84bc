"""Plain text and colours for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from zodbshootout.reports.report import Entry, Report, Row, Style, Table

_STYLES = {
    Style.PLAIN: "",
    Style.DIM: "dim",
    Style.NOTABLE: "yellow",
    Style.GOOD: "green",
    Style.BAD: "red",
}


def write(report: Report, console: Console) -> None:
    """Print the tables, the notes, the listings and the sub-reports.

    A table of contenders that is too wide is printed as a table for each contender.
    """
    if report.title:
        _print_title(console, f"{report.title}\n{'=' * len(report.title)}")
    for table in report.tables:
        _print_title(console, table.caption)
        for number, fitting in enumerate(_fitting(table, console)):
            if number:
                console.print()
            _print_whole(console, _rich(fitting, ascii_only=_ascii_only(console)))
    console.print()
    for line in report.notes:
        console.print(Text(_plain(line, console)), soft_wrap=True)
    for listing in report.listings:
        _print_title(console, listing.caption)
        console.print(Text(listing.text), soft_wrap=True)
    for part in report.without_charts:
        write(part, console)


def _print_title(console: Console, title: str) -> None:
    console.print()
    if title:
        console.print(Text(_plain(title, console), style="bold"), soft_wrap=True)


def _fitting(table: Table, console: Console) -> list[Table]:
    """Return the table, or a table for each of its columns if it is too wide."""
    whole = _rich(table, ascii_only=_ascii_only(console))
    if table.words or len(table.columns) == 1 or _natural_width(whole, console) <= console.width:
        return [table]
    return [
        replace(
            table,
            columns=[column],
            rows=[Row(row.title, [row.entries[number]]) for row in table.rows],
        )
        for number, column in enumerate(table.columns)
    ]


def _print_whole(console: Console, table: RichTable) -> None:
    """Print a table at its natural width, so that no terminal cuts off a number."""
    width = console.width
    console.width = max(width, _natural_width(table, console))
    console.print(table)
    console.width = width


def _natural_width(table: RichTable, console: Console) -> int:
    return console.measure(table, options=console.options.update(width=10_000)).maximum


def _plain(line: str, console: Console) -> str:
    return line.replace("±", "+-") if _ascii_only(console) else line


def _ascii_only(console: Console) -> bool:
    return not console.encoding.lower().startswith("utf")


def _rich(table: Table, *, ascii_only: bool) -> RichTable:
    laid_out = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    laid_out.add_column(table.title, no_wrap=True)
    columns = []
    for number, column in enumerate(table.columns):
        texts = _texts([row.entries[number] for row in table.rows], ascii_only=ascii_only)
        # rich strips trailing blanks, which would leave numbers out of line.
        width = 0 if column in table.words else max(len(column), *map(len, texts))
        laid_out.add_column(Text(column.rjust(width)), no_wrap=True)
        columns.append([Text(" " * (width - len(text))) + text for text in texts])
    for row, *texts in zip(table.rows, *columns, strict=True):
        laid_out.add_row(Text(row.title), *texts)
    return laid_out


def _texts(entries: Sequence[Entry], *, ascii_only: bool) -> list[Text]:
    """Return the entries of a column, whose numbers are below each other."""
    width = max((len(entry.within) for entry in entries), default=0)
    return [_text(entry, width, ascii_only=ascii_only) for entry in entries]


def _text(entry: Entry, width: int, *, ascii_only: bool) -> Text:
    """Return an entry; *width* is that of the widest text after a number of its column."""
    text = Text(entry.noted, style=_STYLES[entry.style])
    if entry.value is None or not width:
        return text
    within = f" {entry.within:<{width}}"
    if ascii_only:
        within = within.replace("±", "+-", 1) if entry.within else f"{within} "
    text.append(within, style="yellow" if entry.mark else "dim")
    return text
