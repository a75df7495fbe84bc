"""Calibration: the number of iterations in a slice, and of slices in a run.

pyperf calibrates each benchmark by itself.  Contenders that are compared should do the same number
of iterations instead: then their databases grow equally and meet the same number of pauses.  So all
contenders get one count, as far as the slow ones can afford it.  And all contenders should have
equal parts of a run's time: one that needs longer for a slice takes fewer slices.
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
"""Seconds that the slices of a run take for each contender, by default."""
AFFORDABLE = 3
"""A slice may take this many times ``--min-time`` for the sake of an equal count."""
AFFORDABLE_IF_NUMBERED = 20
"""The same if the count has to be equal, because iterations are numbered."""
EQUAL_WITHIN = 1.5
"""The ratio of two contenders' times up to which they count as equally fast: calibration is no more
exact than that."""
MIN_ARRIVALS = 300
"""The minimum of arrivals at all clients in a slice at a rate: three of them are beyond the 99th
percentile."""
MIN_PACED = 3.0
"""The minimum seconds of a slice at a rate: a queue that begins empty hides for some seconds that a
storage is overloaded."""
MIN_BEYOND = 10
"""The minimum of arrivals beyond a percentile that is compared with a limit."""
SECONDS_OF_PHASE = 12.0
"""Seconds that usually suffice for a phase of an operation."""
SEARCH_TIME = 240.0
"""Seconds that suffice for several runs that search for a rate within a limit."""
USUAL_RUNS = 40
SHORTEST_RUN, LONGEST_RUN = 0.75, 60.0
"""Limits of the seconds in which all contenders make a run, if they make runs for a given time."""
SLICES_OF_A_RUN = 5
"""The minimum of a contender's slices in such a run, as far as they are not longer than this."""
LONG_SLICE = 1.0
"""Seconds of the longest of such slices: longer ones of two contenders are no pairs."""
MAX_LOOPS = 2**16
MIN_VALUES = 3
MAX_TURNS = 100
MAX_STRIDE = 8
"""The largest stride: a contender takes a slice in at least one of this many turns."""


@dataclass(frozen=True)
class Effort:
    """The duration and the number of a cell's measurements, in pyperf's terms."""

    processes: int
    """Runs (pyperf workers) of a cell, or their minimum if there is a :attr:`precision`."""
    values: int
    """Values of a run, each of which is a slice; 0 for as many as fit into :attr:`run_time`, and
    fewer of contenders that need longer for a slice."""
    warmups: int
    """Values at the beginning of a run that do not count."""
    loops: int
    """Iterations of a value; 0 to calibrate them."""
    min_time: float
    """Seconds that a value should take at least, which calibration aims at."""
    run_time: float = RUN_TIME
    """Seconds that the slices of a run take per contender, on average over contenders."""
    precision: float = 0.0
    """Half of the width of intervals, as a fraction of a figure, at which a row ends; 0 for a fixed
    number of runs."""
    limit: float = 0.0
    """With a :attr:`precision`, the maximum seconds of all rows; 0 for :attr:`cell_limit`."""
    cell_limit: float = 0.0
    """With a :attr:`precision`, the maximum seconds of a cell, on average over the cells."""
    duration: float = 0.0
    """Seconds for which the contenders of a row keep their clients, servers and databases, and make
    runs; 0 for processes of its own for each run."""

    def lasting(self, contenders: int) -> Effort:
        """Return the effort of the runs that *contenders* make for the :attr:`duration`.

        Slices are long, so that little of the time is off the clock.
        """
        a_run = min(LONGEST_RUN, max(SHORTEST_RUN, self.duration / USUAL_RUNS)) / contenders
        min_time = max(self.min_time, min(LONG_SLICE, a_run / SLICES_OF_A_RUN))
        return replace(self, run_time=a_run, min_time=min_time)


