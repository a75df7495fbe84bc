"""A report as the terminal shows it."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from zodbshootout.client.outcome import State
from zodbshootout.reports.report import Figure, Report, Table

_STYLES = {State.FAILED: "red", State.UNSUPPORTED: "dim", State.NOT_RUN: "dim"}


def write(report: Report, console: Console) -> None:
    """Print the tables, each at its natural width, and the notes."""
    for table in report.tables:
        console.print()
        console.print(Text(table.caption, style="bold"), soft_wrap=True)
        _print_whole(console, _rich(table, ascii_only=_ascii_only(console)))
    console.print()
    for line in report.notes:
        console.print(Text(line), soft_wrap=True)


def _print_whole(console: Console, table: RichTable) -> None:
    """Print a table at its natural width: a number must not be cut off, whatever the terminal."""
    width = console.width
    natural = console.measure(table, options=console.options.update(width=10_000)).maximum
    console.width = max(width, natural)
    console.print(table)
    console.width = width


def _ascii_only(console: Console) -> bool:
    return not console.encoding.lower().startswith("utf")


def _rich(table: Table, *, ascii_only: bool) -> RichTable:
    found = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    found.add_column("Transaction", no_wrap=True)
    for column in table.columns:
        found.add_column(Text(column), justify="right", no_wrap=True)
    for row in table.rows:
        texts = [Text() if each is None else _text(each, ascii_only) for each in row.figures]
        found.add_row(Text(row.title), *texts)
    return found


def _text(figure: Figure, ascii_only: bool) -> Text:
    note = f" [{figure.note}]" if figure.note else ""
    if not figure.result.measured:
        return Text(f"{figure.text}{note}", style=_STYLES[figure.result.state])
    text = Text(figure.text)
    text.append(note, style="yellow")
    if figure.spread is not None:
        sign = "+-" if ascii_only else "±"
        text.append(f" {sign}{figure.spread:3.0%}", style="yellow" if figure.unstable else "dim")
    return text
