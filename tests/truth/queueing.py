"""A server of a known service time, and the latency that its queue has."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes import FakeClock
from zodbshootout.client.benchmarks.benchmark import Nothing

SERVICE = 0.01
"""Seconds that the server takes for each request, one at a time."""


def serving(clock: FakeClock, serve: Callable[[], None]) -> type[Nothing]:
    """Return a benchmark whose iterations are requests to a server."""

    class Request(Nothing):
        def run(self) -> None:
            serve()

    return Request


def mean_response(rate: float) -> float:
    """Return the mean response time, by the Pollaczek-Khinchine formula."""
    utilization = rate * SERVICE
    return SERVICE + utilization * SERVICE / (2 * (1 - utilization))
