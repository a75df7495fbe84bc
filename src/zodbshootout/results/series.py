"""Series: one quantity along one axis, its steps, and the places where two series cross."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from zodbshootout.model.quantities import Quantity, Shown, quantities
from zodbshootout.results.axes import Axis, along, families
from zodbshootout.results.changes import Change, changes_of
from zodbshootout.results.estimate import Estimate
from zodbshootout.results.figures import Figure, compared
from zodbshootout.results.result import CellResult

Line = Mapping[float, Estimate]
"""The figures of a contender by position on a numeric axis."""


@dataclass(frozen=True)
class Series:
    """A quantity of results that differ in one axis alone, in the order of the axis."""

    axis: Axis
    quantity: Quantity
    results: Sequence[CellResult]
    """The results at all places, whether or not they have a figure."""

    @property
    def title(self) -> str:
        """The title that the contenders have in common."""
        return self.axis.without(self.results[0].cell).column

    @cached_property
    def figures(self) -> list[Figure]:
        """The figures that are known."""
        timed = (result for result in self.results if result.timed)
        return [figure for result in timed for figure in compared(result, self.quantity)]

    @property
    def line(self) -> Line:
        """The estimates of the figures by their positions, if the axis is numeric."""
        places = ((self.axis.place(figure.result), figure) for figure in self.figures)
        return {place: figure.estimate for place, figure in places if place is not None}


def series_along(results: Iterable[CellResult], axis: Axis, quantity: Quantity) -> list[Series]:
    """Return the series of a quantity, one for each combination of all else."""
    return [Series(axis, quantity, group) for group in along(results, axis)]


@dataclass(frozen=True)
class Step:
    """A change between a figure of a series and the one before, significant or not."""

    series: Series
    change: Change
    """The comparison of the two figures, which were measured in turn, or are exact."""

    @property
    def before(self) -> str:
        """The place of the figure before, such as a release."""
        return self._text(self.change.base.result)

    @property
    def since(self) -> str:
        """The first place with the change."""
        return self._text(self.change.new.result)

    @property
    def between(self) -> list[str]:
        """The places without a figure between :attr:`before` and :attr:`since`."""
        cells = [result.cell for result in self.series.results]
        first, last = (cells.index(one.cell) for one in (self.change.base, self.change.new))
        return list(map(self._text, self.series.results[first + 1 : last]))

    @property
    def sentence(self) -> str:
        """The sentence about the change, which names the places."""
        words = self.change.sentence(self.before, self.since)
        verb = "was" if len(self.between) == 1 else "were"
        gap = f"; {' and '.join(self.between)} between them {verb} not measured"
        return f"{words}{gap}" if self.between else words

    def _text(self, result: CellResult) -> str:
        return self.series.axis.text(self.series.axis.of(result))


def steps_of(results: Sequence[CellResult]) -> list[Step]:
    """Return the changes between consecutive releases: of times, followed by those of costs.

    One false discovery rate holds for all releases, benchmarks and contenders together; another one
    holds for all costs.  A change of costs that do not vary from run to run is exact.
    """
    costs = quantities(Shown.COSTS)
    of_times = _steps(results, lambda result: [one.quantity for one in compared(result)])
    return [*of_times, *_steps(results, lambda _: costs)]


def _steps(
    results: Sequence[CellResult], chosen: Callable[[CellResult], Sequence[Quantity]]
) -> list[Step]:
    series = [
        Series(family.axis, quantity, group)
        for family in families(results)
        for group in along(family.of(results), family.axis)
        for quantity in dict.fromkeys(one for result in group for one in chosen(result))
    ]
    sides = [(one, *pair) for one in series for pair in pairwise(one.figures)]
    changes = changes_of([(base, new) for _, base, new in sides])
    return [
        Step(one, change)
        for (one, _, _), change in zip(sides, changes, strict=True)
        if change.ratio.paired or math.isinf(change.ratio.log.df)
    ]


@dataclass(frozen=True)
class Crossing:
    """A position at which the figures of two lines are equal, with its 95 % interval."""

    at: float
    low: float
    high: float
    figure: float
    """The figure of both lines there."""
    first_is_less: bool
    """Whether the figures of the first line are the smaller ones below this position."""


def crossings(first: Line, second: Line, *, open_ended: bool = False) -> Iterator[Crossing]:
    """Yield the crossings of two lines between their first and last common position.

    Between neighbouring positions, the lines are straight.  The whole interval of a crossing is
    between the first and the last position; if lines are *open_ended*, it may end after the last.
    """
    places = sorted(first.keys() & second.keys())
    for near, far in pairwise(places):
        here, there = first[near] - second[near], first[far] - second[far]
        if here.mean * there.mean >= 0 or here.df <= 0 or there.df <= 0:
            continue
        slope = (there.mean - here.mean) / (far - near)
        at = near - here.mean / slope
        # The error at the crossing is interpolated between the errors at the two nearest positions.
        part = (at - near) / (far - near)
        width = math.hypot((1 - part) * here.half_width, part * there.half_width) / abs(slope)
        if at - width > places[0] and (open_ended or at + width < places[-1]):
            figure = (1 - part) * first[near].mean + part * first[far].mean
            yield Crossing(at, at - width, at + width, figure, here.mean < 0)
