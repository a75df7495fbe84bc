"""Trends: rises in the times of cells, beyond noise and drift of the machine.

The values of one run are not independent, so two tests take each run as one number.  One tests the
means of runs, in the order of time.  The other tests changes within runs, because some effects
start again with the processes of each run.  The contenders of a row have the same benchmark and
parameters.  A change of the machine affects all of them.  So each contender's values are divided by
the values of the other contenders.

Runs that share their clients are not independent: what was slow in one run may still be slow in the
next.  So these runs are joined into batches.  A batch is so long that few slow periods extend into
the next batch.  A batch counts as the median of its runs, which a single slow run does not change.
A trend may be straight, bent or a step.  So noise is estimated from the differences between
successive batches.  The first and the last difference always count, because a single batch at an
end may be a disturbance.  Of the other differences, the largest is left out, because it may be the
step.  A contender is compared with the contender whose times follow its own times most closely.

If the ratio of two contenders changes, either one contender takes longer or the other takes less.
The times of each contender show which is true, unless the machine has changed too much.  Then it is
assumed that one takes longer, because storages usually get slower with their data.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from zodbshootout.model.quantities import TIME
from zodbshootout.results.estimate import Estimate, joined, mean_of
from zodbshootout.results.figures import Figure
from zodbshootout.results.probabilities import corrected, t_quantile
from zodbshootout.results.result import CellResult, OverTime, Stall, Trend

FALSE_TRENDS = 0.01
"""The false discovery rate: the share of chance findings among reported trends.  If no cell has a
trend, this is the probability that one is reported nevertheless."""
FEWEST_RUNS = 4
"""The minimum number of runs in which a trend can be found."""
NOTEWORTHY = 1.05
"""The smallest trend that counts: the time at the end as a multiple of the time at the start."""

BATCHES = 10
DF = 3.5
"""The degrees of freedom of the noise of runs that share their clients."""
LARGEST_LEFT_OUT = 1.38
"""The mean square of the differences between batches, divided by the mean square without the
largest difference.

This number, :data:`BATCHES` and :data:`DF` are from simulations; :mod:`benchmarks.trends` has the
error rates."""
DRIFT = 3.0
"""The largest expected change of the machine's speed, in standard deviations of a random walk.  A
change of this size may hide which contender has changed."""
STEPS_OF_LEVELS = 1.5
"""A factor that corrects the variance of the mean step between batches in a random walk.  The
variance is computed as if steps were independent, but successive steps share a batch."""
FEWEST_SHARED = 2 * BATCHES
"""The minimum number of runs for a trend if they share clients; the first run does not count."""
NOTEWORTHY_SHARED = 1.02
LOAD_MARGIN = 1.25
"""An exponent that enlarges the factor by which load alone may change times.  The enlarged factor
is compared with the measured factor, which noise may have enlarged too."""
GROWTH = 0.01
"""The minimum growth of memory in all runs together, as a fraction; less is not reported."""
SETTLING = 4
"""Runs are divided into this many parts; memory is not tested in the first, when caches fill."""
MEMORIES = ("client_memory_now_bytes", "server_memory_bytes")
STALL = 0.1
STALL_TIMES = 10
"""The minimum duration of a stall, as a multiple of the median of the slices' longest iterations.
A stall also takes at least :data:`STALL` seconds."""

Rounds = Mapping[str, Mapping[int, float]]
"""The logarithms of a cell's values, by the name of the round and the number of the slice."""


@dataclass(frozen=True)
class _Run:
    """A summary of a run's logarithms: of values, or of ratios to another contender's values."""

    level: float
    """The mean of the logarithms."""
    change: float | None
    """The rise of a line from the second slice to the last; ``None`` if slices are too few."""


