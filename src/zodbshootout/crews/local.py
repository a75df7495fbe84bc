"""A crew whose clients live in this process, or are forked from it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

from zodbshootout.client import protocol
from zodbshootout.client.outcome import Failed, Failure
from zodbshootout.crews.crew import Crew

R = TypeVar("R")


class LocalCrew(Crew):
    """Clients each of whom is reached by itself."""

    @abstractmethod
    def launch(self) -> None:
        """Start the clients."""

    @abstractmethod
    def send(self, client: int, order: Any) -> None:
        """Send an order to one client."""

    @abstractmethod
    def receive(self, waiting_for: Sequence[int]) -> tuple[int, Any]:
        """Wait for a report of one of these clients; return who it is and what it says.

        A client that is gone counts as having reported a :class:`~.outcome.Failure`.
        """

    def start(self) -> None:
        """Start the clients, and wait until every one is set up.

        :raises Failed: when one cannot be
        """
        self.launch()
        self._gather(protocol.Ready, range(self.size))

    def ask(
        self,
        order: Any,
        answer: type[R],
        clients: Sequence[int] | None = None,
    ) -> list[R]:
        """Send an order to all clients, or to those named; return their reports in this order.

        :raises Failed: when one does not *answer* as it should, or is gone
        """
        asked = range(self.size) if clients is None else clients
        for client in asked:
            self.send(client, order)
        return self._gather(answer, asked)

    def _gather(self, kind: type[R], asked: Sequence[int]) -> list[R]:
        reports: dict[int, R] = {}
        failures: list[Failure] = []
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
            raise Failed(failures[-1])
        return [reports[client] for client in asked]
