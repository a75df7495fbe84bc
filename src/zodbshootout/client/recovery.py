"""Repeat iterations that fail while a server restarts, and look for lost commits."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from zodbshootout.client.benchmarks.benchmark import Benchmark, CheckFailed, Unsupported
from zodbshootout.client.client import Neighbours
from zodbshootout.client.commits import CHECKED_AT_ONCE, CommitLog
from zodbshootout.client.connections import Socket, sockets

PATIENCE = 60.0
"""Seconds for which a client repeats a failing iteration before the client gives up."""
PAUSE = 0.02
"""Seconds between two attempts at an iteration."""
HUNDRED = 100


class Recovered(NamedTuple):
    """How one client came through the restart of a server."""

    failed: int
    """The number of failed attempts at iterations."""
    acknowledged: int
    """The number of commits that the storage acknowledged."""
    lost: int
    """The number of acknowledged commits that no longer exist."""
    ends: list[float]
    """The times at which iterations ended after the server was gone: the first :data:`HUNDRED`
    times, or all times if there are fewer."""
    connected: Mapping[Socket, float]
    """The time at which the client first saw each connection of its process."""


class Recovery:
    """Runs a benchmark's iterations, and repeats those that fail."""

    def __init__(self, benchmark: Benchmark, supply: Callable[[], int]) -> None:
        """Run iterations of *benchmark*; *supply* returns how many are prepared."""
        self._benchmark = benchmark
        self._supply = supply
        self._log = benchmark.client.commit_log = CommitLog()
        self.since = 0
        """The number of iterations before the stretch's latest failure; they are not checked."""
        self.done = 0
        """The number of iterations in the stretch so far."""
        self._failed = 0
        self._ends: list[float] = []
        self._connected: dict[Socket, float] = {}

    def begin(self) -> None:
        self._note_connections()
        self.since = self.done = 0

    def run(self) -> None:
        """Do an iteration, and repeat it while it fails.

        :raises CheckFailed: if the storage did something wrong; the iteration is not repeated
        """
        try:
            self._benchmark.run()
        except (CheckFailed, Unsupported):
            raise
        except Exception as error:  # noqa: BLE001 - storages raise their drivers' exceptions
            self._repeat(error)
        self.done += 1
        self._ends.append(self._benchmark.pace.now())

    def _repeat(self, error: Exception) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            self._failed += 1
            if time.monotonic() > deadline:
                raise error
            time.sleep(PAUSE)
            try:
                self._start_over()
                self._benchmark.run()
            except (CheckFailed, Unsupported):
                raise
            except Exception as another:  # noqa: BLE001
                error = another
            else:
                self._note_connections()
                return

    def _note_connections(self) -> None:
        now = self._benchmark.pace.now()
        for one in sockets():
            self._connected.setdefault(one, now)

    def _start_over(self) -> None:
        benchmark, client = self._benchmark, self._benchmark.client
        client.start_over()
        with client.second_connection() as connection:
            self._log.look_for(connection, CHECKED_AT_ONCE)
        self._prepare_alone()
        benchmark.supply(self._supply() - self.done)
        client.transfers()
        self.since = self.done

    def _prepare_alone(self) -> None:
        """Prepare the benchmark without waiting for clients that have not failed."""
        client = self._benchmark.client
        others, client.neighbours = client.neighbours, Neighbours(1, client.index)
        try:
            self._benchmark.prepare()
        finally:
            client.neighbours = others

    def recovered(self, gone: float) -> Recovered:
        """Look for all acknowledged commits, and describe the recovery from a restart.

        *gone* is the time at which the server was gone, on the clock that times iterations.
        """
        self._note_connections()  # without the connection that is opened to look for commits
        log = self._log
        with self._benchmark.client.second_connection() as connection:
            log.look_for(connection)
        ends = [end for end in self._ends if end > gone][:HUNDRED]
        commits = len(log.acknowledged), len(log.lost)
        return Recovered(self._failed, *commits, ends, self._connected)
