"""A report: tables of words and numbers, notes below them and charts, before it is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from zodbshootout.reports.chart import Chart


class NothingToShow(Exception):  # noqa: N818
    """A format cannot show anything of a report; the message tells why."""


class Style(Enum):
    """How an entry is to stand out, where a format can do that.  Words say the same."""

    PLAIN = "plain"
    DIM = "dim"
    NOTABLE = "notable"
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True)
class Entry:
    """What a table shows in one place."""

    text: str = ""
    value: float | None = None
    """The number that the text is about, if there is one."""
    style: Style = Style.PLAIN
    within: str = ""
    """How well the number is known, and a mark if it is not known well."""
    note: int = 0
    """The number of the note that belongs to it, if one does."""

    @property
    def noted(self) -> str:
        """Return the text, and the number of the note."""
        return f"{self.text} [{self.note}]" if self.note else self.text

    def line(self) -> str:
        """Return everything that is shown."""
        return " ".join(f"{self.noted} {self.within}".split())


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    title: str
    entries: Sequence[Entry]
    """One for each column."""


@dataclass(frozen=True)
class Table:
    """Rows under one caption."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Row]
    title: str = "Transaction"
    """What stands above the titles of the rows."""
    words: frozenset[str] = frozenset()
    """The columns that hold words rather than numbers."""

    def lines(self) -> Iterator[list[str]]:
        """Return each row's title and entries, as they are printed."""
        for row in self.rows:
            yield [row.title, *(entry.line() for entry in row.entries)]


@dataclass(frozen=True)
class Listing:
    """Lines that are to be shown as they are."""

    caption: str
    text: str


@dataclass(frozen=True)
class Report:
    """Tables, notes, and everything that is known of each cell."""

    tables: Sequence[Table]
    notes: Sequence[str] = ()
    records: Sequence[Mapping[str, Any]] = ()
    """Alike in their keys.  Times are seconds, sizes bytes; ``None`` is what is not known."""
    further: Sequence[Report] = ()
    """What prose goes on with after the notes; its records are not among these."""
    title: str = ""
    """What stands above it; empty for what is not one of several parts."""
    charts: Sequence[Chart] = ()
    """Pictures.  A format without them loses none of the figures, which are in tables."""
    listings: Sequence[Listing] = ()
    sides: tuple[str, ...] = ()
    """The contenders that are compared in it."""

    @property
    def without_charts(self) -> list[Report]:
        """Return the parts that follow, but for those of which nothing is left without charts."""
        return [each for each in self.further if each.tables or each.listings or each.further]
