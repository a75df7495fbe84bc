"""A crew of threads.  In a process patched by gevent its threads are greenlets."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from zodbshootout.benchmarks.benchmark import Benchmark
from zodbshootout.engine.crew import Crew
from zodbshootout.engine.session import Clock, attend


class QueueChannel:
    """A client's two queues: its own for orders, everybody's for reports."""

    def __init__(self, index: int, reports: queue.Queue[tuple[int, Any]]) -> None:
        self.orders: queue.Queue[Any] = queue.Queue()
        self._index = index
        self._reports = reports

    def send(self, report: Any) -> None:
        """Send a report."""
        self._reports.put((self._index, report))

    def receive(self) -> Any:
        """Wait for the next order."""
        return self.orders.get()

    def poll(self) -> bool:
        """Say whether an order has come, after others had their turn: greenlets need that."""
        time.sleep(0)
        return not self.orders.empty()


class Rendezvous:
    """Lets one client act for all who share a DB while the others wait."""

    def __init__(self, parties: int) -> None:
        self._action: Callable[[], Any] | None = None
        self._result: Any = None
        self._barrier = threading.Barrier(parties, self._act)

    def __call__(self, action: Callable[[], Any]) -> Any:
        """Wait for all clients, have one do *action*, return its result to each.

        :raises threading.BrokenBarrierError: when another client has failed
        """
        self._action = action
        self._barrier.wait()
        return self._result

    def _act(self) -> None:
        assert self._action is not None
        self._result = self._action()

    def abort(self) -> None:
        """Have every client that waits, or will wait, fail."""
        self._barrier.abort()


class ThreadCrew(Crew):
    """Starts its clients as daemon threads: one that hangs does not keep the process alive."""

    def __init__(
        self,
        size: int,
        open_benchmark: Callable[[int], Benchmark],
        clock: Clock,
        rendezvous: Rendezvous | None = None,
    ) -> None:
        """Prepare a crew whose client *n* works on ``open_benchmark(n)``.

        *rendezvous* is where those clients meet, when they share a DB.
        """
        super().__init__(size)
        self._open_benchmark = open_benchmark
        self._clock = clock
        self._rendezvous = rendezvous
        self._reports: queue.Queue[tuple[int, Any]] = queue.Queue()
        self._channels = [QueueChannel(index, self._reports) for index in range(size)]
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the threads."""
        for index in range(self.size):
            thread = threading.Thread(
                target=self._live, args=(index,), name=f"client-{index}", daemon=True
            )
            thread.start()
            self._threads.append(thread)

    def _live(self, index: int) -> None:
        attend(self._channels[index], lambda: self._open_benchmark(index), self._clock)

    def send(self, client: int, order: Any) -> None:
        """Send an order to one client."""
        self._channels[client].orders.put(order)

    def receive(self, waiting_for: Sequence[int]) -> tuple[int, Any]:  # noqa: ARG002
        """Wait for the next report of any client."""
        return self._reports.get()

    def join(self) -> None:
        """Wait until the threads have ended."""
        for thread in self._threads:
            thread.join()

    def abandon(self) -> None:
        """Free the clients that wait for each other; the process takes the rest with it."""
        if self._rendezvous is not None:
            self._rendezvous.abort()
