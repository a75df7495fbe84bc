"""A report as data: tables, notes, charts and listings, before a format writes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

DASH = "-"
"""What formats print in place of a missing figure."""


@dataclass(frozen=True)
class Note:
    """A line below the tables, to which entries may refer."""

    text: str
    """The line."""
    number: int = 0
    """The number by which entries refer to the note; 0 if they do not refer to it by number."""

    def __str__(self) -> str:
        return f"[{self.number}] {self.text}" if self.number else self.text


NO_FIGURE = Note(f"dash ({DASH}): not recorded, or too few runs or values")
"""The note on figures that are missing without another reason."""


class Style(Enum):
    """The emphasis of an entry.  Formats may ignore it, because the text says the same."""

    PLAIN = "plain"
    DIM = "dim"
    NOTABLE = "notable"
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True)
class Entry:
    """The content of a row in one column of a table."""

    text: str = ""
    """The figure as it is printed, or words; empty if the figure is missing."""
    value: float | None = None
    """The number that the text shows, if it shows one."""
    style: Style = Style.PLAIN
    """The emphasis, in formats that can show it."""
    within: str = ""
    """The interval of the number, such as ``± 2%``; empty if it is unknown."""
    note: Note | None = None
    """The note that the entry refers to.  The note on a missing figure gives the reason."""
    ratio: Entry | None = None
    """The ratio to the baseline's speed.  In a table of times at a distance, the estimate of the
    time takes the place of the ratio."""

    @property
    def is_missing(self) -> bool:
        """Whether the figure is missing, and a note gives the reason."""
        return self.note is not None and not self.text

    @property
    def shown(self) -> str:
        """The text, or a dash in place of a missing figure."""
        return DASH if self.is_missing else self.text

    @property
    def noted(self) -> str:
        """The text or the dash, followed by the note's number, if any."""
        number = self.note.number if self.note else 0
        return f"{self.shown} [{number}]" if number else self.shown

    def line(self) -> str:
        """Return the number, the note, the interval and the ratio as one text."""
        ratio = self.ratio.line() if self.ratio else ""
        return " ".join(f"{self.noted} {self.within} {ratio}".split())


MISSING = Entry(style=Style.DIM, note=NO_FIGURE)
"""The entry of a figure that is missing without another reason than :data:`NO_FIGURE`."""


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    title: str
    """The heading of the row."""
    entries: Sequence[Entry]
    """The entries, one for each column."""
    long_title: str = ""
    """A longer title, in words; may be empty."""
    anchor: str = ""
    """The anchor of the part of a page that has more on the row; empty if there is none."""

    @property
    def has_figure(self) -> bool:
        """Whether any entry shows a number."""
        return any(entry.value is not None for entry in self.entries)


@dataclass(frozen=True)
class Table:
    """Rows under one caption."""

    caption: str
    """The line above the table."""
    columns: Sequence[str]
    """The headings of all columns but the first, which holds the row titles."""
    rows: Sequence[Row]
    """The rows, from top to bottom."""
    title: str = "Benchmark"
    """The heading of the column of row titles."""
    words: frozenset[str] = frozenset()
    """The columns that hold words rather than numbers."""
    percentile: str = ""
    """The percentile in the table, if any; a page shows the tables of one percentile at a time."""

    @property
    def lacks_figures(self) -> bool:
        """Whether any figure is missing without another reason than :data:`NO_FIGURE`."""
        return any(entry.note is NO_FIGURE for row in self.rows for entry in row.entries)

    def lines(self) -> list[list[str]]:
        """Return the headings, then each row's title and entries, as text."""
        return [
            [self.title, *self.columns],
            *([row.title, *(entry.line() for entry in row.entries)] for row in self.rows),
        ]


class ChartKind(Enum):
    """The form in which the points of a chart are drawn."""

    LINES = "lines"
    """A line for each column, over the positions on the scale across."""
    BARS = "bars"
    """A bar for each column or, if the scale across has names, for each column at each name; the
    longest bar at a name has the whole length."""
    STACKS = "stacks"
    """A bar for each column, with a part for each name of the scale across."""


class Labels(Enum):
    """What the numbers on a scale are."""

    NUMBERS = "numbers"
    SECONDS = "seconds"
    PERCENTILES = "percentiles"
    """1 divided by the share of what is greater: 100 is the 99th percentile."""


@dataclass(frozen=True)
class Scale:
    """A scale of a chart."""

    title: str = ""
    """The title; a scale across without a title has a single position."""
    labels: Labels = Labels.NUMBERS
    logarithmic: bool = False
    """Whether lines are drawn on a logarithmic scale; bars never are."""
    from_zero: bool = True
    """Whether a scale that is not logarithmic begins at 0."""
    names: Sequence[str] = ()
    """The names of the positions 0, 1, and so on; empty if positions are numbers."""

    def text(self, position: float) -> str:
        """Return a position in words; empty if there is only one."""
        if self.names:
            return self.names[int(position)]
        if self.labels is Labels.PERCENTILES:
            return f"{100 * (1 - 1 / position):.5g} %"
        return f"{position:,.10g}" if self.title else ""


