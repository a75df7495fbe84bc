"""All clients of a run, whatever each of them is, and the start line they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from zodbshootout.engine import protocol
from zodbshootout.engine.sample import CrewSample

R = TypeVar("R")


class CrewFailed(Exception):  # noqa: N818
    """A client could not go on.  ``failure`` says why."""

    def __init__(self, failure: protocol.Failed) -> None:
        super().__init__(failure.cause)
        self.failure = failure


class Crew(ABC):
    """Clients that live somewhere, reached through orders and reports.

    A crew is used as a context manager: entering starts the clients and waits until every one is
    set up; leaving has them close their databases, or ends them where one has failed.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    @abstractmethod
    def start(self) -> None:
        """Start the clients."""

    @abstractmethod
    def send(self, client: int, order: Any) -> None:
        """Send an order to one client."""

    @abstractmethod
    def receive(self, waiting_for: Sequence[int]) -> tuple[int, Any]:
        """Wait for a report of one of these clients; return who it is and what it says.

        A client that is gone counts as having said :class:`~.protocol.Failed`.
        """

    @abstractmethod
    def join(self) -> None:
        """Wait until every client has ended of itself."""

    @abstractmethod
    def abandon(self) -> None:
        """End the clients without waiting for their answer."""

    def __enter__(self) -> Crew:
        try:
            self.start()
            self._gather(protocol.Arrived)
        except BaseException:
            self.abandon()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abandon()
            return
        try:
            self._send_all(protocol.Leave())
            self._gather(protocol.Left)
        except BaseException:
            self.abandon()
            raise
        self.join()

    def measure(
        self, loops: int, batch: int = 1, interlude: Callable[[], None] | None = None
    ) -> CrewSample:
        """Have every client do *loops* clocked iterations, all at the same time.

        An *interlude* is called right before that, while every client has closed its database.

        :raises CrewFailed: when a client fails or is gone
        """
        self._send_all(protocol.Measure(loops, batch))
        self._gather(protocol.Ready)
        if interlude is not None:
            self._send_all(protocol.Part())
            self._gather(protocol.Parted)
            interlude()
            self._send_all(protocol.ComeBack())
            self._gather(protocol.Ready)
        self._send_all(protocol.Go())
        finished = self._gather(protocol.Finished)
        self._send_all(protocol.Rest())
        self._gather(protocol.Resting)
        self._send_all(protocol.Verify())
        accounts = [report.account for report in self._gather(protocol.Verified)]
        self.send(0, protocol.Audit(accounts))
        self._gather(protocol.Audited, [0])
        return CrewSample([report.sample for report in finished])

    def _send_all(self, order: Any) -> None:
        for client in range(self.size):
            self.send(client, order)

    def _gather(self, kind: type[R], clients: Sequence[int] | None = None) -> list[R]:
        """Return one report of each client, in their order; of all clients unless some are named.

        :raises CrewFailed: when one of them reports a failure instead
        """
        asked = range(self.size) if clients is None else clients
        reports: dict[int, R] = {}
        failures: list[protocol.Failed] = []
        waiting = set(asked)
        while waiting:
            client, report = self.receive(sorted(waiting))
            waiting.discard(client)
            if isinstance(report, kind):
                reports[client] = report
                continue
            failures.append(report)
            if not report.secondary:
                break
        if failures:
            raise CrewFailed(failures[-1])
        return [reports[client] for client in asked]
