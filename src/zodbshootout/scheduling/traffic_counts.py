"""The traffic of cells: counted once for each, by a relay, before the cell's first run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.model.outcome import Failed
from zodbshootout.model.specification import Interpreter
from zodbshootout.results.cell import Cell
from zodbshootout.scheduling.orders import Tasks
from zodbshootout.scheduling.result_store import Observer
from zodbshootout.workers.coordinator import ForkServer
from zodbshootout.workers.summary import storable, traffic_metadata


@dataclass
class TrafficCounts:
    """The traffic of one client of each cell.

    Cells that differ only in the number of clients share a count.
    """

    tasks: Tasks
    observer: Observer
    _metadata: dict[Cell, Mapping[str, str | int | float]] = field(default_factory=dict)
    """The keys are results of :func:`_alone`."""
    _connections: dict[Cell, int] = field(default_factory=dict)
    """The connections of one client; the keys are results of :func:`_alone`."""

    def metadata(self, cell: Cell) -> Mapping[str, str | int | float]:
        """Return the metadata on the traffic of a cell; empty if nothing was to be counted."""
        return self._metadata.get(_alone(cell), {})

    def connections(self, cell: Cell) -> int:
        """Return the number of connections of all clients of a cell; 0 if it is not known."""
        return self._connections.get(_alone(cell), 0) * cell.parameters.crew.size

    def is_counted(self, cell: Cell) -> bool:
        """Return whether there is nothing left to count for a cell."""
        return _alone(cell) in self._metadata or not self._is_wanted(cell)

    def count(self, cell: Cell, fork_server: Callable[[Interpreter | None], ForkServer]) -> None:
        """Count the traffic of one client, unless it has been counted or is not wanted."""
        if self.is_counted(cell):
            return
        alone = _alone(cell)
        specification = self.tasks.counting(cell)
        if bypass := self.tasks.plan.contender(cell).bypass:
            self._metadata[alone] = {"traffic_not_counted": bypass}
            return
        self.observer.working_on([cell], "counting round trips")
        try:
            counts = fork_server(specification.storage.interpreter).count(specification)
        except Failed as error:
            self._metadata[alone] = storable({"traffic_not_counted": error.failure.cause})
        else:
            self._metadata[alone] = traffic_metadata(counts)
            self._connections[alone] = counts.connections

    def _is_wanted(self, cell: Cell) -> bool:
        if self.tasks.options.debug_single_value or benchmarks()[cell.benchmark].traits.lengthy:
            return False
        return self.tasks.plan.contender(cell).connects


def _alone(cell: Cell) -> Cell:
    """Return the key of a cell's traffic: the same cell, but with one client."""
    crew = replace(cell.parameters.crew, size=1)
    return replace(cell, parameters=replace(cell.parameters, crew=crew))