@dataclass(frozen=True)
class Point:
    """One figure in a chart."""

    column: str
    """The title of the table column that holds this figure."""
    x: float
    """The position on the scale across; 0 if there is only one."""
    y: float
    """The figure: a rate, seconds, a ratio or a cost."""
    text: str
    low: float | None = None
    high: float | None = None
    """The ends of the 95 % confidence interval, if it is known; the upper one may be infinite."""


@dataclass(frozen=True)
class Mark:
    """A place in a chart at which two lines cross, or a line has a step."""

    x: float
    y: float
    text: str
    """The label."""
    sentence: str
    """The crossing or the step in words."""
    low: float
    high: float
    """The ends of the 95 % confidence interval of :attr:`x`."""
    columns: tuple[str, str]
    """The columns of the two lines; for a step, the same column twice."""


@dataclass(frozen=True)
class Chart:
    """Points, their form and their scales."""

    kind: ChartKind
    title: str
    subtitle: str
    x: Scale
    """The scale across, on which points have their positions."""
    y: Scale
    """The scale of the figures."""
    points: Sequence[Point]
    columns: Sequence[str]
    """Every column of the report, in order, so that a column has the same colour in all charts."""
    percentile: str = ""
    """The percentile, as in :attr:`Table.percentile`."""
    estimated: bool = False
    """Whether the lines are estimates, and therefore dashed."""
    marks: Sequence[Mark] = ()

    def drawn(self) -> list[str]:
        """Return the columns that have points, in order."""
        with_points = {point.column for point in self.points}
        return [column for column in self.columns if column in with_points]

    def of(self, column: str) -> list[Point]:
        """Return the points of a column."""
        return [point for point in self.points if point.column == column]

    def summary(self) -> str:
        """Describe the chart in words."""
        parts = [*map(self._summary_of, self.drawn()), *(mark.sentence for mark in self.marks)]
        return f"{self.title}, {self.y.title}, {self.subtitle}: {'; '.join(parts)}"

    def _summary_of(self, column: str) -> str:
        points = self.of(column)
        if self.x.labels is Labels.PERCENTILES:
            return f"{column} median {points[0].text}, longest {points[-1].text}"
        if self.kind is ChartKind.LINES:
            ends = [f"{point.text} at {self.x.text(point.x)}" for point in (points[0], points[-1])]
        else:
            ends = [f"{self.x.text(point.x)} {point.text}".lstrip() for point in points]
        return f"{column} {', '.join(ends)}"


@dataclass(frozen=True)
class Listing:
    """Text that is shown verbatim."""

    caption: str
    """The line above the text."""
    text: str
    """The lines, with line breaks between them."""


@dataclass(frozen=True)
class Report:
    """Tables, notes, and everything that is known about each cell."""

    tables: Sequence[Table] = ()
    """The tables, from top to bottom."""
    notes: Sequence[Note] = ()
    """The lines below the tables."""
    records: Sequence[Mapping[str, Any]] = ()
    """A mapping for each cell, all with the same keys.  Times are in seconds, sizes in bytes;
    unknown values are ``None``."""
    parts: Sequence[Report] = ()
    """Sub-reports, shown after the notes.  Their records are not in :attr:`records`."""
    title: str = ""
    """The title; empty if the report needs none."""
    anchor: str = ""
    """The key of a part in links within a page."""
    rank: int = 0
    """The place of a part on a page: parts of rank 0 follow the tables of the report."""
    folded: bool = True
    """Whether a page shows no more than the title of a part until the reader unfolds it."""
    charts: Sequence[Chart] = ()
    """Pictures.  All of their figures are in tables too, for formats without pictures."""
    listings: Sequence[Listing] = ()
    """Texts that are shown verbatim."""
    sides: tuple[str, ...] = ()
    """The titles of the two columns, if the report compares two."""
    facts: Sequence[str] = ()
    """Lines about the run: the benchmarks, the place and the time, the versions, the source."""
    verdicts: Sequence[Note] = ()
    """The conclusions, at most three, which a page has at its top."""
    promises: Sequence[Note] = ()
    """The notes on what numbers cannot show (durability, sharing, servers), also at the top."""
    matrix: Table | None = None
    """The ratios of all contenders to the baseline, in all benchmarks."""
    baseline: str = ""
    """The title of the baseline, or the titles of several, joined by commas."""
    alternatives: Sequence[Report] = ()
    """For each other baseline, a report with the contents that change with the baseline."""

    def all_charts(self) -> Iterator[Chart]:
        """Return the charts of the report, then those of its sub-reports."""
        yield from self.charts
        for part in self.parts:
            yield from part.all_charts()

    @property
    def without_charts(self) -> list[Report]:
        """The sub-reports that hold more than charts."""
        return [part for part in self.parts if part.tables or part.listings or part.parts]
