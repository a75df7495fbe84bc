"""Runs of a contender before, during and after an operation, such as a pack of its database."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from zodbshootout.client.operation import BENCHMARK_OF, TimedCall
from zodbshootout.client.storage_types import promise_of
from zodbshootout.contenders.contender import Contender
from zodbshootout.model.arrivals import MIN_ITERATIONS
from zodbshootout.model.outcome import Failed, Failure, failure_of
from zodbshootout.model.specification import (
    BEFORE,
    DURING,
    PHASES,
    RESTARTS,
    ClientKind,
    CrewShape,
    Parameters,
    Specification,
)
from zodbshootout.model.storage_facts import Durability
from zodbshootout.results.cell import Cell
from zodbshootout.scheduling.stop_rules import Succession
from zodbshootout.servers import ServerFailed
from zodbshootout.servers.running import RunningServers
from zodbshootout.workers.coordinator import Worker
from zodbshootout.workers.measuring import Slice

SLICE = 2.0
"""Seconds of a slice; the next slice follows almost at once, so that few delays are missed."""
ARRIVALS = 300
"""The minimum number of arrivals before the operation, and after it, unless this would need too
many slices.  Three of 300 arrivals are beyond the 99th percentile."""
FEWEST, MOST = 3, 15
"""The minimum and maximum number of slices before the operation."""
MOST_AFTER = 30
"""The maximum number of slices after the operation, while latencies return to normal."""


def loops_of_phase(parameters: Parameters) -> int:
    """Return the number of iterations of each client in a slice."""
    return max(MIN_ITERATIONS, math.ceil(parameters.rate * SLICE / parameters.crew.size))


def slices_before(parameters: Parameters) -> int:
    """Return the number of slices before the operation."""
    arrivals = loops_of_phase(parameters) * parameters.crew.size
    return min(MOST, max(FEWEST, math.ceil(ARRIVALS / arrivals)))


def with_operation(fitted: Parameters, requested: Parameters) -> Parameters:
    """Return a benchmark's *fitted* parameters, with the data that the operation requires."""
    if requested.during not in BENCHMARK_OF:
        return fitted
    own = BENCHMARK_OF[requested.during].fitted(requested)
    return replace(
        fitted,
        min_objects=fitted.min_objects or own.min_objects,
        revisions=own.revisions,
        garbage=own.garbage,
    )


def operation_parameters(parameters: Parameters) -> Parameters:
    """Return the parameters of an operation during a benchmark with these *parameters*.

    The operation's client is a thread, so that it can share the DB of the benchmark's clients.
    """
    crew = CrewShape(1, ClientKind.THREAD, shared=parameters.crew.shared)
    alone = replace(parameters, crew=crew, rate=0.0, during="", phase="")
    return BENCHMARK_OF[parameters.during].fitted(alone)


def is_elsewhere(contender: Contender, parameters: Parameters) -> bool:
    """Return whether an operation can run in a process of its own, without the clients."""
    return contender.refusal(replace(parameters, crew=CrewShape(2), blobs=False)) is None


def operation_refusal(contender: Contender, parameters: Parameters) -> str | None:
    """Return why a contender refuses the operation in *parameters*; ``None`` if it does not."""
    if not parameters.during:
        return None
    if parameters.during in RESTARTS:
        return _restart_refusal(contender)
    if not (parameters.crew.shared or is_elsewhere(contender, parameters)):
        name = contender.info.storage_name
        return (
            f"{name}: only the process that has it open can {parameters.during} it; use "
            "--threads shared"
        )
    benchmark = BENCHMARK_OF[parameters.during]
    return benchmark.refusal(contender.info, operation_parameters(parameters))


def _restart_refusal(contender: Contender) -> str | None:
    name = contender.info.storage_name
    if not contender.servers:
        return f"{name}: the run did not start a server that it could restart"
    for storage in contender.served:
        if promise_of(storage.section)[0] is Durability.IN_MEMORY:
            return f"{name}: server {storage.server.name} would lose its data, which is in memory"
    return None


class Operator(Protocol):
    """Carries out an operation: a worker, or a :class:`Restart`."""

    def call(self, name: str, *args: Any) -> Any:
        """Call a method of :class:`~zodbshootout.client.operation.Operation`, by its name.

        :raises Failed: if the operation fails
        """