def with_trends(results: Sequence[CellResult], level: float = FALSE_TRENDS) -> list[CellResult]:
    """Return the results; cells that take longer with time have a :class:`Trend`.

    *results* are the results of a file, or some of them.
    """
    rows: dict[object, dict[int, Rounds]] = {}
    for number, result in enumerate(results):
        if not result.wanted_seconds and _can_be_tested(result):
            key = result.cell.row
            rows.setdefault(key, {})[number] = _logarithms(result)
    trends = {
        number: trend
        for of_row in find_trends(list(rows.values()), level)
        for number, trend in of_row.items()
    }
    findings = {number: (trend, None) for number, trend in trends.items()} | _over_time(
        results, level
    )
    nothing: tuple[Trend | None, OverTime | None] = (None, None)
    changed = []
    for number, result in enumerate(results):
        trend, over_time = findings.get(number, nothing)
        is_same = (result.trend, result.over_time) == (trend, over_time)
        changed.append(result if is_same else replace(result, trend=trend, over_time=over_time))
    return changed


def _can_be_tested(result: CellResult) -> bool:
    """Return whether the runs of a result were timed, kept up, and all did the same work.

    Runs of a replay do different transactions, and a run that searches for the highest rate starts
    near the previous run's result.
    """
    parameters = result.cell.parameters
    differs = parameters.workload.name or parameters.limit.percentile
    return result.timed and result.keeps_up and not differs


def _over_time(
    results: Sequence[CellResult], level: float
) -> dict[int, tuple[Trend | None, OverTime | None]]:
    """Return the findings on results whose runs share clients, by the number of the result."""
    shared = {
        number: result
        for number, result in enumerate(results)
        if result.wanted_seconds and result.timed and result.starts
    }
    rows: dict[object, dict[int, Rounds]] = {}
    for number, result in shared.items():
        if _can_be_tested(result) or _has_counterpart(result, shared.values()):
            key = result.cell.row
            rows.setdefault(key, {})[number] = _logarithms(result)
    tested = {
        key: trend
        for row in find_shared_trends(list(rows.values()), level)
        for key, trend in row.items()
    }
    growths = _growths(shared, level / 2)
    findings: dict[int, tuple[Trend | None, OverTime | None]] = {}
    for number, result in shared.items():
        change, loads = tested.get(number), _loads(result)
        seconds = result.starts[-1][-1] - result.starts[0][0]
        over_time = OverTime(
            seconds,
            change.smallest if change else None,
            change is not None and change.faster,
            tuple(growths.get(number, ())),
            tuple(_stalls(result)),
            max(_batches(loads)),
            change is not None and 1 < change.factor <= _by_load(loads),
        )
        findings[number] = (change.slower if change else None, over_time)
    return findings


def _has_counterpart(result: CellResult, others: Iterable[CellResult]) -> bool:
    """Return whether a result keeps up, and its row also has another contender's result."""
    same = [other for other in others if other.cell.row == result.cell.row]
    return result.keeps_up and len(same) > 1


@dataclass(frozen=True)
class Change:
    """Findings on the times of runs that share their clients."""

    slower: Trend | None
    faster: bool
    smallest: float
    """The smallest trend that would have been detected, as a multiple of the time at the start."""
    factor: float
    """The factor by which times grew, or the inverse if they fell: the lower end of the 95 %
    confidence interval.  If this lower end is at most 1, times may not have changed."""


@dataclass(frozen=True)
class _Course:
    """The times of runs that share their clients, in order, and the slope from run to run."""

    times: Sequence[float]
    slope: Estimate
    p_value: float
    """The probability of at least this slope by chance."""
    rises: bool
    """Whether the times changed because a contender got slower; if not, a contender got faster."""
    alone: bool

    @property
    def rise(self) -> float:
        return _rise(self.times, self.slope.mean)

    def smallest(self, level: float) -> float:
        """Return the smallest rise that would be detected in 95 of 100 cases."""
        quantiles = sum(t_quantile(self.slope.df, part) for part in (level, 0.05))
        flat = [1.0] * len(self.times)
        half = (len(flat) - 1) / 2
        slope = min(quantiles * math.sqrt(self.slope.variance), 0.99 / half)
        return max(NOTEWORTHY_SHARED, (1 + half * slope) / (1 - half * slope))


