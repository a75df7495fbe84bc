"""Trends: cells whose times rise from the first run to the last.

A change of the machine affects all contenders of a row, which have the same benchmark and
parameters.  So the time of each run is divided by the geometric mean of the other contenders' times
in the same slices.  A straight line through the logarithms of these ratios has a slope, whose
interval and p-value are Student's.

The t-test needs independent numbers.  Runs that share their clients are not independent, because
what was slow in one run may still be slow in the next.  So these runs are joined into batches.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from zodbshootout.model.grouping import grouped
from zodbshootout.model.quantities import TIME
from zodbshootout.results.changes import Rounds, pairs_of
from zodbshootout.results.estimate import BATCHES, Estimate, joined
from zodbshootout.results.figures import Figure, Round
from zodbshootout.results.pairs import log_ratios_of
from zodbshootout.results.probabilities import corrected
from zodbshootout.results.result import CellResult, Trend

FALSE_TRENDS = 0.01
"""The largest p-value of a trend.  :mod:`benchmarks.trends` counts how often trends are found in
files without one: this often at most, even if half of a run's noise is still in the next run."""
NOTEWORTHY = 1.05
"""The smallest trend that counts: the time at the end as a multiple of the time at the start."""
MOST_OTHERS = 12
"""To how many contenders of its row a cell is compared: with all, 200 would take minutes."""
FEWEST_RUNS = 4
"""The minimum number of independent runs, or of batches, and of runs of a batch."""


def with_trends(results: Sequence[CellResult], level: float = FALSE_TRENDS) -> list[CellResult]:
    """Return the results of a file with the :class:`Trend` of each cell that has enough runs.

    The p-values are corrected for the number of cells.
    """
    rows = grouped(
        (result.cell.row, (result, _rounds(result)))
        for result in results
        for done in [result.cell.parameters]
        # Runs of a replay, or of a search for the highest rate, do different work.
        if result.timed and result.keeps_up and not (done.workload.name or done.limit.percentile)
    )
    tested = {
        result.cell: trend
        for row in rows.values()
        for result, own in row
        if (trend := _trend(result, own, _others(own, row)))
    }
    p_values = corrected([trend.p_value for trend in tested.values()], level)
    for (cell, trend), p_value in zip(tested.items(), p_values, strict=True):
        found = p_value <= level and trend.times >= NOTEWORTHY
        tested[cell] = replace(trend, p_value=p_value, found=found)
    return [replace(result, trend=tested.get(result.cell)) for result in results]


def _rounds(result: CellResult) -> Rounds:
    """Return the times, without the first run if runs share clients: its caches are empty."""
    rounds = Figure(result, TIME).by_round.items()
    return dict(list(rounds)[1 if result.wanted_seconds else 0 :])


def _others(own: Rounds, row: Sequence[tuple[CellResult, Rounds]]) -> list[Rounds]:
    """Return the rounds of the first other cells of a row."""
    return list(islice((other for _, other in row if other is not own), MOST_OTHERS))


def _trend(result: CellResult, own: Rounds, others: Sequence[Rounds]) -> Trend | None:
    """Return the trend of a cell, ``None`` if there are too few runs."""

    def batches(runs: int) -> int:
        return min(BATCHES, runs // FEWEST_RUNS) if result.wanted_seconds else runs

    relative = _relative(own, others)
    alone = batches(len(relative)) < FEWEST_RUNS
    names = own if alone else relative
    number = batches(len(names))
    if number < FEWEST_RUNS:
        return None
    levels = [statistics.fmean(map(math.log, own[name].values())) for name in names]
    own_slope = _slope(levels, number)
    slope = own_slope if alone else _slope(list(relative.values()), number)
    # The ratio also rises if the others get faster; then the cell's own times hardly change.
    rises = slope.mean > 0 and own_slope.interval[1] >= slope.mean / 2
    low, high = map(math.exp, slope.interval)
    return Trend(math.exp(slope.mean), (low, high), slope.p_value if rises else 1.0, alone)


def _relative(own: Rounds, others: Sequence[Rounds]) -> dict[Round, float]:
    """Return the logarithm of each run's time relative to the other contenders, by round.

    Others that ended early are left out: they would change the mean of the others.
    """
    ratios = []
    for other in others:
        pairs = pairs_of(own, other)
        logs = map(statistics.fmean, log_ratios_of(list(pairs.values())))
        ratios.append(dict(zip(pairs, logs, strict=True)))
    most = max(map(len, ratios), default=0)
    whole = [of_other for of_other in ratios if len(of_other) == most]
    names = [name for name in own if whole and all(name in of_other for of_other in whole)]
    return {name: statistics.fmean(of_other[name] for of_other in whole) for name in names}


def _slope(levels: Sequence[float], number: int) -> Estimate:
    """Return the rise, from the first run to the last, of a line through a *number* of batches."""
    xs, ys = (
        [statistics.fmean(batch) for batch in joined([[one] for one in ones], number)]
        for ones in (range(len(levels)), levels)
    )
    slope, start = statistics.linear_regression(xs, ys)
    errors = math.fsum((y - start - slope * x) ** 2 for x, y in zip(xs, ys, strict=True))
    spread, steps = statistics.pvariance(xs) * number, len(levels) - 1
    return Estimate(slope * steps, errors / (number - 2) / spread * steps**2, number - 2)
