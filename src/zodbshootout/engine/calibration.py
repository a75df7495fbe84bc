"""How many iterations make a slice, and how many slices a run.

pyperf calibrates each benchmark by itself.  Contenders that are compared should rather do the
same number of iterations: each then grows its database alike and meets the same number of
pauses.  So from the time that an iteration takes each contender one count is chosen for all, as
far as the slow ones can afford it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

C = TypeVar("C", bound=Hashable)

AFFORDABLE = 3
"""A slice may take so many times ``--min-time`` for the sake of an equal count."""
MOST_LOOPS = 2**16
FEWEST_VALUES = 3
MOST_VALUES = 100


def choose_loops(
    seconds: Mapping[C, float], min_time: float, fewest: int = 1, before: Iterable[int] = ()
) -> dict[C, int]:
    """Return the loops for each contender, given its seconds per iteration.

    The count is the power of two with which the fastest contender takes *min_time* seconds.  A
    contender that would take more than :data:`AFFORDABLE` times *min_time* for so many does as
    many as that allows, and at least as many as take *min_time*.  None does less than *fewest*.
    *before* are the loops of contenders that were measured earlier, and that these compare with.

    Where that takes the slowest contender much longer, there are few slices.  Then the others have
    slices of up to so many times *min_time*, too.
    """
    slowest = fewest * max(seconds.values(), default=0.0)
    min_time = max(min_time, min(slowest / AFFORDABLE, AFFORDABLE * min_time))
    own = {key: _loops_for(min_time, took) for key, took in seconds.items()}
    common = max([1, *own.values(), *before])
    chosen = {}
    for key, took in seconds.items():
        affordable = AFFORDABLE * min_time / took if took > 0 else common
        within = 2 ** math.floor(math.log2(affordable)) if affordable >= 1 else 1
        chosen[key] = max(fewest, min(common, max(own[key], within)))
    return chosen


def choose_values(slice_costs: Iterable[float], run_time: float) -> int:
    """Return how many slices each contender takes in a run, given what one of each takes.

    *slice_costs* are seconds, with everything that a slice takes off the clock; *run_time* is what
    a contender may have on average.
    """
    costs = list(slice_costs)
    wanted = int(run_time * len(costs) / max(sum(costs), 1e-9))
    return max(FEWEST_VALUES, min(MOST_VALUES, wanted))


def _loops_for(min_time: float, took: float) -> int:
    if took <= 0:
        return MOST_LOOPS
    doublings = math.ceil(math.log2(max(min_time, 1e-9) / took))
    return min(MOST_LOOPS, 1 << max(0, doublings))
