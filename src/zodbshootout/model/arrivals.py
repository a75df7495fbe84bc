"""The arrival times of a client's iterations at a given rate."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from zodbshootout.model.specification import Parameters

KEPT_UP = 0.98
"""The minimum of ``part_of_schedule`` at which clients still keep up with a rate."""
MIN_ITERATIONS = 2
"""The minimum number of iterations at a rate: a schedule of one iteration has no duration."""
LEAD = 0.25
"""The uncounted iterations at the beginning, as a fraction of the counted ones."""


def lead(iterations: int) -> int:
    """Return the number of uncounted iterations before *iterations* counted ones.

    The uncounted ones let the queue in front of the storage reach its average length.
    """
    return math.ceil(LEAD * iterations)


def instants(parameters: Parameters, clients: range, rate: float, name: str) -> Iterator[float]:
    """Yield the instants at which *clients* should begin iterations, in seconds after the start.

    *clients* is a range of client numbers: one client, or several clients that share a schedule.
    *rate* is the arrival rate of all clients of the crew together, in iterations a second.
    Interarrival times are exponentially distributed, so that the arrivals of all clients form a
    Poisson process.  The same seed, name and clients give the same instants.
    """
    own_rate = rate * len(clients) / parameters.crew.size
    chance = random.Random(f"{parameters.seed}/{name}/{clients.start}")  # noqa: S311
    at = 0.0
    while True:
        at += chance.expovariate(own_rate)
        yield at