class Restart:
    """Restarts the private servers of a contender; has the interface of an :class:`Operator`.

    As a context manager, it waits at the end for a restart that has begun.
    """

    def __init__(
        self, servers: RunningServers, contender: str, worker: Operator, *, by_force: bool
    ) -> None:
        """Prepare to restart the servers of *contender*, whose clients are in *worker*."""
        self._servers, self._contender, self._by_force = servers, contender, by_force
        self._worker = worker
        self._running = TimedCall(self._restart)
        self._gone = 0.0
        """The time at which all servers had ended."""

    def __enter__(self) -> Restart:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._running.wait()

    def _restart(self) -> None:
        self._servers.halt_for(self._contender, by_force=self._by_force)
        self._gone = time.perf_counter()
        self._servers.resume_for(self._contender)

    def call(self, name: str, *args: object) -> Any:  # noqa: ARG002
        """Handle a call as :class:`~zodbshootout.client.operation.Operation` would.

        :raises Failed: if a server does not start again
        """
        if name == "start_operation":
            self._running.start()
        elif name == "operation_times":
            return self._times()
        elif name == "finish_operation":
            return self._worker.call("recovered", self._running.began, self._gone)
        return None

    def _times(self) -> tuple[float, float] | None:
        try:
            return self._running.times()
        except ServerFailed as error:
            raise Failed(Failure(str(error))) from error
        except Exception as error:
            raise Failed(failure_of(error)) from error


class Phases(Succession[Cell]):
    """The runs of one contender before, during and after an operation.

    Each run has a single value, which is that of all its slices.  In the metadata of the runs are
    facts about the operation, such as the duration.
    """

    is_whole_only = True

    def __init__(
        self,
        cells: Sequence[Cell],
        worker: Worker,
        operator: Operator,
        operation: Specification | None,
    ) -> None:
        """Have *worker* take the slices of *cells*, one for each phase.

        *operator*, which may be the worker, carries out the *operation*; ``None`` for a restart.
        """
        super().__init__()
        self._cells = {cell.parameters.phase: cell for cell in cells}
        self._worker, self._operator, self._operation = worker, operator, operation
        self._parameters = cells[0].parameters
        self._slices: list[Slice] = []
        """The slices of the current phase."""
        self._usual = 0.0
        """The largest 99th percentile of a slice before the operation, in seconds."""
        self._ended = 0.0
        """The instant at which the operation ended."""
        self._recovered: float | None = None
        """Seconds from then until latencies were as before; ``None`` while they are not."""
        self._facts: dict[str, float] = {}
        """The facts about the latest phase."""

    def wanted(self) -> int:
        return len(PHASES)

    def begin(self, key: Cell) -> None:  # noqa: ARG002
        self._operator.call("prepare_operation", self._operation)
        self._worker.attempt(loops_of_phase(self._parameters))

    def prepared(self, key: Cell) -> None:  # noqa: ARG002
        if PHASES[self.made] == DURING and not self._slices:
            self._operator.call("start_operation")

    def goes_on(self, taken: Sequence[Slice]) -> bool:
        if not self._slices:
            self._facts = {}
        self._slices += taken
        phases = {BEFORE: self._goes_on_before, DURING: self._goes_on_during}
        return phases.get(PHASES[self.made], self._goes_on_after)()

    def _goes_on_before(self) -> bool:
        self._usual = max(taken.p99 for taken in self._slices)
        return len(self._slices) < slices_before(self._parameters)

    def _goes_on_during(self) -> bool:
        times = self._operator.call("operation_times")
        if times is None:
            return True
        began, self._ended = times
        self._facts = {"operation_s": self._ended - began}
        return False

    def _goes_on_after(self) -> bool:
        """Return whether slices are missing, or p99 has not yet fallen to the usual one."""
        latest, number = self._slices[-1], len(self._slices)
        if self._recovered is None and latest.p99 <= self._usual:
            self._recovered = 0.0 if number == 1 else max(0.0, latest.start - self._ended)
        is_steady = self._recovered is not None and number >= slices_before(self._parameters)
        if not is_steady and number < MOST_AFTER:
            return True
        if self._recovered is None:
            self._facts = {"not_recovered_s": latest.end - self._ended}
        else:
            self._facts = {"recovered_s": self._recovered}
        self._facts |= self._operator.call("finish_operation")
        return False

    def is_last(self) -> bool:
        if self._slices:
            whole = self._slices[-1].end - self._slices[0].start
            unobserved = whole - sum(taken.on_clock for taken in self._slices)
            self._facts["unobserved_s"] = max(0.0, unobserved)
        self._slices.clear()
        return super().is_last()

    def labelled(self, key: Cell, run: Any) -> Cell:  # noqa: ARG002
        cell = self._cells[PHASES[self.made - 1]]
        run.update_metadata({**cell.metadata(), **self._facts})
        return cell
