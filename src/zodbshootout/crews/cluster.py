"""The workers of a Dask cluster, on which the clients of a crew can live."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from zodbshootout.client.outcome import Failed, Failure

CONNECTING = 10.0
"""Seconds in which a scheduler has to answer that has answered before."""


@dataclass(frozen=True)
class Worker:
    """A worker of a Dask cluster, which is a host of clients."""

    name: str
    """What Dask calls it.  A worker that was given no name is called by its address, and otherwise
    when it is restarted."""
    address: str
    """Its address, such as ``tcp://10.0.0.2:40123``."""
    room: int | None = None
    """How many clients it may have, at most."""

    def __str__(self) -> str:
        host = urlsplit(self.address).hostname
        return self.name if self.name == self.address else f"{self.name} ({host})"


@dataclass(frozen=True)
class Cluster:
    """The workers of a Dask scheduler."""

    scheduler: str
    """Its address."""
    workers: Sequence[Worker]
    here: bool
    """Whether they are on this host, and share its files."""
    together: int = 1
    """How many of them are on one machine, at most."""
    log: Path | None = None
    """Where they print what they have to say, if they were started for the run."""
    configuration: Mapping[str, Any] = field(default_factory=dict)
    """Dask's configuration with which it is reached."""
    security: Any = None
    """Dask's ``Security`` where that is not in the configuration."""

    @property
    def room(self) -> int | None:
        """How many clients all workers may have, ``None`` where that is not limited."""
        rooms = [each.room for each in self.workers if each.room is not None]
        return sum(rooms) if len(rooms) == len(self.workers) else None

    def shares(self, size: int) -> list[range]:
        """Return which of *size* clients live on each worker: as evenly as there is room.

        :raises Failed: when there is no room for them
        """
        if self.room is not None and size > self.room:
            raise Failed(Failure(f"the hosts have room for {self.room} clients only"))
        lengths = dict.fromkeys(range(len(self.workers)), 0)
        for _ in range(size):
            free = [number for number in lengths if self._has_room(number, lengths[number])]
            lengths[min(free, key=lengths.__getitem__)] += 1
        ends = list(accumulate(lengths.values()))
        return [
            range(last - length, last) for last, length in zip(ends, lengths.values(), strict=True)
        ]

    def _has_room(self, number: int, clients: int) -> bool:
        room = self.workers[number].room
        return room is None or clients < room

    @contextmanager
    def client(self, timeout: float = CONNECTING) -> Iterator[Any]:
        """Have one of Dask's clients that is connected with the scheduler.

        :raises OSError: when the scheduler cannot be reached within so many seconds
        """
        import dask
        from distributed import Client

        connect: Any = Client  # it has no types
        with (
            dask.config.set(self.configuration),
            connect(self.scheduler, security=self.security, timeout=timeout) as client,
        ):
            yield client


def addresses(client: Any) -> dict[str, str]:
    """Return the addresses of the workers that are there, by their names."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    return {str(each["name"]): address for address, each in workers.items()}