def find_shared_trends(
    rows: Sequence[Mapping[int, Rounds]], level: float = FALSE_TRENDS
) -> list[dict[int, Change]]:
    """Return, for each row, the changes of the cells with enough runs, by the cells' keys.

    All runs of a cell share their clients.
    """
    courses = [
        (number, key, course)
        for number, row in enumerate(rows)
        for key in row
        if (course := _course(row[key], [row[other] for other in row if other != key])) is not None
    ]
    rises = [course.p_value if course.rises else 1.0 for _, _, course in courses]
    falls = [1.0 if course.rises else 1 - course.p_value for _, _, course in courses]
    changes: list[dict[int, Change]] = [{} for _ in rows]
    for (number, key, course), rise, fall in zip(
        courses, corrected(rises, level), corrected(falls, level), strict=True
    ):
        low, high = (_rise(course.times, end) for end in course.slope.interval)
        is_slower = rise <= level and course.rise >= NOTEWORTHY_SHARED
        trend = Trend(course.rise, rise, alone=course.alone, interval=(low, high))
        changes[number][key] = Change(
            trend if is_slower else None,
            fall <= level and course.rise <= 1 / NOTEWORTHY_SHARED,
            course.smallest(level / len(courses)),
            max(low, 1 / high),
        )
    return changes


def _loads(result: CellResult) -> list[float]:
    """Return, by run, the part of processor time that other programs or virtual machines used."""
    return [one.get("other_load", 0.0) + one.get("steal", 0.0) for one in result.facts]


def _by_load(loads: Sequence[float]) -> float:
    """Return the factor by which *loads* alone may change the ratio of two contenders' times.

    This is the worst case: one contender only computes, and the other only waits.
    """
    times = [1 / (1 - min(load, 0.99)) for load in loads[1:]]
    rise = _rise(times, _slope_of_batches(times).mean)
    return math.exp(LOAD_MARGIN * abs(math.log(rise)))


def _course(cell: Rounds, others: Sequence[Rounds]) -> _Course | None:
    """Return the course of a cell relative to one of the *others*, or alone.

    The result is ``None`` if there are too few runs.
    """
    relatives = [relative for other in others if (relative := _relative(cell, [other]))]
    longest = max(map(len, relatives), default=0)
    courses = [
        course
        for relative in relatives
        if len(relative) == longest and (course := _relative_course(cell, relative))
    ]
    if courses:
        return min(courses, key=lambda course: course.slope.variance)
    return _lone_course(cell)


def _relative_course(cell: Rounds, relative: Mapping[str, _Run]) -> _Course | None:
    """Return the course of a cell's ratios to another cell, ``None`` if there are too few runs."""
    names = [name for name in cell if name in relative][1:]
    if len(names) < FEWEST_SHARED:
        return None
    own = _times([_run_of(cell[name]) for name in names])
    times = _times([relative[name] for name in names])
    slope = _slope_of_batches(times)
    differs, changes = (math.log(_rise(t, _slope_of_batches(t).mean)) for t in (times, own))
    of_machine = DRIFT * math.sqrt(_steps(own).variance) * (len(own) - 1)
    return _Course(
        times, slope, _p_of_rise(slope), rises=changes >= differs / 2 - of_machine, alone=False
    )


def _lone_course(cell: Rounds) -> _Course | None:
    """Return the course of a cell without others, ``None`` if there are too few runs.

    A random walk of the machine may look like a slope.  The steps of a random walk are independent,
    so the steps are tested instead of the slope.
    """
    runs = [_run_of(logs) for logs in cell.values() if logs][1:]
    if len(runs) < FEWEST_SHARED:
        return None
    times = _times(runs)
    slope, steps = _slope_of_batches(times), _steps(times)
    is_rise = slope.mean >= 0
    slope = replace(steps, mean=slope.mean)
    return _Course(times, slope, _p_of_rise(steps), is_rise, alone=True)


