"""The workers of a Dask cluster, and the crews whose clients live on them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from zodbshootout.client.protocol import Call, SystemClock
from zodbshootout.crews.crew import Crew
from zodbshootout.crews.hosts import START_TIMEOUT, ClusterCrew, Host, StartCrew, failures_of
from zodbshootout.crews.interpreters import own_interpreter, started
from zodbshootout.crews.logs import LogSettings
from zodbshootout.model.outcome import Failed, Failure, failure_of
from zodbshootout.model.specification import ClientKind

CONNECTING = 10.0
"""Seconds that a scheduler that has answered before may take to answer again."""
PULSE = 0.2
"""Seconds between two checks whether the run still waits for a host's answer."""


@dataclass(frozen=True)
class Worker:
    """A worker of a Dask cluster, which is a host of clients."""

    name: str
    """Dask's name for it; by default its address, which changes when it is restarted."""
    address: str
    """Its address, such as ``tcp://10.0.0.2:40123``."""
    room: int | None = None
    """The maximum number of its clients; ``None`` if they are not limited."""

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
    """The largest number of workers on one machine."""
    log: Path | None = None
    """The file that they print to, if they were started for the run."""
    configuration: Mapping[str, Any] = field(default_factory=dict)
    """Dask's configuration for connecting with it."""
    security: Any = None
    """Dask's ``Security``, if that is not in the configuration."""

    @property
    def room(self) -> int | None:
        """The maximum number of clients on all workers; ``None`` if they are not limited."""
        rooms = [worker.room for worker in self.workers if worker.room is not None]
        return sum(rooms) if len(rooms) == len(self.workers) else None

    def logged(self) -> list[str]:
        """Return the lines that the workers have printed, if they were started for the run."""
        if self.log is None:
            return []
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()

    def shares(self, size: int) -> list[range]:
        """Return which of *size* clients live on each worker, spread as evenly as there is room.

        :raises Failed: if there is no room for them
        """
        if self.room is not None and size > self.room:
            raise Failed(Failure(f"the hosts have room for {self.room} clients only"))
        rooms = [size if worker.room is None else worker.room for worker in self.workers]
        lengths = [0] * len(rooms)
        for _ in range(size):
            free = [number for number, room in enumerate(rooms) if lengths[number] < room]
            lengths[min(free, key=lengths.__getitem__)] += 1
        ends = accumulate(lengths)
        return [range(end - length, end) for end, length in zip(ends, lengths, strict=True)]

    @contextmanager
    def client(self, timeout: float = CONNECTING) -> Iterator[Any]:
        """Connect one of Dask's clients with the scheduler; close it on leaving the context.

        :raises OSError: if the scheduler cannot be reached within *timeout* seconds
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
    """Return the addresses of the scheduler's workers by their names."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    return {str(worker["name"]): address for address, worker in workers.items()}


@dataclass(frozen=True)
class Equipment:
    """Variables and files that a host needs besides the packages that are installed there."""

    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables of the environment."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Contents of files of the run, by the names that the configuration has for their paths."""
    directories: Sequence[str] = ()
    """The names that the configuration has for directories of the run."""

    def unpacked(self, place: Path) -> dict[str, str]:
        """Make the files and directories in a *place*; return their paths by their names."""
        paths = {name: place / name for name in (*self.files, *self.directories)}
        for name, content in self.files.items():
            paths[name].write_bytes(content)
        for name in self.directories:
            paths[name].mkdir(mode=0o700)
        return {name: str(path) for name, path in paths.items()}


