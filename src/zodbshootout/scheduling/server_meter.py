"""The resources that private servers use during contenders' slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from zodbshootout.results.cell import Cell
from zodbshootout.servers.running import RunningServers
from zodbshootout.servers.usage import ServerUsage
from zodbshootout.workers.measuring import Slice


@dataclass
class ServerMeter:
    """Reads the use of servers before and after each slice, off the clock.

    Only one slice is taken at a time, so all that a server uses meanwhile is for this slice.
    """

    servers: RunningServers
    _used: dict[Cell, list[tuple[dict[str, ServerUsage], int]]] = field(default_factory=dict)
    """For each value of a cell: the usage of each server, by server name, and the number of
    iterations."""
    _unfinished: set[Cell] = field(default_factory=set)
    """The cells whose latest value needs another slice."""

    def take(self, cell: Cell, take: Callable[[], Slice]) -> Slice:
        """Take a slice of a cell, and record what the cell's servers use for the slice."""
        if cell.title not in self.servers.served:
            return take()
        before = self.servers.usage(cell.title)
        taken = take()
        after, done = self.servers.usage(cell.title), taken.done
        used = {name: after[name].since(usage) for name, usage in before.items() if name in after}
        values = self._used.setdefault(cell, [])
        if cell in self._unfinished:
            earlier, earlier_done = values.pop()
            used = {name: earlier[name] + usage for name, usage in used.items()}
            done += earlier_done
        values.append((used, done))
        (self._unfinished.add if taken.goes_on else self._unfinished.discard)(cell)
        return taken

    def metadata(self, cell: Cell, warmups: int) -> dict[str, str | int | float]:
        """Return the costs of the latest run without its first *warmups* values.

        There are costs of all servers together and, if there are several, of each server.
        """
        values = self._used.pop(cell, [])[warmups:]
        if not values:
            return {}
        memory = self.servers.memory(cell.title)
        together = [(sum(used.values(), ServerUsage()), done) for used, done in values]
        metadata = _costs(together, sum(memory.values()))
        for name in memory if len(memory) > 1 else ():
            own = _costs([(used[name], done) for used, done in values], memory[name])
            metadata |= {f"{key}_{name}": value for key, value in own.items()}
        return metadata


def _costs(values: Sequence[tuple[ServerUsage, int]], memory: int) -> dict[str, str | int | float]:
    return {
        "server_cpu_s": _numbers([used.cpu / done for used, done in values]),
        "server_written_bytes": _numbers([used.written / done for used, done in values]),
        "server_memory_bytes": memory,
    }


def _numbers(values: Sequence[float]) -> str:
    return " ".join(f"{value:.4g}" for value in values)
