"""Calibration: the number of iterations in a slice, and of slices in a run.

pyperf calibrates each benchmark separately.  Contenders that are compared should instead do the
same number of iterations, so that their databases grow equally, and their clients pause equally
often.  So all contenders do the same number, unless a slow contender would take too long.  All
contenders should also get equal parts of a run's time, so a slow contender takes fewer slices.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from zodbshootout.model.arrivals import MIN_ITERATIONS, lead
from zodbshootout.model.specification import Parameters
from zodbshootout.results.estimate import MIN_RUNS

C = TypeVar("C", bound=Hashable)

RUN_TIME = 1.8
"""The usual :attr:`Effort.run_time` of runs without a precision."""
AFFORDABLE = 3
"""A slice may last up to this multiple of ``--min-time`` to make counts of iterations equal."""
AFFORDABLE_IF_NUMBERED = 20
"""The same as :data:`AFFORDABLE`, if the work of an iteration depends on the iteration's number."""
EQUAL_WITHIN = 1.5
"""Contenders whose times differ by at most this factor count as equally fast, because calibration
cannot tell them apart."""
MIN_ARRIVALS = 300
"""Minimum number of arrivals (scheduled iterations of all clients) in a slice: three of 300 are
beyond the 99th percentile."""
MIN_PACED = 3.0
"""Minimum length of a slice at a rate, in seconds.  In a shorter slice, a queue that is empty at
first would mask an overload."""
MIN_BEYOND = 10
"""Minimum number of a slice's arrivals that are beyond the percentile of a latency limit."""
SECONDS_OF_PHASE = 12.0
"""Seconds that are usually enough for a phase of an operation."""
SEARCH_TIME = 240.0
"""Seconds of slices that a cell needs in all, if its runs search for the highest rate that keeps a
latency limit."""
USUAL_RUNS = 40
SHORTEST_RUN, LONGEST_RUN = 0.75, 60.0
"""Minimum and maximum seconds of a run with ``--for``, for all contenders together."""
SLICES_OF_A_RUN = 5
"""Desired number of a contender's slices in a run with ``--for``.  A long ``--min-time`` makes the
number smaller, :data:`LONG_SLICE` makes it larger."""
LONG_SLICE = 1.0
"""Maximum seconds of a slice with ``--for``: longer slices are too far apart to be pairs."""
MAX_LOOPS = 2**16
MIN_VALUES = 3
MAX_TURNS = 100
MAX_STRIDE = 8
"""The largest stride: even the slowest contender takes a slice in every eighth turn."""


@dataclass(frozen=True)
class Effort:
    """The duration and number of a cell's measurements, in pyperf's terms."""

    processes: int
    """Runs (pyperf workers) of a cell; with a :attr:`precision`, the minimum."""
    values: int
    """Values of a run, one per slice.  0 stands for as many as fit into :attr:`run_time`; slow
    contenders then have fewer values."""
    warmups: int
    """Values at the start of a run that are discarded."""
    loops: int
    """Iterations of a value; 0 if calibration chooses them."""
    min_time: float
    """Minimum seconds of a slice, for which calibration chooses the loops."""
    run_time: float = RUN_TIME
    """Seconds that all slices of a run take, divided by the number of contenders."""
    precision: float = 0.0
    """A row ends when the half width of each confidence interval is at most this fraction of the
    figure; 0 for a fixed number of runs."""
    limit: float = 0.0
    """With a :attr:`precision`, maximum seconds of all rows together.  If it is 0,
    :attr:`cell_limit` applies."""
    cell_limit: float = 0.0
    """With a :attr:`precision`, the maximum average seconds per cell."""
    duration: float = 0.0
    """Seconds in which the contenders of a row make many runs, all with the same processes; 0 if
    each run has new processes."""

    def lasting(self, contenders: int) -> Effort:
        """Return a copy with a :attr:`run_time` and a :attr:`min_time` that suit :attr:`duration`.

        *contenders* is the number of contenders in a row.  Slices are long, so that little time is
        off the clock.
        """
        a_run = min(LONGEST_RUN, max(SHORTEST_RUN, self.duration / USUAL_RUNS)) / contenders
        min_time = max(self.min_time, min(LONG_SLICE, a_run / SLICES_OF_A_RUN))
        return replace(self, run_time=a_run, min_time=min_time)


