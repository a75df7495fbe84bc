"""A crew of threads.  In a process patched by gevent its threads are greenlets."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from zodbshootout.client.benchmarks.benchmark import Benchmark
from zodbshootout.client.client import Neighbours
from zodbshootout.client.clock import Clock
from zodbshootout.client.session import follow_orders
from zodbshootout.crews.local import LocalCrew


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


class ThreadCrew(LocalCrew):
    """Starts its clients as daemon threads: one that hangs does not keep the process alive."""

    def __init__(
        self,
        size: int,
        open_benchmark: Callable[[int], Benchmark],
        clock: Clock,
        neighbours: Neighbours | None = None,
    ) -> None:
        """Prepare a crew whose client *n* works on ``open_benchmark(n)``.

        *neighbours* is what these clients are to each other where they share a DB.
        """
        super().__init__(size, clock)
        self._open_benchmark = open_benchmark
        self._neighbours = neighbours
        self._reports: queue.Queue[tuple[int, Any]] = queue.Queue()
        self._channels = [QueueChannel(index, self._reports) for index in range(size)]
        self._threads: list[threading.Thread] = []

    def launch(self) -> None:
        """Start the threads."""
        for index in range(self.size):
            thread = threading.Thread(
                target=self._live, args=(index,), name=f"client-{index}", daemon=True
            )
            thread.start()
            self._threads.append(thread)

    def _live(self, index: int) -> None:
        follow_orders(self._channels[index], lambda: self._open_benchmark(index), self._clock)

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
        if self._neighbours is not None:
            self._neighbours.abort()
