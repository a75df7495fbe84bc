"""How many iterations make a value.

pyperf calibrates each benchmark by itself.  Contenders that are compared should rather do the
same number of iterations: each then grows its database alike and meets the same number of
pauses.  So every contender does one iteration of a benchmark, whatever it takes, and from these
times one count is chosen for all, as far as the slow ones can afford it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TypeVar

C = TypeVar("C", bound=Hashable)

AFFORDABLE = 3
"""A value may take so many times ``--min-time`` for the sake of an equal count."""
MOST_LOOPS = 2**16


def choose_loops(seconds: Mapping[C, float], min_time: float) -> dict[C, int]:
    """Return the loops for each contender, given its seconds per iteration.

    The count is the power of two with which the fastest contender takes *min_time* seconds.  A
    contender that would take more than :data:`AFFORDABLE` times *min_time* for so many does as
    many as that allows, and at least as many as take *min_time*.
    """
    own = {key: _loops_for(min_time, took) for key, took in seconds.items()}
    common = max(own.values())
    chosen = {}
    for key, took in seconds.items():
        affordable = AFFORDABLE * min_time / took if took > 0 else common
        within = 2 ** math.floor(math.log2(affordable)) if affordable >= 1 else 1
        chosen[key] = min(common, max(own[key], within))
    return chosen


def _loops_for(min_time: float, took: float) -> int:
    if took <= 0:
        return MOST_LOOPS
    doublings = math.ceil(math.log2(max(min_time, 1e-9) / took))
    return min(MOST_LOOPS, 1 << max(0, doublings))
