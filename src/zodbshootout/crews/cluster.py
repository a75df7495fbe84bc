"""A Dask cluster, whose workers are hosts of clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from zodbshootout.model.outcome import Failed, Failure

CONNECTING = 10.0
"""Seconds to wait for a scheduler that has answered before."""


@dataclass(frozen=True)
class DaskWorker:
    """A worker of a Dask cluster, as a host of clients."""

    name: str
    """Dask's name for the worker; by default the address, which changes with each start."""
    address: str
    """The worker's address, such as ``tcp://10.0.0.2:40123``."""
    room: int | None = None
    """The maximum number of clients on the worker; ``None`` if there is no limit."""

    def __str__(self) -> str:
        host = urlsplit(self.address).hostname
        return self.name if self.name == self.address else f"{self.name} ({host})"


@dataclass(frozen=True)
class Cluster:
    """The workers of a Dask scheduler."""

    scheduler: str
    """The scheduler's address."""
    workers: Sequence[DaskWorker]
    here: bool
    """Whether the workers are on this host and share its files."""
    together: int = 1
    """The largest number of workers on one machine."""
    log: Path | None = None
    """The file that the workers print to, if they were started for the run."""
    configuration: Mapping[str, Any] = field(default_factory=dict)
    """Dask's configuration for connecting to the scheduler."""
    security: Any = None
    """Dask's ``Security``, if it is not in the configuration."""

    @property
    def room(self) -> int | None:
        """The maximum number of clients on all workers; ``None`` if there is no limit."""
        rooms = [worker.room for worker in self.workers if worker.room is not None]
        return sum(rooms) if len(rooms) == len(self.workers) else None

    def logged(self) -> list[str]:
        """Return the lines that the workers printed; none if the run did not start the workers."""
        if self.log is None:
            return []
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()

    def shares(self, size: int) -> list[range]:
        """Spread *size* clients evenly over the workers; return each worker's range of clients.

        :raises Failed: if there is not enough room
        """
        if self.room is not None and size > self.room:
            raise Failed(Failure(f"the hosts have room for {self.room} clients only"))
        rooms = [size if worker.room is None else worker.room for worker in self.workers]
        lengths = [0] * len(rooms)
        for _ in range(size):
            free = [number for number, room in enumerate(rooms) if lengths[number] < room]
            lengths[min(free, key=lengths.__getitem__)] += 1
        ends = accumulate(lengths)
        return [range(end - length, end) for end, length in zip(ends, lengths)]

    @contextmanager
    def client(self, timeout: float = CONNECTING) -> Iterator[Any]:
        """Connect a Dask client to the scheduler; close it when the context ends.

        :raises OSError: if the scheduler cannot be reached within *timeout* seconds
        """
        import dask
        from distributed import Client

        connect: Any = Client  # Dask has no types
        with (
            dask.config.set(self.configuration),
            connect(self.scheduler, security=self.security, timeout=timeout) as client,
        ):
            yield client


def addresses(client: Any) -> dict[str, str]:
    """Return the addresses of the scheduler's workers by the workers' names."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    return {str(worker["name"]): address for address, worker in workers.items()}
