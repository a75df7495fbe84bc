"""How many iterations make a slice, and how many slices a run.

pyperf calibrates each benchmark by itself.  Contenders that are compared should rather do the same
number of iterations: then their databases grow alike and meet the same number of pauses.  So one
count is chosen for all contenders, as far as the slow ones can afford it.  And all contenders
should have equal parts of a run's time: one that needs longer for a slice takes fewer slices.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from zodbshootout.client.arrivals import MIN_ITERATIONS, lead
from zodbshootout.client.specification import Parameters
from zodbshootout.results.estimate import MIN_RUNS

C = TypeVar("C", bound=Hashable)

RUN_TIME = 1.8
"""Seconds that the slices of a run take for each contender, by default."""
AFFORDABLE = 3
"""A slice may take this many times ``--min-time`` for the sake of an equal count."""
AFFORDABLE_IF_NUMBERED = 20
"""The same if the count has to be equal, because iterations are numbered."""
ALIKE = 1.5
"""Contenders do equally many iterations if one takes up to this many times as long as the other:
calibration is no more exact than that."""
MIN_ARRIVALS = 300
"""Arrivals of all clients in a slice at a rate, at least: three of them are beyond the 99th
percentile."""
MIN_PACED = 3.0
"""Seconds that a slice at a rate takes at least: a queue that begins empty hides for some seconds
that a storage is overloaded."""
MIN_BEYOND = 10
"""Arrivals beyond a percentile that is to be compared with a limit, at least."""
SECONDS_OF_A_SEARCH = 240.0
"""Seconds that are allowed for finding a rate within a limit some times."""
MAX_LOOPS = 2**16
MIN_VALUES = 3
MAX_TURNS = 100
MAX_STRIDE = 8
"""A contender takes part in at least one of this many turns."""


@dataclass(frozen=True)
class Effort:
    """The duration and the number of a cell's measurements, in pyperf's terms."""

    processes: int
    """Runs (pyperf workers) of a cell, or their minimum if there is a :attr:`precision`."""
    values: int
    """Values of a run, each of which is a slice.  0 takes as many as fit into :attr:`run_time`, and
    fewer of contenders that need longer for a slice."""
    warmups: int
    """Values of a run that are measured first and not counted."""
    loops: int
    """Iterations of a value; 0 calibrates."""
    min_time: float
    """Seconds that a value should take at least, which calibration aims at."""
    run_time: float = RUN_TIME
    """Seconds that the slices of a run take for each contender, on average over these."""
    precision: float = 0.0
    """Half of the width of intervals, as a part of a figure, that ends a row; 0 does not."""
    limit: float = 0.0
    """Seconds that everything takes at most, with a :attr:`precision`, unless it is 0."""
    cell_limit: float = 0.0
    """Seconds that a cell takes at most, on average, if there is no :attr:`limit`."""


@dataclass
class RowCalibration(Generic[C]):
    """Loops and turns that the first run of a row chooses, for all its runs."""

    effort: Effort
    fewest_loops: int = 1
    numbered: bool = False
    """Whether all contenders have to do the same iterations in a turn."""
    loops: dict[C, int] = field(default_factory=dict)
    turns: int = 0
    """Turns of a run, without those that warm up."""
    stride: dict[C, int] = field(default_factory=dict)
    """A contender takes a slice in one of this many turns; without an entry, in each."""
    cheapest: float = 0.0
    """Seconds of a slice of the quickest contender, time off the clock included."""
    latest: dict[C, float] = field(default_factory=dict)
    """The latest value of each contender."""

    def __post_init__(self) -> None:
        self.turns = self.effort.values

    @property
    def all_turns(self) -> int:
        """The turns of a run, those that warm up included."""
        return self.effort.warmups + self.turns

    def values(self, key: C) -> int:
        """Return the number of a contender's values in a run."""
        return -(-self.turns // self.stride.get(key, 1))

    def takes_part(self, key: C, turn: int) -> bool:
        """Return whether a contender takes a slice in a turn, counted from 0 on."""
        counting = turn - self.effort.warmups
        return counting < 0 or counting % self.stride.get(key, 1) == 0


def loops_at_rate(parameters: Parameters) -> int:
    """Return the loops for iterations that come at a rate, or 0 if they do not.

    They are enough to see the tail of the latencies, and for each client to have a schedule.
    """
    percentile = parameters.limit.percentile
    if not (parameters.rate or percentile):
        return 0
    arrivals = max(MIN_ARRIVALS, parameters.rate * MIN_PACED, MIN_BEYOND / (1 - percentile / 100))
    return max(MIN_ITERATIONS, math.ceil(round(arrivals, 6) / parameters.crew.size))


def min_seconds(parameters: Parameters) -> float:
    """Return the seconds that the slices of a cell take at least until it has an interval."""
    if parameters.limit.percentile:
        return SECONDS_OF_A_SEARCH
    if not parameters.rate:
        return 0.0
    loops = loops_at_rate(parameters)
    slices = (loops + lead(loops)) * parameters.crew.size / parameters.rate
    return (MIN_RUNS + 1) * slices


def choose_loops(
    seconds: Mapping[C, float], min_time: float, fewest: int = 1, before: Iterable[int] = ()
) -> dict[C, int]:
    """Return the loops for each contender, given its seconds per iteration.

    The count is the power of two with which the fastest contender takes *min_time* seconds,
    measured from the end of its first iteration if *fewest* is more than one.  A contender for
    which that count would take more than :data:`AFFORDABLE` times *min_time* does as many as that
    allows, and at least as many as take *min_time*.  None does less than *fewest*.  *before* are
    the loops of contenders that were measured earlier, and with which these are compared.
    """
    lead = 1 if fewest > 1 else 0
    alike = _alike(seconds)
    own = {key: _loops_for(min_time + lead * took, took) for key, took in alike.items()}
    common = max([1, *own.values(), *before])
    chosen = {}
    for key, took in alike.items():
        affordable = AFFORDABLE * min_time / took if took > 0 else common
        within = 2 ** math.floor(math.log2(affordable)) if affordable >= 1 else 1
        chosen[key] = max(fewest, min(common, max(own[key], within)))
    return chosen


def equal_loops(
    seconds: Mapping[C, float], min_time: float, fewest: int = 1, before: Iterable[int] = ()
) -> dict[C, int]:
    """Return the loops for contenders that have to do equally many, as :func:`choose_loops` does.

    The fastest takes *min_time* seconds for them, unless the slowest one could not afford that.
    """
    if not seconds:
        return {}
    slowest, fastest = max(seconds.values()), min(seconds.values())
    affordable = AFFORDABLE_IF_NUMBERED * min_time / max(slowest, 1e-9)
    within = 2 ** math.floor(math.log2(max(1.0, affordable)))
    loops = max(fewest, min(_loops_for(min_time, fastest), within))
    return dict.fromkeys(seconds, next(iter(before), loops))


def turn_strides(costs: Mapping[C, float], cheapest: float) -> dict[C, int]:
    """Return for each contender a power of two: it takes a slice in one of this many turns.

    With powers of two, slices of any two contenders fall into the same turn as often as possible.
    *costs* are the seconds of their slices, *cheapest* those of the quickest contender.
    """
    times = {key: max(1.0, cost / max(cheapest, 1e-9)) for key, cost in _alike(costs).items()}
    return {key: min(MAX_STRIDE, 2 ** math.floor(math.log2(n))) for key, n in times.items()}


def choose_turns(costs: Mapping[C, float], stride: Mapping[C, int], run_time: float) -> int:
    """Return the number of turns of a run.

    *costs* are the seconds of a slice of each contender, time off the clock included; *run_time*
    is the seconds that a contender may have on average.
    """
    turn = sum(cost / stride[key] for key, cost in costs.items())
    wanted = int(run_time * len(costs) / max(turn, 1e-9))
    needed = (MIN_VALUES - 1) * max(stride.values()) + 1
    return max(needed, min(MAX_TURNS, wanted))


def _alike(seconds: Mapping[C, float]) -> dict[C, float]:
    """Give contenders that are about equally fast the seconds of the fastest of them."""
    common: dict[C, float] = {}
    fastest = -math.inf
    for key in sorted(seconds, key=lambda key: seconds[key]):
        if not seconds[key] <= ALIKE * fastest:
            fastest = seconds[key]
        common[key] = fastest
    return {key: common[key] for key in seconds}


def _loops_for(min_time: float, took: float) -> int:
    if took <= 0:
        return MAX_LOOPS
    doublings = math.ceil(math.log2(max(min_time, 1e-9) / took))
    return min(MAX_LOOPS, 1 << max(0, doublings))
