"""A crew of processes that are started afresh, not forked."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection

from zodbshootout.client.benchmarks.benchmark import Benchmark
from zodbshootout.client.protocol import Clock
from zodbshootout.client.session import follow_orders
from zodbshootout.crews.local import ProcessCrew

_SPAWN = multiprocessing.get_context("spawn")


class SubprocessCrew(ProcessCrew):
    """Starts a new Python for each client; it inherits nothing from this one."""

    def launch(self) -> None:
        self._processes, self._connections = [], []
        for index in range(self.size):
            ours, theirs = _SPAWN.Pipe()
            arguments = (theirs, index, self._open_benchmark, self._clock)
            process = _SPAWN.Process(target=_live, args=arguments, name=f"client-{index}")
            process.start()
            theirs.close()
            self._connections.append(ours)
            self._processes.append(process)


def _live(
    connection: Connection, index: int, open_benchmark: Callable[[int], Benchmark], clock: Clock
) -> None:
    with connection:
        follow_orders(connection, lambda: open_benchmark(index), clock)
