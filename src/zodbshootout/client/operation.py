"""An operation on a database, such as packing it, while clients go on with their work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from zodbshootout.client.benchmarks.backup import Backup
from zodbshootout.client.benchmarks.benchmark import Benchmark
from zodbshootout.client.benchmarks.pack import Pack
from zodbshootout.client.client import Client
from zodbshootout.client.database import Database
from zodbshootout.model.specification import Specification

BENCHMARK_OF: Mapping[str, type[Benchmark]] = {"pack": Pack, "copy": Backup}
"""A mapping from the name of an operation to the benchmark that does it."""
OPERATION_CALLS = frozenset(
    {"prepare_operation", "start_operation", "operation_times", "finish_operation"}
)
"""The methods of an :class:`Operation` that another process may call."""


class TimedCall(threading.Thread):
    """A call in its own thread, with the times at which it began and ended.

    The clock is the one with which clients are timed.
    """

    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__(name="operation", daemon=True)
        self._call = call
        self._error: BaseException | None = None
        self.began = self.ended = 0.0

    def run(self) -> None:
        self.began = time.perf_counter()
        try:
            self._call()
        except BaseException as error:  # noqa: BLE001 - times() raises it
            self._error = error
        self.ended = time.perf_counter()

    def times(self) -> tuple[float, float] | None:
        """Return when the call began and ended, or raise its exception; ``None`` while it runs."""
        if self.is_alive():
            return None
        if self._error is not None:
            raise self._error
        return self.began, self.ended

    def wait(self) -> None:
        """Wait until the call has ended, if it was ever started."""
        if self.ident is not None:
            self.join()


class Operation:
    """Do a single iteration of a benchmark in a separate thread.

    The benchmark's preparation and checks are not part of the operation.
    """

    def __init__(self, open_database: Callable[[], Database]) -> None:
        """Use the DB that *open_database* returns, which may be the one that clients share."""
        self._open_database = open_database

    def prepare_operation(self, specification: Specification) -> None:
        """Prepare the operation that *specification* describes.

        :raises Unsupported: if the storage cannot do the operation
        """
        kind = BENCHMARK_OF[specification.benchmark]
        self._benchmark = kind(Client(0, specification.parameters, self._open_database()))
        self._benchmark.set_up()
        self._benchmark.prepare()
        self._benchmark.supply(1)
        self._running = TimedCall(self._benchmark.run)

    def start_operation(self) -> None:
        """Begin the operation without waiting for it."""
        self._running.start()

    def operation_times(self) -> tuple[float, float] | None:
        """Return the operation's beginning and end; see :meth:`TimedCall.times`."""
        return self._running.times()

    def finish_operation(self) -> dict[str, int]:
        """Check the operation, and close its DB.

        Return the benchmark's counts, with ``operation_`` before their names.

        :raises CheckFailed: if the operation did not do what it should have
        """
        try:
            self._benchmark.check(1)
            counts = dict(self._benchmark.counts)
            self._benchmark.verify()
        finally:
            self._benchmark.tear_down()
        return {f"operation_{name}": number for name, number in counts.items()}