class Agent:
    """Passes calls on to a Python of its own, which has the clients: see ``serving.Leading``.

    A Dask worker cannot have them itself: it runs several threads, so nothing should be forked from
    it, and it is a daemon, which cannot have children.
    """

    def __init__(self, *, settings: LogSettings, equipment: Equipment, gevent: bool) -> None:
        from distributed import get_worker

        self._worker: Any = get_worker()
        self._stack = ExitStack()
        directory = self._stack.enter_context(
            TemporaryDirectory(dir=self._worker.local_directory, ignore_cleanup_errors=True)
        )
        self._names = equipment.unpacked(Path(directory))
        self._peer = self._stack.enter_context(
            started(
                own_interpreter(gevent=gevent), settings, own_group=True,
                environment={
                    **equipment.variables,
                    "TMPDIR": directory,
                    # Dask has extended the path by the directories that were sent to this worker.
                    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                },
            )
        )  # fmt: skip
        self._stack.callback(_kill_group, self._peer.process.pid)

    async def now(self) -> float:
        """Return the time of this host's clock."""
        return SystemClock.now()

    async def ask(self, call: Call) -> Any:
        """Return the answer of the interpreter, or its failure."""
        # This runs in the worker's event loop, which must not block.
        await asyncio.to_thread(self._peer.send, self._with_names_here(call))
        while not await asyncio.to_thread(self._peer.poll, PULSE):
            if not self._is_held():
                self.end()
                return None
        return await asyncio.to_thread(self._peer.result)

    def _with_names_here(self, call: Call) -> Call:
        if call.name != "start_crew":
            return call
        (start,) = call.args
        storage = start.specification.storage
        storage = replace(storage, names={**storage.names, **self._names})
        specification = replace(start.specification, storage=storage)
        return Call(call.name, (replace(start, specification=specification),))

    def _is_held(self) -> bool:
        """Return whether the run still holds this actor."""
        return any(actor is self for actor in self._worker.state.actors.values())

    def end(self) -> None:
        """End the interpreter and all clients, whatever they are doing."""
        self._stack.close()

    def __del__(self) -> None:
        self.end()


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


@contextmanager
def hosts_crew(
    cluster: Cluster,
    start_crew: StartCrew,
    settings: LogSettings,
    variables: Mapping[str, str],
) -> Iterator[Crew]:
    """Start a crew on a Dask cluster's workers and set all clients up; end it with the context.

    The environment of the clients has *variables* in addition to those of their host.

    :raises Failed: if a client fails, or a host is lost
    """
    specification = start_crew.specification
    shape = specification.parameters.crew
    sent = equipment(specification.storage.names, variables, cluster)
    with ExitStack() as stack:
        try:
            client = stack.enter_context(cluster.client())
        except OSError as error:
            cause = f"the cluster's scheduler at {cluster.scheduler} does not answer"
            raise Failed(Failure(cause, failure_of(error).detail)) from error
        gevent = shape.client_kind is ClientKind.GREENLET
        agent = partial(Agent, settings=settings, equipment=sent, gevent=gevent)
        hosts = _hosts(client, cluster, shape.size, agent)
        with ClusterCrew(SystemClock(), hosts, start_crew).started() as crew:
            yield crew


def equipment(
    names: Mapping[str, str], variables: Mapping[str, str], cluster: Cluster
) -> Equipment:
    """Return what a cluster's hosts need; the values of *names* are paths of the run's files."""
    if cluster.here:
        return Equipment(variables)
    paths = {name: Path(value) for name, value in names.items() if Path(value).is_absolute()}
    return Equipment(
        variables,
        {name: path.read_bytes() for name, path in paths.items() if path.is_file()},
        [name for name, path in paths.items() if path.is_dir()],
    )


def _hosts(client: Any, cluster: Cluster, size: int, agent: Callable[[], Agent]) -> list[Host]:
    """Return the hosts of *size* clients, with an agent on each.

    :raises Failed: if one has left the cluster or starts no agent
    """
    address_of = addresses(client)
    starting = []
    for worker, clients in zip(cluster.workers, cluster.shares(size), strict=True):
        if not clients:
            continue
        if worker.name not in address_of:
            raise Failed(Failure(f"host {worker} has left the cluster"))
        future = client.submit(
            agent, actor=True, pure=False,
            workers=[address_of[worker.name]], allow_other_workers=False, retries=0,
        )  # fmt: skip
        starting.append((str(worker), future, clients))
    hosts = []
    for name, future, clients in starting:
        with failures_of(name):
            hosts.append(Host(name, future.result(START_TIMEOUT), clients))
    return hosts
