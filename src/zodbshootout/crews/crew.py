"""All clients of a run, whatever each of them is, and the start line they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from zodbshootout.client import protocol
from zodbshootout.client.benchmarks.benchmark import MAX_AT_ONCE
from zodbshootout.client.clock import Clock
from zodbshootout.crews.sample import Sample

R = TypeVar("R")

NOTICE = 0.001
NOTICE_PER_CLIENT = 0.0002
"""Seconds between the order to start and the start: by then all clients are to have received it."""


class Crew(ABC):
    """Clients that live somewhere, reached through orders and reports.

    A crew is used as a context manager: entering starts the clients and waits until every one is
    set up; leaving has them close their databases, or ends them where one has failed.
    """

    def __init__(self, size: int, clock: Clock) -> None:
        self.size = size
        self._clock = clock
        self._notice = NOTICE + NOTICE_PER_CLIENT * size
        self.most_at_once = MAX_AT_ONCE
        """Iterations that a stretch has at most."""
        self._prepared: protocol.Prepare | None = None
        self.hosts: Mapping[str, Sequence[int]] = {}
        """The clients on other hosts, by the names of these."""
        self.clock_uncertainty = 0.0
        """By how many seconds the start of a client may be off from what its own clock says."""

    @abstractmethod
    def start(self) -> None:
        """Start the clients, and wait until every one is set up.

        :raises Failed: when one cannot be
        """

    @abstractmethod
    def ask(
        self,
        order: Any,
        answer: type[R],
        clients: Sequence[int] | None = None,
    ) -> list[R]:
        """Send an order to all clients, or to those named; return their reports in this order.

        :raises Failed: when one does not *answer* as it should, or is gone
        """

    def join(self) -> None:  # noqa: B027
        """Wait until every client has ended of itself.

        Where another process has the clients, that process waits for them.
        """

    def abandon(self) -> None:  # noqa: B027
        """End the clients without waiting for their answer.

        Where another process has the clients, that process ends them when it is told no more.
        """

    def __enter__(self) -> Crew:
        try:
            self.start()
        except BaseException:
            self.abandon()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abandon()
            return
        try:
            self.ask(protocol.Leave(), protocol.Left)
        except BaseException:
            self.abandon()
            raise
        self.join()

    def prepare(self, iterations: int) -> None:
        """Have every client prepare what :meth:`measure` begins with, called like this next.

        :raises Failed: when a client fails or is gone
        """
        self._prepare(protocol.Prepare(min(iterations, self.most_at_once)))

    def measure(self, iterations: int, *, counts: bool = True) -> Sample:
        """Have every client do so many *iterations*, all at the same time.

        Iterations that do not *count* are not profiled, and after them no client goes on until the
        last has finished: it is over sooner, but the load is not kept up.

        What is more than :attr:`most_at_once` is done in several stretches, with a start each.

        :raises Failed: when a client fails or is gone
        """
        sample = Sample(self.size)
        left = iterations
        while left:
            counted = min(left, self.most_at_once)
            sample.add(self._stretch(protocol.Prepare(counted, counts)), counted)
            left -= counted
        return sample

    def _stretch(self, prepare: protocol.Prepare) -> list[protocol.Stretch]:
        if self._prepared != prepare:
            self._prepare(prepare)
        self._prepared = None
        instant = self._clock.now() + self._notice
        self.ask(protocol.Start(instant), protocol.Finished)
        stretches = self.ask(protocol.Stop(), protocol.Stretch)
        late = max(each.late for each in stretches)
        self._notice += late  # the machine is slower than was thought
        return stretches

    def _prepare(self, order: protocol.Prepare) -> None:
        self.ask(order, protocol.Ready)
        self._prepared = order

    def close_databases(self) -> None:
        """Have every client close its database.

        :raises Failed: when a client fails or is gone
        """
        self.ask(protocol.CloseDatabase(), protocol.Closed)

    def reopen_databases(self) -> None:
        """Have every client open its database again.

        :raises Failed: when a client fails or is gone
        """
        self.ask(protocol.ReopenDatabase(), protocol.Ready)

    def verify(self) -> None:
        """Have what the clients did checked in the database.

        :raises Failed: when it is not what it should be, or a client is gone
        """
        accounts = [each.account for each in self.ask(protocol.Verify(), protocol.Verified)]
        self.ask(protocol.Audit(accounts), protocol.Audited, [0])