@dataclass
class RowCalibration(Generic[C]):
    """The loops and turns of a row, chosen in the first run and kept in all other runs."""

    effort: Effort
    fewest_loops: int = 1
    numbered: bool = False
    """Whether an iteration's work depends on its number, so that contenders need equal loops."""
    loops: dict[C, int] = field(default_factory=dict)
    at_once: int = 0
    """The maximum number of a client's iterations that are prepared together; if it is smaller than
    two slices, each lap has a single turn."""
    tries_first: bool = True
    """Whether each contender does an iteration before its slices, to open connections."""
    turns: int = 0
    """The number of turns of a run, without warm-ups; 0 until the number is chosen."""
    stride: dict[C, int] = field(default_factory=dict)
    """The number of turns from one slice of a contender to the next; 1 without an entry."""
    cheapest: float = 0.0
    """Seconds of a slice of the fastest contender, including time off the clock."""
    latest: dict[C, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.turns = self.effort.values

    @property
    def all_turns(self) -> int:
        """The number of turns of a run, warm-ups included."""
        return self.effort.warmups + self.turns

    @property
    def turns_chosen(self) -> bool:
        """Whether the number of turns was chosen to fill the run time of the effort."""
        return bool(self.turns) and not self.effort.values

    def decided(self, keys: Iterable[C]) -> bool:
        """Return whether the loops and turns of contenders have been chosen."""
        return bool(self.turns) and all(key in self.loops for key in keys)

    def values(self, key: C) -> int:
        """Return the number of a contender's values in a run."""
        return -(-self.turns // self.stride.get(key, 1))

    def laps(self) -> list[range]:
        """Divide the turns of a run into laps; warm-ups have laps of their own."""
        possible = [
            self.at_once // loops * self.stride.get(key, 1) for key, loops in self.loops.items()
        ]
        most = max(1, min(possible, default=1))
        ends = (0, self.effort.warmups), (self.effort.warmups, self.all_turns)
        return [
            range(turn, min(turn + most, end))
            for first, end in ends
            for turn in range(first, end, most)
        ]

    def takes_part(self, key: C, turn: int) -> bool:
        """Return whether a contender takes a slice in a turn, counted from 0."""
        after_warmups = turn - self.effort.warmups
        return after_warmups < 0 or after_warmups % self.stride.get(key, 1) == 0


def loops_at_rate(parameters: Parameters) -> int:
    """Return the loops of a slice; 0 if there is neither a rate nor a latency limit.

    The loops suffice to show the tail of the latencies.  Each client has at least two iterations,
    because a schedule of a single one has no duration.
    """
    percentile = parameters.limit.percentile
    if not (parameters.rate or percentile):
        return 0
    arrivals = max(MIN_ARRIVALS, parameters.rate * MIN_PACED, MIN_BEYOND / (1 - percentile / 100))
    return max(MIN_ITERATIONS, math.ceil(round(arrivals, 6) / parameters.crew.size))


def min_seconds(parameters: Parameters) -> float:
    """Return how many seconds of slices a cell needs, in all runs, for a confidence interval.

    The result is 0 if there is neither a rate nor a latency limit.
    """
    if parameters.limit.percentile:
        return SEARCH_TIME
    if not parameters.rate:
        return 0.0
    if parameters.during:
        return (MIN_RUNS + 1) * SECONDS_OF_PHASE
    return (MIN_RUNS + 1) * slice_at_rate(parameters)


def slice_at_rate(parameters: Parameters) -> float:
    """Return the seconds that a slice takes at the rate in *parameters*."""
    loops = loops_at_rate(parameters)
    return (loops + lead(loops)) * parameters.crew.size / parameters.rate


def slices_at_rate(parameters: Parameters, run_time: float) -> int:
    """Return how many slices take about *run_time* seconds at the given rate; at least 1."""
    return max(1, round(run_time / slice_at_rate(parameters)))


def choose_loops(
    seconds: Mapping[C, float], min_time: float, fewest: int = 1, before: Iterable[int] = ()
) -> dict[C, int]:
    """Return the loops for each contender, given the *seconds* of an iteration.

    The common count is the smallest power of two with which the fastest contender takes *min_time*
    seconds.  If *fewest* is more than 1, the time of the first iteration does not count.  A
    contender that would take more than :data:`AFFORDABLE` times *min_time* does fewer iterations,
    but enough to take *min_time*.  Every contender does at least *fewest* iterations.  The loops in
    *before* belong to contenders of the row that were calibrated earlier.
    """
    uncounted = 1 if fewest > 1 else 0
    rounded = _rounded(seconds)
    own = {key: _loops_for(min_time + uncounted * took, took) for key, took in rounded.items()}
    common = max([1, *own.values(), *before])
    chosen = {}
    for key, took in rounded.items():
        affordable = AFFORDABLE * min_time / took if took > 0 else common
        within = 2 ** math.floor(math.log2(affordable)) if affordable >= 1 else 1
        chosen[key] = max(fewest, min(common, max(own[key], within)))
    return chosen


def equal_loops(
    seconds: Mapping[C, float], min_time: float, fewest: int = 1, before: Iterable[int] = ()
) -> dict[C, int]:
    """Return the loops for contenders that need equal counts; see :func:`choose_loops`.

    The fastest contender takes *min_time* seconds, unless the slowest would take too long.
    """
    if not seconds:
        return {}
    slowest, fastest = max(seconds.values()), min(seconds.values())
    affordable = AFFORDABLE_IF_NUMBERED * min_time / max(slowest, 1e-9)
    within = 2 ** math.floor(math.log2(max(1.0, affordable)))
    loops = max(fewest, min(_loops_for(min_time, fastest), within))
    return dict.fromkeys(seconds, next(iter(before), loops))


def turn_strides(costs: Mapping[C, float], cheapest: float) -> dict[C, int]:
    """Return each contender's stride: the number of turns from one of its slices to the next.

    Strides are powers of two, so that slices of any two contenders fall into the same turn as often
    as possible.  *costs* are the seconds of a slice of each contender, *cheapest* is the row's
    smallest cost.
    """
    times = {key: max(1.0, cost / max(cheapest, 1e-9)) for key, cost in _rounded(costs).items()}
    return {key: min(MAX_STRIDE, 2 ** math.floor(math.log2(n))) for key, n in times.items()}


def choose_turns(costs: Mapping[C, float], stride: Mapping[C, int], run_time: float) -> int:
    """Return the number of turns of a run.

    *costs* are the seconds of a slice of each contender, including time off the clock.  A run has
    *run_time* seconds of slices per contender, on average.
    """
    turn = sum(cost / stride[key] for key, cost in costs.items())
    wanted = int(run_time * len(costs) / max(turn, 1e-9))
    needed = (MIN_VALUES - 1) * max(stride.values()) + 1
    return max(needed, min(MAX_TURNS, wanted))


def _rounded(seconds: Mapping[C, float]) -> dict[C, float]:
    """Return *seconds*; contenders that are about equally fast get the same number of seconds."""
    rounded: dict[C, float] = {}
    fastest = -math.inf
    for key in sorted(seconds, key=lambda key: seconds[key]):
        if not seconds[key] <= EQUAL_WITHIN * fastest:
            fastest = seconds[key]
        rounded[key] = fastest
    return rounded


def _loops_for(min_time: float, seconds: float) -> int:
    if seconds <= 0:
        return MAX_LOOPS
    doublings = math.ceil(math.log2(max(min_time, 1e-9) / seconds))
    return min(MAX_LOOPS, 1 << max(0, doublings))
