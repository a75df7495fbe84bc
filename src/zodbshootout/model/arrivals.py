"""The arrival times of a client's iterations at a given rate."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from zodbshootout.model.specification import Parameters

KEPT_UP = 0.98
"""The fraction of the arrivals that clients must serve in time to keep up with them."""
MIN_ITERATIONS = 2
"""The minimum number of iterations in a slice: the schedule of a single one lasts no time."""
LEAD = 0.25
"""The uncounted iterations at the beginning, as a fraction of those that count."""


def lead(iterations: int) -> int:
    """Return the number of uncounted iterations before *iterations* that count.

    They bring the queue in front of the storage to its average length.
    """
    return math.ceil(LEAD * iterations)


def instants(
    parameters: Parameters, client: int, rate: float, name: str, *, continues: bool = False
) -> Iterator[float]:
    """Yield the instants at which a client should begin its iterations, in seconds after the start.

    *rate* is the arrival rate of all clients together, in iterations a second.  A client's
    interarrival times are distributed exponentially, so that the arrivals at all clients together
    are a Poisson process.  With ``even_arrivals`` the interarrival times are constant, those of a
    client and those of all clients together.  The same seed and name give the same instants.
    If the schedule *continues* another one, the start is the latest instant of that.
    """
    clients = parameters.crew.size
    if parameters.even_arrivals:
        at = (clients if continues else client) / rate
        while True:
            yield at
            at += clients / rate
    chance = random.Random(f"{parameters.seed}/{name}/{client}")  # noqa: S311
    at = 0.0
    while True:
        at += chance.expovariate(rate / clients)
        yield at
