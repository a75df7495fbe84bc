"""The schedule of a client's iterations that come at a rate."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from zodbshootout.client.specification import Parameters

KEPT_UP = 0.98
"""The fraction of the arrivals that clients must serve in time to keep up with them."""
MIN_ITERATIONS = 2
"""The iterations that a slice has at least: a schedule of fewer lasts no time."""
LEAD = 0.25
"""The uncounted iterations at the beginning, as a fraction of those that count."""


def lead(iterations: int) -> int:
    """Return the number of uncounted iterations before *iterations* that count.

    They bring the queue in front of the storage to its average length.
    """
    return math.ceil(LEAD * iterations)


def instants(parameters: Parameters, client: int, rate: float, name: str) -> Iterator[float]:
    """Yield the instants at which a client should begin its iterations, in seconds after the start.

    All clients together have *rate* iterations a second.  The gaps between a client's iterations
    are either distributed exponentially, so that the arrivals at all clients are a Poisson process,
    or equal, and then so are the gaps between the arrivals at all clients.  Equal seeds and names
    give equal instants.
    """
    clients = parameters.crew.size
    if parameters.even_arrivals:
        at = client / rate
        while True:
            yield at
            at += clients / rate
    chance = random.Random(f"{parameters.seed}/{name}/{client}")  # noqa: S311
    at = 0.0
    while True:
        at += chance.expovariate(rate / clients)
        yield at
