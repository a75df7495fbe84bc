"""How many iterations make a slice, and how many slices a run.

pyperf calibrates each benchmark by itself.  Contenders that are compared should rather do the
same number of iterations: each then grows its database alike and meets the same number of
pauses.  So from the time that an iteration takes each contender one count is chosen for all, as
far as the slow ones can afford it.  And each should have as much of a run's time as the others: so
whoever needs longer for a slice takes fewer of them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

C = TypeVar("C", bound=Hashable)

AFFORDABLE = 3
"""A slice may take so many times ``--min-time`` for the sake of an equal count."""
ALIKE = 1.5
"""Contenders of which one takes up to so many times as long as the other do equally many
iterations: calibration is no more exact than that."""
MAX_LOOPS = 2**16
MIN_VALUES = 3
MAX_TURNS = 100
MAX_STRIDE = 8
"""A contender takes part in one of so many turns at least."""


def choose_loops(
    seconds: Mapping[C, float], min_time: float, fewest: int = 1, before: Iterable[int] = ()
) -> dict[C, int]:
    """Return the loops for each contender, given its seconds per iteration.

    The count is the power of two with which the fastest contender takes *min_time* seconds, from
    the end of the first iteration on where one is not enough.  A contender that would take more
    than :data:`AFFORDABLE` times *min_time* for so many does as many as that allows, and at least
    as many as take *min_time*.  None does less than *fewest*.  *before* are the loops of contenders
    that were measured earlier, and that these compare with.
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


def turn_strides(costs: Mapping[C, float], cheapest: float) -> dict[C, int]:
    """Return in one of how many turns each contender takes a slice: powers of two.

    So the slices of any two fall into the same turn as often as they can.  *costs* are what a slice
    takes, in seconds, and *cheapest* what it takes the quickest contender.
    """
    times = {key: max(1.0, cost / max(cheapest, 1e-9)) for key, cost in _alike(costs).items()}
    return {key: min(MAX_STRIDE, 2 ** math.floor(math.log2(n))) for key, n in times.items()}


def choose_turns(costs: Mapping[C, float], stride: Mapping[C, int], run_time: float) -> int:
    """Return how many turns a run has, given what a slice takes each contender.

    *costs* are seconds, with everything that a slice takes off the clock; *run_time* is what a
    contender may have on average.
    """
    turn = sum(cost / stride[key] for key, cost in costs.items())
    wanted = int(run_time * len(costs) / max(turn, 1e-9))
    needed = (MIN_VALUES - 1) * max(stride.values()) + 1
    return max(needed, min(MAX_TURNS, wanted))


def _alike(seconds: Mapping[C, float]) -> dict[C, float]:
    """Return the seconds of the fastest of those contenders that are as good as equally fast."""
    found: dict[C, float] = {}
    fastest = -math.inf
    for key in sorted(seconds, key=lambda key: seconds[key]):
        if not seconds[key] <= ALIKE * fastest:
            fastest = seconds[key]
        found[key] = fastest
    return {key: found[key] for key in seconds}


def _loops_for(min_time: float, took: float) -> int:
    if took <= 0:
        return MAX_LOOPS
    doublings = math.ceil(math.log2(max(min_time, 1e-9) / took))
    return min(MAX_LOOPS, 1 << max(0, doublings))
