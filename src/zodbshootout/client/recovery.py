"""Iterations that fail while a server restarts: repeat them, and look for commits that are lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from zodbshootout.client.benchmarks.benchmark import Benchmark, CheckFailed, Unsupported
from zodbshootout.client.client import Neighbours
from zodbshootout.client.commits import CHECKED_AT_ONCE, CommitLog
from zodbshootout.client.connections import Socket, sockets

PATIENCE = 60.0
"""Seconds after which an iteration that still fails is the client's failure."""
PAUSE = 0.02
"""Seconds between two attempts."""
HUNDRED = 100


class Recovered(NamedTuple):
    """How one client got over the restart of a server."""

    failed: int
    """Errors that reached the application."""
    acknowledged: int
    """Commits that the storage has acknowledged."""
    lost: int
    """Those that are not there any more."""
    ends: list[float]
    """The instants at which the first iterations ended after the server was gone."""
    connected: Mapping[Socket, float]
    """The instants at which connections of its process were seen for the first time."""


class Recovery:
    """Does a benchmark's iterations, and each one again that fails."""

    def __init__(self, benchmark: Benchmark, supply: Callable[[], int]) -> None:
        """Do the iterations of a stretch that has a *supply* for so many of them in all."""
        self._benchmark = benchmark
        self._supply = supply
        self._log = benchmark.client.commit_log = CommitLog()
        self.since = 0
        """The iterations of the stretch that were done before the latest failure, which the
        benchmark's check leaves out."""
        self.done = 0
        """The iterations of the stretch."""
        self._failed = 0
        self._ends: list[float] = []
        self._connected: dict[Socket, float] = {}

    def begin(self) -> None:
        """Begin a stretch."""
        self._note_connections()
        self.since = self.done = 0

    def run(self) -> None:
        """Do an iteration, again and again if it fails.

        :raises CheckFailed: if what the storage did is wrong; this is not repeated
        """
        try:
            self._benchmark.run()
        except (CheckFailed, Unsupported):
            raise
        except Exception as error:  # noqa: BLE001 - storages raise those of their drivers
            self._repeat(error)
        self.done += 1
        self._ends.append(self._benchmark.now())

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
        now = self._benchmark.now()
        for one in sockets():
            self._connected.setdefault(one, now)

    def _start_over(self) -> None:
        benchmark, client = self._benchmark, self._benchmark.client
        client.start_over()
        with client.second_connection() as connection:
            self._log.look_for(connection, CHECKED_AT_ONCE)
        self._prepare_alone()
        client.transfers()
        benchmark.supply(self._supply() - self.done)
        self.since = self.done

    def _prepare_alone(self) -> None:
        """Prepare without those who share its DB: they may not have failed, and would not come."""
        client = self._benchmark.client
        others, client.neighbours = client.neighbours, Neighbours(1, client.index)
        try:
            self._benchmark.prepare()
        finally:
            client.neighbours = others

    def recovered(self, gone: float) -> Recovered:
        """Look for all commits; return what was found about a server that was *gone* at an instant.

        It is one of the clock that times iterations.
        """
        self._note_connections()  # before one is opened to look for commits
        log = self._log
        with self._benchmark.client.second_connection() as connection:
            log.look_for(connection)
        ends = [end for end in self._ends if end > gone][:HUNDRED]
        commits = len(log.acknowledged), len(log.lost)
        return Recovered(self._failed, *commits, ends, self._connected)
