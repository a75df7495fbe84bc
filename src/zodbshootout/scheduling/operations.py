"""Slices of a contender before, during and after an operation, such as a pack of its database."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from zodbshootout.client.operation import BENCHMARK_OF, TimedCall
from zodbshootout.client.storage_types import promise_of
from zodbshootout.contenders.contender import Contender
from zodbshootout.model.arrivals import MIN_ITERATIONS
from zodbshootout.model.outcome import Failed, Failure, failure_of
from zodbshootout.model.specification import (
    AFTER,
    BEFORE,
    DURING,
    RESTARTS,
    ClientKind,
    CrewShape,
    Parameters,
    Specification,
)
from zodbshootout.model.storage_facts import Durability
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
SLICE_NUMBERS = 100
"""The difference between the numbers of the first slices of two successive runs.  Run 0 begins with
slice 0, run 1 with slice 100, and run 2 with slice 200."""
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


@dataclass
class Phases:
    """The slices of one contender before, during and after an operation."""

    worker: Worker
    operator: Operator
    """The object that carries out the operation; may be the :attr:`worker`."""
    operation: Specification | None
    """The task of the operation; ``None`` for a restart."""
    parameters: Parameters
    take: Callable[[str], Slice]
    """A function that has the worker take the prepared slice of a phase."""
    number: int = 0
    """The number of the next slice."""
    _slices: list[Slice] = field(default_factory=list)

    def runs(self) -> Iterator[tuple[str, Any]]:
        """Take all slices; yield the name and the run of each phase as soon as the phase ends.

        The metadata of a phase's run contain facts about the operation, such as the duration.

        :raises Failed: if a client or the operation has failed
        """
        self.operator.call("prepare_operation", self.operation)
        self.worker.attempt(1)
        self._begin(warmups=1)
        self._take(BEFORE)
        self.worker.call("end_phase")
        self._slices.clear()
        for _ in range(slices_before(self.parameters)):
            self._take(BEFORE)
        usual = max(taken.p99 for taken in self._slices)
        yield BEFORE, self._run()
        began, ended = self._during()
        yield DURING, self._run({"operation_s": ended - began})
        self._begin()
        recovered = self._recover(usual, ended)
        finished = self.operator.call("finish_operation")
        yield AFTER, self._run({**recovered, **finished}, is_last=True)

    def _during(self) -> tuple[float, float]:
        """Take slices while the operation lasts; return the times of its start and its end."""
        self._begin()
        self.worker.prepare_slice(self.number)
        self.operator.call("start_operation")
        times = None
        while times is None:
            if self._slices:
                self.worker.prepare_slice(self.number)
            self._taken(DURING)
            times = self.operator.call("operation_times")
        began, ended = times
        return began, ended

    def _recover(self, usual: float, ended: float) -> dict[str, float]:
        """Take slices; return as metadata the seconds from *ended* until p99 fell to *usual*."""
        recovered: float | None = None
        while len(self._slices) < MOST_AFTER:
            taken = self._take(AFTER)
            if recovered is None and taken.p99 <= usual:
                is_first = len(self._slices) == 1
                recovered = 0.0 if is_first else max(0.0, taken.start - ended)
            if recovered is not None and len(self._slices) >= slices_before(self.parameters):
                return {"recovered_s": recovered}
        if recovered is not None:
            return {"recovered_s": recovered}
        return {"not_recovered_s": self._slices[-1].end - ended}

    def _begin(self, warmups: int = 0) -> None:
        self._slices.clear()
        self.worker.begin(loops_of_phase(self.parameters), 1, warmups)

    def _take(self, phase: str) -> Slice:
        self.worker.prepare_slice(self.number)
        return self._taken(phase)

    def _taken(self, phase: str) -> Slice:
        taken = self.take(phase)
        self.number += 1
        self._slices.append(taken)
        return taken

    def _run(self, facts: dict[str, float] | None = None, *, is_last: bool = False) -> Any:
        """End the phase; return the run of the phase."""
        self.worker.call("end_phase")
        self.worker.start("finish", is_last)
        whole = self._slices[-1].end - self._slices[0].start
        unobserved = max(0.0, whole - sum(taken.on_clock for taken in self._slices))
        run = self.worker.finish()
        run.update_metadata({"unobserved_s": unobserved, **(facts or {})})
        return run
