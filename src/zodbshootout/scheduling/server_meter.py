"""The resources that private servers use during contenders' slices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from zodbshootout.results.cell import Cell
from zodbshootout.scheduling.laps import Meter
from zodbshootout.servers.running import RunningServers
from zodbshootout.servers.usage import ServerUsage
from zodbshootout.workers.measuring import Slice


@dataclass
class ServerMeter(Meter[Cell]):
    """Reads the use of servers before and after slices, off the clock.

    Only one slice is taken at a time.  If a server has only one contender, all that it uses during
    a lap is for this contender.  If it has several, it is read after each slice.
    """

    servers: RunningServers
    _latest: dict[str, ServerUsage] = field(default_factory=dict)
    """The latest reading of each server, by server name."""
    _noted: dict[Cell, dict[str, ServerUsage]] = field(default_factory=dict)
    """What each server has used for a cell since the latest noted slices."""
    _used: dict[Cell, list[tuple[dict[str, ServerUsage], int]]] = field(default_factory=dict)
    """For each value of a cell: the usage of each server, by server name, and the number of
    iterations.  The values of a lap share both."""
    _unfinished: dict[Cell, int] = field(default_factory=dict)
    """The iterations of a cell whose latest value needs another slice."""

    def begin(self, keys: Collection[Cell]) -> Collection[Cell]:
        served = [cell for cell in keys if cell.title in self.servers.served]
        usages = {cell: self.servers.usage(cell.title) for cell in served}
        users: Counter[str] = Counter()
        for usage in usages.values():
            self._latest |= usage
            users.update(usage.keys())
        return [cell for cell, usage in usages.items() if any(users[name] > 1 for name in usage)]

    def read(self, key: Cell) -> None:
        if key.title not in self.servers.served:
            return
        usage, noted = self.servers.usage(key.title), self._noted.setdefault(key, {})
        for name, now in usage.items():
            used = now.since(self._latest.get(name, now))
            noted[name] = noted.get(name, ServerUsage()) + used
        self._latest |= usage

    def note(self, key: Cell, taken: Sequence[Slice]) -> None:
        if key.title not in self.servers.served:
            return
        done = sum(one.done for one in taken) + self._unfinished.pop(key, 0)
        if taken[-1].goes_on:
            self._unfinished[key] = done
            return
        used = self._noted.pop(key)
        self._used.setdefault(key, []).extend([(used, done)] * len(taken))

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
