"""The interfaces through which a shootout calls workers and the processes that start workers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from zodbshootout.client.preparation import Preparation
from zodbshootout.crews.traffic import Counts
from zodbshootout.model.specification import Interpreter, Specification, Storage
from zodbshootout.model.storage_facts import StorageInfo
from zodbshootout.workers.coordinator import TimeLimit
from zodbshootout.workers.measuring import Calibrations, Measure, Slice


class Operator(Protocol):
    """Carries out an operation; see :class:`~zodbshootout.client.operation.Operation`."""

    def call(self, name: str, *args: Any) -> Any:
        """Call a method of the operation by the method's *name*, and return the answer.

        :raises Failed: if the operation fails
        """


class Worker(Operator, Protocol):
    """Takes slices of one contender; see :class:`~zodbshootout.workers.coordinator.Worker`.

    All methods raise :class:`~zodbshootout.model.outcome.Failed` if the cell has failed.
    """

    def start(self, name: str, *args: Any) -> None: ...

    def wait(self) -> Any: ...

    def attempt(self, loops: int) -> Slice: ...

    def begin(self, loops: int, values: int, warmups: int, expected: float = 0.0) -> None: ...

    def take_slice(self, number: int) -> Slice: ...

    def finish(self) -> Any: ...

    def abandon(self) -> None: ...


class ForkServer(Protocol):
    """Starts workers; see :class:`~zodbshootout.workers.coordinator.ForkServer`.

    All methods raise :class:`~zodbshootout.model.outcome.Failed` if a worker cannot be started, or
    fails at its task.
    """

    def is_usable(self) -> bool: ...

    def import_modules(self, modules: Sequence[str]) -> None: ...

    def inspect(self, storage: Storage) -> StorageInfo: ...

    def prepare(self, preparation: Preparation) -> None: ...

    def count(self, specification: Specification) -> Counts: ...

    def measure(self, task: Measure) -> AbstractContextManager[Worker]: ...

    def operate(
        self, operation: Specification, calibrations: Calibrations
    ) -> AbstractContextManager[Operator]: ...


class Launcher(Protocol):
    """Starts fork servers; see :class:`~zodbshootout.workers.coordinator.Launcher`."""

    @property
    def opening(self) -> TimeLimit:
        """The time limit of a worker that inspects a contender."""

    def fork_server(
        self, interpreter: Interpreter | None = None
    ) -> AbstractContextManager[ForkServer]:
        """Start a fork server, which ends with the context.

        :raises Failed: if the fork server cannot be started
        """