@dataclass
class RowCalibration(Generic[C]):
    """The loops and turns of all runs of a row, chosen in its first run."""

    effort: Effort
    fewest_loops: int = 1
    numbered: bool = False
    """Whether all contenders have to do the same iterations in a turn."""
    loops: dict[C, int] = field(default_factory=dict)
    tries_first: bool = True
    """Whether each contender does an iteration before its slices, which opens its connections."""
    turns: int = 0
    """Turns of a run, warm-ups excluded; 0 until they are chosen."""
    stride: dict[C, int] = field(default_factory=dict)
    """A contender takes a slice in one of this many turns; without an entry, in every turn."""
    cheapest: float = 0.0
    """Seconds of a slice of the fastest contender, time off the clock included."""
    latest: dict[C, float] = field(default_factory=dict)
    """The latest value of each contender."""

    def __post_init__(self) -> None:
        self.turns = self.effort.values

    @property
    def all_turns(self) -> int:
        """The number of turns of a run, warm-ups included."""
        return self.effort.warmups + self.turns

    @property
    def turns_chosen(self) -> bool:
        """Whether the number of turns was chosen so that they take the run time of the effort."""
        return bool(self.turns) and not self.effort.values

    def values(self, key: C) -> int:
        """Return the number of a contender's values in a run."""
        return -(-self.turns // self.stride.get(key, 1))

    def takes_part(self, key: C, turn: int) -> bool:
        """Return whether a contender takes a slice in a turn, counted from 0 on."""
        after_warmups = turn - self.effort.warmups
        return after_warmups < 0 or after_warmups % self.stride.get(key, 1) == 0


def loops_at_rate(parameters: Parameters) -> int:
    """Return the loops if iterations come at a rate, otherwise 0.

    They are enough to show the tail of the latencies, and for each client to have a schedule.
    """
    percentile = parameters.limit.percentile
    if not (parameters.rate or percentile):
        return 0
    arrivals = max(MIN_ARRIVALS, parameters.rate * MIN_PACED, MIN_BEYOND / (1 - percentile / 100))
    return max(MIN_ITERATIONS, math.ceil(round(arrivals, 6) / parameters.crew.size))


def min_seconds(parameters: Parameters) -> float:
    """Return the minimum seconds of a cell's slices until there is an interval."""
    if parameters.limit.percentile:
        return SEARCH_TIME
    if not parameters.rate:
        return 0.0
    if parameters.during:
        return (MIN_RUNS + 1) * SECONDS_OF_PHASE
    return (MIN_RUNS + 1) * slice_at_rate(parameters)


def slice_at_rate(parameters: Parameters) -> float:
    """Return the seconds of a slice at the rate."""
    loops = loops_at_rate(parameters)
    return (loops + lead(loops)) * parameters.crew.size / parameters.rate


def slices_at_rate(parameters: Parameters, run_time: float) -> int:
    """Return the slices at a rate that a contender takes in *run_time* seconds, 1 at least."""
    return max(1, round(run_time / slice_at_rate(parameters)))


def choose_loops(
    seconds: Mapping[C, float], min_time: float, fewest: int = 1, before: Iterable[int] = ()
) -> dict[C, int]:
    """Return the loops for each contender, given its seconds per iteration.

    The count is the power of two with which the fastest contender takes *min_time* seconds,
    measured from the end of its first iteration if *fewest* is more than one.  If a contender would
    take more than :data:`AFFORDABLE` times *min_time* for that count, it does as many as this time
    allows, and at least as many as take *min_time*.  None does less than *fewest*.  *before* are
    the loops of contenders that were calibrated earlier, and with which these are compared.
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
    """Return the loops for contenders that have to do equally many; see :func:`choose_loops`.

    The fastest takes *min_time* seconds for them, unless the slowest cannot afford that.
    """
    if not seconds:
        return {}
    slowest, fastest = max(seconds.values()), min(seconds.values())
    affordable = AFFORDABLE_IF_NUMBERED * min_time / max(slowest, 1e-9)
    within = 2 ** math.floor(math.log2(max(1.0, affordable)))
    loops = max(fewest, min(_loops_for(min_time, fastest), within))
    return dict.fromkeys(seconds, next(iter(before), loops))


def turn_strides(costs: Mapping[C, float], cheapest: float) -> dict[C, int]:
    """Return the stride of each contender, which takes a slice in one of this many turns.

    Strides are powers of two, so that slices of any two contenders fall into the same turn as often
    as possible.  *costs* are the seconds of their slices, *cheapest* those of the fastest one.
    """
    times = {key: max(1.0, cost / max(cheapest, 1e-9)) for key, cost in _rounded(costs).items()}
    return {key: min(MAX_STRIDE, 2 ** math.floor(math.log2(n))) for key, n in times.items()}


def choose_turns(costs: Mapping[C, float], stride: Mapping[C, int], run_time: float) -> int:
    """Return the number of turns of a run.

    *costs* are the seconds of a slice of each contender, time off the clock included; *run_time*
    is the average of the seconds that a contender may take.
    """
    turn = sum(cost / stride[key] for key, cost in costs.items())
    wanted = int(run_time * len(costs) / max(turn, 1e-9))
    needed = (MIN_VALUES - 1) * max(stride.values()) + 1
    return max(needed, min(MAX_TURNS, wanted))


def _rounded(seconds: Mapping[C, float]) -> dict[C, float]:
    """Give contenders that are about equally fast the seconds of the fastest of them."""
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
