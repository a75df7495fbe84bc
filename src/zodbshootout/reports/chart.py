"""A chart as plain data: its axes and the points in it, before it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """How the points of a chart are drawn."""

    BARS = "bars"
    """A bar for each column."""
    CURVES = "curves"
    """A line for each column, over a parameter."""
    PERCENTILES = "percentiles"
    """A line for each column, over the part of the iterations that took longer."""


@dataclass(frozen=True)
class Point:
    """One figure."""

    column: str
    """Whose it is: what stands above the same figure in the table."""
    x: float
    """The value of the parameter; of percentiles, one of how many iterations took longer; of bars,
    nothing."""
    y: float
    """Objects per second, or seconds."""
    text: str
    """The figure as it is printed."""
    low: float | None = None
    high: float | None = None
    """The ends of the 95 % confidence interval, where it is known."""
    knee: bool = False
    """Whether the curve bends here."""


@dataclass(frozen=True)
class Chart:
    """Points, and what they mean."""

    kind: Kind
    title: str
    subtitle: str
    x_title: str
    y_title: str
    points: Sequence[Point]
    columns: Sequence[str]
    """Every column of the report, in its order: one has the same colour in all charts."""
    in_seconds: bool = False
    """Whether the figures are times; otherwise they are rates."""
    ceiling: str | None = None
    """The column that is drawn as the limit of the others, if one is."""
    x_logarithmic: bool = False

    def drawn(self) -> list[str]:
        """Return the columns that have points, in their order."""
        having = {point.column for point in self.points}
        return [column for column in self.columns if column in having]

    def of(self, column: str) -> list[Point]:
        """Return the points of a column."""
        return [point for point in self.points if point.column == column]

    def summary(self) -> str:
        """Return what the chart shows, in words."""
        return f"{self.title}, {self.y_title}, {self.subtitle}: " + "; ".join(
            self._of_column(column) for column in self.drawn()
        )

    def _of_column(self, column: str) -> str:
        points = self.of(column)
        if self.kind is Kind.BARS:
            return f"{column} {points[0].text}"
        first, last = points[0], points[-1]
        if self.kind is Kind.PERCENTILES:
            return f"{column} median {first.text}, longest {last.text}"
        bend = "".join(f", knee at {point.x:g}" for point in points if point.knee)
        return f"{column} {first.text} at {first.x:g}, {last.text} at {last.x:g}{bend}"
