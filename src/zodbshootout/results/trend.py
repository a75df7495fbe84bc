"""Trends: cells that take longer with time, which is neither noise nor drift of the machine.

Only runs are independent, so they are the units of both tests: one of the means of runs, in the
order in which they were made, and one of the changes within runs, for what begins anew with the
processes of each run.  A change of the machine concerns all contenders of a row, so a contender's
values are divided by those of the others.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from zodbshootout.results.estimate import Estimate, mean_of
from zodbshootout.results.result import CellResult, Trend

FALSE_TRENDS = 0.01
"""The probability that any cell of a run is said to have a trend if none has one, and the false
discovery rate if some have."""
FEWEST_RUNS = 4
"""The minimum number of runs in which a trend can be found."""
NOTEWORTHY = 1.05
"""The ratio of the time at the end to that at the beginning from which there is a trend."""

Rounds = Mapping[str, Mapping[int, float]]
"""The logarithms of a cell's values, by the name of the round and the number of the slice."""


@dataclass(frozen=True)
class _Run:
    """The logarithms of the values of a run, or of their ratios to those of another contender."""

    level: float
    """Their mean."""
    change: float | None
    """By how much they rise from the second to the last; ``None`` if there are too few."""


def with_trends(results: Sequence[CellResult], level: float = FALSE_TRENDS) -> list[CellResult]:
    """Return the results, those that take longer with time with their :class:`Trend`.

    *results* are those of one file or of a part of it, and *level* is as :data:`FALSE_TRENDS`.
    """
    rows: dict[object, dict[int, Rounds]] = {}
    for number, result in enumerate(results):
        if _has_independent_runs(result):
            key = result.cell.benchmark, result.cell.parameters
            rows.setdefault(key, {})[number] = _logarithms(result)
    trends = {
        number: trend
        for of_row in find_trends(list(rows.values()), level)
        for number, trend in of_row.items()
    }
    return [
        replace(result, trend=trends.get(number)) if result.trend != trends.get(number) else result
        for number, result in enumerate(results)
    ]


def _has_independent_runs(result: CellResult) -> bool:
    """Return whether all runs of a result do the same, independently of each other.

    A replay does other transactions in each run, and a search for the highest rate begins near the
    result of the search before.
    """
    parameters = result.cell.parameters
    differs = parameters.workload.name or parameters.limit.percentile
    return result.timed and result.keeps_up and not differs


def _logarithms(result: CellResult) -> Rounds:
    return {
        name: {number: math.log(value) for number, value in values.items() if value > 0}
        for name, values in result.by_round.items()
    }


def find_trends(
    rows: Sequence[Mapping[int, Rounds]], level: float = FALSE_TRENDS
) -> list[dict[int, Trend]]:
    """Return the trends of each row, by the keys of its cells; see :func:`with_trends`.

    The correction for the number of cells is that of Benjamini and Hochberg, as for verdicts.
    """
    tested = [
        (number, key, trend)
        for number, row in enumerate(rows)
        for key in row
        if (trend := _tested(row[key], [row[other] for other in row if other != key])) is not None
    ]
    p_values = [trend.p_value for _, _, trend in tested]
    if min(p_values, default=1.0) <= level:
        from scipy.stats import false_discovery_control  # the import takes a second

        p_values = false_discovery_control(p_values).tolist()
    trends: list[dict[int, Trend]] = [{} for _ in rows]
    for (number, key, trend), p_value in zip(tested, p_values, strict=True):
        if p_value <= level:
            trends[number][key] = replace(trend, p_value=p_value)
    return trends


def _tested(cell: Rounds, others: Sequence[Rounds]) -> Trend | None:
    """Return the likelier trend of a cell with its p-value, ``None`` if there are too few runs."""
    relative = _relative(cell, others)
    own = {
        name: _run_of(logs) for name, logs in cell.items() if logs and name in (relative or cell)
    }
    if len(own) < FEWEST_RUNS:
        return None
    if relative:
        across = _across_runs(list(own.values()), list(relative.values()))
    else:
        across = _across_runs_alone(list(own.values()))
    trends = [across, *_within_runs(list(own.values()), list(relative.values()))]
    noteworthy = [trend for trend in trends if trend.times >= NOTEWORTHY]
    if not noteworthy:
        return Trend(1.0, 1.0)
    likelier = min(noteworthy, key=lambda trend: trend.p_value)
    p_value = min(1.0, len(trends) * likelier.p_value)
    return replace(likelier, p_value=p_value, alone=not relative)