def _batches(numbers: Sequence[float]) -> list[float]:
    """Return the medians of batches of successive numbers."""
    batches = joined([[number] for number in numbers], BATCHES)
    return [statistics.median(batch) for batch in batches]


def _slope_of_batches(numbers: Sequence[float]) -> Estimate:
    """Return the slope from number to number; the numbers may be correlated."""
    levels = _batches(numbers)
    steps = [later - former for former, later in pairwise(levels)]
    usual = statistics.median(steps)
    first, *inner, last = [(step - usual) ** 2 for step in steps]
    *inner, _ = sorted(inner)
    noise = LARGEST_LEFT_OUT * statistics.fmean([first, *inner, last]) / 2
    spread = math.fsum((number - (BATCHES - 1) / 2) ** 2 for number in range(BATCHES))
    slope, size = _line(range(BATCHES), levels).mean, len(numbers) / BATCHES
    return Estimate(slope / size, noise / spread / size**2, DF)


def _steps(numbers: Sequence[float]) -> Estimate:
    """Return the mean step from number to number; the numbers may be a random walk."""
    size = len(numbers) / BATCHES
    mean = mean_of([later - former for former, later in pairwise(_batches(numbers))])
    variance = STEPS_OF_LEVELS * mean.variance
    return replace(mean, mean=mean.mean / size, variance=variance / size**2)


