"""A crew whose clients live elsewhere, with a process there that speaks for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.clock import Clock, SystemClock
from zodbshootout.client.outcome import Failed, Failure
from zodbshootout.client.specification import ClientKind, Interpreter, Specification
from zodbshootout.crews.crew import Crew
from zodbshootout.crews.interpreters import LogSettings, Peer, started

R = TypeVar("R")


@dataclass(frozen=True)
class Recording:
    """What records the clients, and where its files go."""

    profiler: str
    directory: str


@dataclass(frozen=True)
class StartCrew:
    """Start a crew; answered by the time on its clock.  Then come :class:`Order`."""

    specification: Specification
    profiling: Recording | None = None
    clients: Sequence[int] | None = None
    """The numbers of the clients that live there; all of the crew's where it is ``None``."""


@dataclass(frozen=True)
class Order:
    """Have clients of the crew do something; answered by a list of their reports."""

    order: Any
    answer: type
    """What each is to report."""
    clients: Sequence[int] | None = None
    """Who; all where it is ``None``."""


class RemoteCrew(Crew):
    """Passes orders on, each in one message for all clients."""

    def __init__(self, size: int, clock: Clock, peer: Peer, lead: StartCrew) -> None:
        """Prepare the crew that *lead* tells of; *peer* starts it."""
        super().__init__(size, clock)
        self._peer = peer
        self._lead = lead

    def start(self) -> None:
        """Have the clients started, and set up.

        :raises Failed: when one cannot be, or does not read the clock that is read here
        """
        before = self._clock.now()
        there = self._peer.ask(self._lead)
        if not before <= there <= self._clock.now():
            raise Failed(
                Failure("its clock is not the one that is read here, so no start can be agreed on")
            )

    def ask(self, order: Any, answer: type[R], clients: Sequence[int] | None = None) -> list[R]:
        """Send an order to all clients, or to those named; return their reports in this order.

        :raises Failed: when one does not *answer* as it should, or is gone
        """
        reports: list[R] = self._peer.ask(Order(order, answer, clients))
        return reports


@contextmanager
def remote_crew(
    interpreter: Interpreter, lead: StartCrew, hello: LogSettings, clock: Clock | None = None
) -> Iterator[Crew]:
    """Have a crew in another Python, every client of which is set up.

    :raises Failed: when a client fails
    """
    parameters = lead.specification.parameters
    shape = parameters.crew
    patched = replace(interpreter, gevent=shape.client_kind is ClientKind.GREENLET)
    with started(patched, hello) as peer:
        crew = RemoteCrew(shape.size, clock or SystemClock(), peer, lead)
        crew.most_at_once = benchmarks()[lead.specification.benchmark].most_at_once(parameters)
        with crew:
            yield crew