def _relative(cell: Rounds, others: Sequence[Rounds]) -> dict[str, _Run]:
    """Return the runs of a cell relative to those of other contenders, by round.

    They are medians over the others, of which all have a run in each of these rounds: otherwise
    what the machine did in the rounds of some would look like a change.  Others that have fewer
    rounds than the rest are left out.  There are no runs if too few rounds are common.
    """
    ratios = [_ratios(cell, other) for other in others]
    most = max(map(len, ratios), default=0)
    whole = [runs for runs in ratios if len(runs) == most]
    common = [name for name in cell if all(name in runs for runs in whole)]
    if min(most, len(common)) < FEWEST_RUNS:
        return {}
    centres = [statistics.fmean(runs[name].level for name in common) for runs in whole]
    return {
        name: _median(
            [
                replace(runs[name], level=runs[name].level - centre)
                for runs, centre in zip(whole, centres, strict=True)
            ]
        )
        for name in common
    }


def _ratios(cell: Rounds, other: Rounds) -> dict[str, _Run]:
    """Return the runs of the ratios of values of the same slices, by round."""
    ratios = {
        name: {number: log - other[name][number] for number, log in logs.items()
               if number in other[name]}
        for name, logs in cell.items()
        if name in other
    }  # fmt: skip
    return {name: _run_of(logs) for name, logs in ratios.items() if logs}


def _run_of(logs: Mapping[int, float]) -> _Run:
    level = statistics.fmean(logs.values())
    _, *later = sorted(logs.items())  # the first may take longer because caches are empty
    if len(later) < 2:  # noqa: PLR2004 - a line has two ends
        return _Run(level, None)
    numbers = [number for number, _ in later]
    return _Run(level, _line(numbers, [log for _, log in later]).mean * (numbers[-1] - numbers[0]))


def _median(runs: Sequence[_Run]) -> _Run:
    changes = [run.change for run in runs if run.change is not None]
    level = statistics.median(run.level for run in runs)
    return _Run(level, statistics.median(changes) if changes else None)


def _across_runs(own: Sequence[_Run], relative: Sequence[_Run]) -> Trend:
    """Test for a straight line through the times of runs relative to those of the others.

    If one contender takes longer relative to another, the other takes less relative to it.  The
    trend is that of the one whose own times have changed by more.
    """
    times = _times(relative)
    slope = _line(range(len(times)), times)
    is_its_own = math.log(_rise(_times(own))) >= math.log(_rise(times)) / 2
    return Trend(_rise(times), _p_of_rise(slope) if is_its_own else 1.0)


def _across_runs_alone(own: Sequence[_Run]) -> Trend:
    """Test whether the time rises from run to run by more than in a random walk.

    Without another contender, the machine may be what changes.  Runs then are not independent, but
    in a random walk the differences of successive ones are.
    """
    times = _times(own)
    steps = mean_of([later - former for former, later in pairwise(times)])
    return Trend(_rise(times), _p_of_rise(steps))


def _within_runs(own: Sequence[_Run], relative: Sequence[_Run]) -> list[Trend]:
    """Test whether values rise in the course of runs, both by themselves and relative to others.

    In the course of a run others may become faster, which makes this one look slower.
    """
    changes = [[run.change for run in runs if run.change is not None] for runs in (own, relative)]
    estimates = [mean_of(known) for known in changes if len(known) >= FEWEST_RUNS]
    if len(estimates) < 1 + bool(relative):
        return []
    p_value = max(_p_of_rise(estimate) for estimate in estimates)
    return [Trend(math.exp(estimates[-1].mean), p_value, within_runs=True)]


def _times(runs: Sequence[_Run]) -> list[float]:
    """Return the geometric means of runs as multiples of that of all runs."""
    mean = statistics.fmean(run.level for run in runs)
    return [math.exp(run.level - mean) for run in runs]


def _rise(times: Sequence[float]) -> float:
    """Return the last of the times as a multiple of the first, both on their straight line."""
    middle, half = statistics.fmean(times), (len(times) - 1) / 2
    step = _line(range(len(times)), times).mean
    first, last = (max(min(times), middle + steps * step) for steps in (-half, half))
    return last / first


def _line(xs: Sequence[float], ys: Sequence[float]) -> Estimate:
    """Return the slope of the line through points with independent, normally distributed *ys*."""
    middle, mean = statistics.fmean(xs), statistics.fmean(ys)
    spread = math.fsum((x - middle) ** 2 for x in xs)
    slope = math.fsum((x - middle) * (y - mean) for x, y in zip(xs, ys, strict=True)) / spread
    errors = [y - mean - slope * (x - middle) for x, y in zip(xs, ys, strict=True)]
    df = len(errors) - 2
    variance = math.fsum(error**2 for error in errors) / df / spread if df > 0 else 0.0
    return Estimate(slope, variance, df)


def _p_of_rise(estimate: Estimate) -> float:
    """Return the probability of a mean of at least this if the true one is 0."""
    return estimate.p_value / 2 if estimate.mean > 0 else 1 - estimate.p_value / 2
