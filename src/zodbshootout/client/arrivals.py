"""When the iterations of a client are due if they come at a rate."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from zodbshootout.client.specification import Parameters

KEPT_UP = 0.98
"""The part of the arrivals that are done in time if clients keep up with them."""
LEAD = 0.25
"""Iterations that are done first and do not count, as a fraction of those that count."""


def lead(iterations: int) -> int:
    """Return how many iterations are done before *iterations* that count.

    Meanwhile the queue in front of the storage becomes as long as it is on average.
    """
    return math.ceil(LEAD * iterations)


def instants(parameters: Parameters, client: int, rate: float, name: str) -> Iterator[float]:
    """Yield the seconds after the start at which the iterations of a client are due.

    All clients together have *rate* iterations a second.  The gaps between those of a client are
    distributed exponentially, so that all arrivals are a Poisson process, or they are equal, also
    those between the arrivals at all clients.  Equal seeds and names give equal instants.
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
