"""The workers of several cells, which set up their crews at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from zodbshootout.model.outcome import Failed, Failure
from zodbshootout.model.specification import Interpreter
from zodbshootout.results.cell import Cell
from zodbshootout.scheduling.orders import Tasks
from zodbshootout.workers.coordinator import ForkServer, Worker


@dataclass
class SettingUp:
    """The workers of a round's cells, from their start to their end with the context."""

    cells: Sequence[Cell] = ()
    number: int = 0
    """The number of the round."""
    tries_first: bool = False
    """See :attr:`~zodbshootout.workers.measuring.Measure.tries_first`."""
    workers: dict[Cell, Worker] = field(default_factory=dict)
    failures: dict[Cell, Failure] = field(default_factory=dict)
    _ending: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> SettingUp:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._ending.close()

    def start(
        self,
        tasks: Tasks,
        fork_server: Callable[[Interpreter | None], ForkServer],
        cells: Sequence[Cell],
    ) -> None:
        """Start the workers of some *cells* unless they were started; do not wait for them."""
        started = {*self.workers, *self.failures}
        for cell in (cell for cell in cells if cell not in started):
            task = tasks.measuring(cell, tries_first=self.tries_first)
            try:
                worker = fork_server(task.interpreter).measure(task)
                self.workers[cell] = self._ending.enter_context(worker)
            except Failed as error:
                self.failures[cell] = error.failure

    def wait(self) -> None:
        """Wait until all crews are set up, or have failed to be."""
        for cell, worker in list(self.workers.items()):
            try:
                worker.wait()
            except Failed as error:
                self.workers.pop(cell).abandon()
                self.failures[cell] = error.failure
