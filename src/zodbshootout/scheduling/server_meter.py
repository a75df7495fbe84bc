"""The use of the machine by private servers, for the slices of the contenders that need them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from zodbshootout.results.cell import Cell
from zodbshootout.servers.running import RunningServers
from zodbshootout.servers.usage import ServerUsage
from zodbshootout.workers.measuring import Slice


@dataclass
class ServerMeter:
    """Reads what servers have used before and after each slice, off the clock.

    Contenders take slices one after the other, so what a server uses meanwhile is for that one.
    """

    servers: RunningServers
    _used: dict[Cell, list[tuple[ServerUsage, int]]] = field(default_factory=dict)
    """The use by the servers of each cell for its values so far, and the iterations of these."""
    _unfinished: set[Cell] = field(default_factory=set)
    """The cells whose latest value needs another slice."""

    def take(self, cell: Cell, take: Callable[[], Slice]) -> Slice:
        """Take a slice of a cell, and note what its servers use meanwhile."""
        if cell.contender not in self.servers.served:
            return take()
        before = self.servers.usage(cell.contender)
        taken = take()
        used, done = self.servers.usage(cell.contender).since(before), taken.done
        values = self._used.setdefault(cell, [])
        if cell in self._unfinished:
            earlier, earlier_done = values.pop()
            used, done = earlier + used, earlier_done + done
        values.append((used, done))
        (self._unfinished.add if taken.goes_on else self._unfinished.discard)(cell)
        return taken

    def metadata(self, cell: Cell, warmups: int) -> dict[str, str | int | float]:
        """Return the costs of a run, which had this number of *warmups* before its values."""
        values = self._used.get(cell, [])[warmups:]
        if not values:
            return {}
        return {
            "server_cpu_s": _numbers([used.cpu / done for used, done in values]),
            "server_written_bytes": _numbers([used.written / done for used, done in values]),
            "server_memory_bytes": self.servers.memory(cell.contender),
        }


def _numbers(values: Sequence[float]) -> str:
    return " ".join(f"{value:.4g}" for value in values)
