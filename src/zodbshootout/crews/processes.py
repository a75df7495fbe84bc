"""A crew of processes, each with a database of its own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any

from zodbshootout.client.benchmarks.benchmark import Benchmark
from zodbshootout.client.clock import Clock
from zodbshootout.client.outcome import Failure
from zodbshootout.client.session import follow_orders
from zodbshootout.crews.local import LocalCrew
from zodbshootout.guardian import describe_exit

_FORK = multiprocessing.get_context("fork")

PATIENCE = 5.0
"""Seconds that a process is given to end after it was told to, before it is killed."""


class PipeChannel:
    """A client's end of a pipe."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def send(self, report: Any) -> None:
        """Send a report."""
        self._connection.send(report)

    def receive(self) -> Any:
        """Wait for the next order."""
        return self._connection.recv()

    def poll(self) -> bool:
        """Say whether an order has come."""
        return self._connection.poll()


class ProcessCrew(LocalCrew):
    """Forks its clients, from a process that has opened no database."""

    def __init__(self, size: int, open_benchmark: Callable[[int], Benchmark], clock: Clock) -> None:
        """Prepare a crew whose client *n* works on ``open_benchmark(n)``."""
        super().__init__(size, clock)
        self._open_benchmark = open_benchmark
        self._processes: list[ForkProcess] = []
        self._connections: list[Connection] = []

    def launch(self) -> None:
        """Fork the clients."""
        for index in range(self.size):
            ours, theirs = _FORK.Pipe()
            process = _FORK.Process(target=self._live, args=(index, theirs), name=f"client-{index}")
            self._connections.append(ours)
            process.start()
            theirs.close()
            self._processes.append(process)

    def _live(self, index: int, connection: Connection) -> None:
        # With a copy of the engine's ends, this one's and those of clients forked earlier, nobody
        # would ever see a pipe closed.
        for inherited in self._connections:
            inherited.close()
        with connection:
            follow_orders(PipeChannel(connection), lambda: self._open_benchmark(index), self._clock)

    def send(self, client: int, order: Any) -> None:
        """Send an order to one client; one that is gone is noticed when it does not answer."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self._connections[client].send(order)

    def receive(self, waiting_for: Sequence[int]) -> tuple[int, Any]:
        """Wait for a report, or for the end of a process that owes one."""
        by_connection = {self._connections[client]: client for client in waiting_for}
        connection = wait(list(by_connection))[0]
        assert isinstance(connection, Connection)
        client = by_connection[connection]
        try:
            return client, connection.recv()
        except (EOFError, ConnectionResetError):
            return client, self._end_of(client)

    def _end_of(self, client: int) -> Failure:
        process = self._processes[client]
        process.join(PATIENCE)
        cause = f"client {client} (pid {process.pid}) {describe_exit(process.exitcode)}"
        return Failure(cause, detail=cause, crashed=True)

    def join(self) -> None:
        """Wait until the processes have ended; end those that do not."""
        for process in self._processes:
            process.join(PATIENCE)
        self.abandon()

    def abandon(self) -> None:
        """Kill what is left of the crew."""
        for process in self._processes:
            process.kill()
            process.join()
            process.close()
        for connection in self._connections:
            connection.close()
        self._processes, self._connections = [], []
