"""Steps: changes of speed and costs from one release of a contender to the next."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from zodbshootout.model.quantities import Shown, quantities
from zodbshootout.results.axes import Family
from zodbshootout.results.changes import SIGNIFICANT, Change, changes_of
from zodbshootout.results.figures import Figure, figure_of, figures_of
from zodbshootout.results.releases import series_of
from zodbshootout.results.result import CellResult


@dataclass(frozen=True)
class Step:
    """The change of a cell between a release and the previous release that was measured."""

    series: Family
    change: Change
    """The results before and after the change, measured in turn, and their comparison."""

    @property
    def before(self) -> str:
        """The previous measured release."""
        return self.series.text(self.change.base.cell.column)

    @property
    def since(self) -> str:
        """The first measured release with the change."""
        return self.series.text(self.change.new.cell.column)

    @property
    def between(self) -> list[str]:
        """The releases without a figure between :attr:`before` and :attr:`since`."""
        columns = list(self.series.values)
        first, last = (
            columns.index(one.cell.column) for one in (self.change.base, self.change.new)
        )
        return list(map(self.series.text, columns[first + 1 : last]))

    @property
    def is_significant(self) -> bool:
        """Whether chance is an unlikely cause of the change; see :data:`~.changes.FALSE_CALLS`."""
        return self.change.verdict in SIGNIFICANT


def steps_of(results: Sequence[CellResult]) -> list[Step]:
    """Return the changes of times between consecutive releases, significant or not.

    One false discovery rate holds for all releases, benchmarks and contenders together.
    """
    return _steps(results, figures_of)


def steps_of_costs(results: Sequence[CellResult]) -> list[Step]:
    """Return the changes of costs; a change is exact if costs do not vary from run to run."""
    costs = quantities(Shown.COSTS)
    return _steps(
        results,
        lambda result: list(filter(None, (figure_of(result, cost) for cost in costs))),
    )


def _steps(
    results: Sequence[CellResult], figures: Callable[[CellResult], Sequence[Figure]]
) -> list[Step]:
    sides = [
        (series, base, new)
        for series in series_of(results)
        for group in series.groups(result for result in results if result.timed)
        for before, since in pairwise(group)
        for base in figures(before)
        for new in figures(since)
        if base.quantity is new.quantity
    ]
    changes = changes_of([(base, new) for _, base, new in sides])
    return [
        Step(series, change)
        for (series, _, _), change in zip(sides, changes, strict=True)
        if change.ratio.paired or math.isinf(change.ratio.log.df)
    ]