def _growths(results: Mapping[int, CellResult], level: float) -> dict[int, list[tuple[str, float]]]:
    """Return, by result, the key and the bytes per hour of each memory that grows until the end."""
    tested = [
        (number, key, sizes, _steps(sizes))
        for number, result in results.items()
        for key in MEMORIES
        if len(sizes := _settled(result, key)) >= FEWEST_SHARED
    ]
    p_values = corrected([_p_of_rise(steps) for _, _, _, steps in tested], level)
    growths: dict[int, list[tuple[str, float]]] = {}
    for (number, key, sizes, steps), p_value in zip(tested, p_values, strict=True):
        result = results[number]
        in_all = steps.mean * len(result.runs)
        later = _steps(sizes[len(sizes) // 2 :]).mean
        if p_value <= level and in_all >= GROWTH * sizes[0] and later >= steps.mean / 2:
            seconds = (result.starts[-1][0] - result.starts[0][0]) / (len(result.runs) - 1)
            growths.setdefault(number, []).append((key, 3600 * steps.mean / seconds))
    return growths


def _settled(result: CellResult, key: str) -> list[float]:
    """Return a memory's sizes at the ends of runs; leave out the first runs, when caches fill."""
    sizes = [size for (size,) in result.numbers(key)] if key in result.metadata else []
    return sizes[len(sizes) // SETTLING :]


def _stalls(result: CellResult) -> Iterator[Stall]:
    longest = [seconds for run in result.numbers("slice_longest_s") for seconds in run]
    starts = [start for run in result.starts for start in run]
    if len(longest) != len(starts):
        return
    limit = max(STALL, STALL_TIMES * statistics.median(longest))
    for start, seconds in zip(starts, longest, strict=True):
        if seconds >= limit:
            yield Stall(start - starts[0], seconds)


def _logarithms(result: CellResult) -> Rounds:
    return {
        name: {number: math.log(value) for number, value in values.items() if value > 0}
        for name, values in Figure(result, TIME).by_round.items()
    }


def find_trends(
    rows: Sequence[Mapping[int, Rounds]], level: float = FALSE_TRENDS
) -> list[dict[int, Trend]]:
    """Return the trends in each row, by the keys of the row's cells.

    The p-values are corrected for the number of cells, like those of verdicts.
    """
    tested = [
        (number, key, trend)
        for number, row in enumerate(rows)
        for key in row
        if (trend := _tested(row[key], [row[other] for other in row if other != key])) is not None
    ]
    p_values = corrected([trend.p_value for _, _, trend in tested], level)
    trends: list[dict[int, Trend]] = [{} for _ in rows]
    for (number, key, trend), p_value in zip(tested, p_values, strict=True):
        if p_value <= level:
            trends[number][key] = replace(trend, p_value=p_value)
    return trends


def _tested(cell: Rounds, others: Sequence[Rounds]) -> Trend | None:
    """Return the likelier trend of a cell, across or within runs; ``None`` with too few runs."""
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
    """Return the runs of a cell relative to the runs of other contenders, by round.

    Only the contenders that share the most rounds with the cell are used.  The result of a round
    is the median over these contenders.  A round counts only if it has a run of each of these
    contenders.  Otherwise, a disturbance of the machine in some rounds would look like a change.
    The result is empty if there are too few rounds.
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
    """Return, by round, a summary of the ratios of two contenders' values in the same slices."""
    ratios = {
        name: {number: log - other[name][number] for number, log in logs.items()
               if number in other[name]}
        for name, logs in cell.items()
        if name in other
    }  # fmt: skip
    return {name: _run_of(logs) for name, logs in ratios.items() if logs}


def _run_of(logs: Mapping[int, float]) -> _Run:
    level = statistics.fmean(logs.values())
    _, *later = sorted(logs.items())  # the first slice may be slow because caches are empty
    if len(later) < 2:  # noqa: PLR2004 - a line has two ends
        return _Run(level, None)
    numbers = [number for number, _ in later]
    return _Run(level, _line(numbers, [log for _, log in later]).mean * (numbers[-1] - numbers[0]))


def _median(runs: Sequence[_Run]) -> _Run:
    changes = [run.change for run in runs if run.change is not None]
    level = statistics.median(run.level for run in runs)
    return _Run(level, statistics.median(changes) if changes else None)


def _across_runs(own: Sequence[_Run], relative: Sequence[_Run]) -> Trend:
    """Test whether the times of runs, relative to other contenders, rise in a straight line.

    Relative times also rise if the other contenders get faster.  The trend belongs to the contender
    whose own times changed more.
    """
    times = _times(relative)
    slope = _line(range(len(times)), times)
    is_its_own = math.log(_straight_rise(_times(own))) >= math.log(_straight_rise(times)) / 2
    return Trend(_straight_rise(times), _p_of_rise(slope) if is_its_own else 1.0)


def _across_runs_alone(own: Sequence[_Run]) -> Trend:
    """Test whether the time rises from run to run by more than in a random walk.

    Without another contender, the cause may be a random walk of the machine.  Then runs are not
    independent, but the differences between successive runs are.
    """
    times = _times(own)
    steps = mean_of([later - former for former, later in pairwise(times)])
    return Trend(_straight_rise(times), _p_of_rise(steps))


def _within_runs(own: Sequence[_Run], relative: Sequence[_Run]) -> list[Trend]:
    """Test whether values rise within runs, both by themselves and relative to other contenders.

    If the others become faster within a run, a contender only looks slower.
    """
    changes = [[run.change for run in runs if run.change is not None] for runs in (own, relative)]
    estimates = [mean_of(known) for known in changes if len(known) >= FEWEST_RUNS]
    if len(estimates) < 1 + bool(relative):
        return []
    p_value = max(_p_of_rise(estimate) for estimate in estimates)
    return [Trend(math.exp(estimates[-1].mean), p_value, within_runs=True)]


def _times(runs: Sequence[_Run]) -> list[float]:
    """Return the geometric mean of each run as a multiple of the geometric mean of all runs."""
    mean = statistics.fmean(run.level for run in runs)
    return [math.exp(run.level - mean) for run in runs]


def _straight_rise(times: Sequence[float]) -> float:
    return _rise(times, _line(range(len(times)), times).mean)


def _rise(times: Sequence[float], step: float) -> float:
    """Return the last time divided by the first, on a line that rises by *step* per run."""
    middle, half = statistics.fmean(times), (len(times) - 1) / 2
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
    """Return the probability of at least the estimated mean if the true mean is 0."""
    return estimate.p_value / 2 if estimate.mean > 0 else 1 - estimate.p_value / 2
