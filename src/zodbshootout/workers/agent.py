"""Start crews on several hosts; on each, an agent starts a process that leads the clients."""

from __future__ import annotations

import asyncio
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from zodbshootout.client.protocol import Call, SystemClock
from zodbshootout.crews.cluster import Cluster, addresses
from zodbshootout.crews.crew import Crew
from zodbshootout.crews.hosts import START_TIMEOUT, ClientGroup, HostsCrew, failures_of
from zodbshootout.crews.logs import LogSettings
from zodbshootout.guardian import Guardian
from zodbshootout.model.outcome import Failed, Failure, failure_of
from zodbshootout.model.specification import ClientKind, Specification
from zodbshootout.workers.coordinator import Launcher, TimeLimit
from zodbshootout.workers.measuring import Calibrations

PULSE = 0.2
"""Seconds between checks of whether the run still waits for a host's answer."""
UNLIMITED = TimeLimit(math.inf)
"""No time limit for the process that leads clients, because the run itself has a limit."""


@dataclass(frozen=True)
class Equipment:
    """Environment variables and files that a host needs besides its installed packages."""

    variables: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Contents of the run's files.  Each key is the name that stands for the file's path in the
    configuration."""
    directories: Sequence[str] = ()
    """The configuration's names for paths of directories; the host gets empty directories."""

    def unpacked(self, place: Path) -> dict[str, str]:
        """Create the files and directories in a *place*; return their paths by name."""
        paths = {name: place / name for name in (*self.files, *self.directories)}
        for name, content in self.files.items():
            paths[name].write_bytes(content)
        for name in self.directories:
            paths[name].mkdir(mode=0o700)
        return {name: str(path) for name, path in paths.items()}


class Agent:
    """Starts a worker that leads the clients of this host, and passes calls on to the worker.

    A Dask worker cannot fork clients itself: it runs several threads, and it is a daemon, which
    cannot have children.  So the agent starts a fork server, as a run does.
    """

    def __init__(self, *, settings: LogSettings, equipment: Equipment, gevent: bool) -> None:
        from distributed import get_worker

        self._worker: Any = get_worker()
        self._stack = ExitStack()
        directory = self._stack.enter_context(
            TemporaryDirectory(dir=self._worker.local_directory, ignore_cleanup_errors=True)
        )
        self._names = equipment.unpacked(Path(directory))
        launcher = Launcher(
            directory=Path(directory),
            guardian=self._stack.enter_context(Guardian()),
            environment={
                **os.environ,
                **equipment.variables,
                "TMPDIR": directory,
                # sys.path may include modules that Dask sent to this worker.
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            },
            working=UNLIMITED,
            opening=UNLIMITED,
            logging=settings,
            gevent=gevent,
            own_sessions=False,
            relay=partial(print, file=sys.stderr, flush=True),
        )
        fork_server = self._stack.enter_context(launcher.fork_server())
        self._leader = self._stack.enter_context(fork_server.lead())

    async def now(self) -> float:
        """Return the time of this host's clock."""
        return SystemClock.now()

    async def ask(self, call: Call) -> Any:
        """Pass a call on to the worker; return the answer or the failure."""
        # This runs in the Dask worker's event loop, which must not block.
        await asyncio.to_thread(self._leader.send, self._with_names_here(call))
        while not await asyncio.to_thread(self._leader.poll, PULSE):
            # The run may have released this actor.
            if all(actor is not self for actor in self._worker.state.actors.values()):
                self.end()
                return None
        return await asyncio.to_thread(self._answer)

    def _answer(self) -> Any:
        try:
            return self._leader.wait()
        except Failed as error:
            return error.failure

    def _with_names_here(self, call: Call) -> Call:
        if call.name != "start_crew":
            return call
        (start,) = call.args
        storage = start.specification.storage
        storage = replace(storage, names={**storage.names, **self._names})
        specification = replace(start.specification, storage=storage)
        return Call(call.name, (replace(start, specification=specification),))

    def end(self) -> None:
        """End the worker and all clients, even if they are busy."""
        self._stack.close()

    def __del__(self) -> None:
        self.end()


@contextmanager
def hosts_crew(
    cluster: Cluster,
    specification: Specification,
    settings: LogSettings,
    variables: Mapping[str, str],
    calibrations: Calibrations | None = None,
) -> Iterator[Crew]:
    """Start a crew on a Dask cluster's workers; end the crew with the context.

    *variables* are added to the environment that clients inherit from their host.  *calibrations*
    maps the name of each host to the calibrations of its relay.

    :raises Failed: if a client fails, or a host is lost
    """
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
        groups = [
            replace(group, calibrations=(calibrations or {}).get(group.host, {}))
            for group in _groups(client, cluster, shape.size, agent)
        ]
        with HostsCrew(SystemClock(), groups, specification).started() as crew:
            yield crew


def equipment(
    names: Mapping[str, str], variables: Mapping[str, str], cluster: Cluster
) -> Equipment:
    """Return *variables* and, if the cluster is elsewhere, the files whose paths are in *names*."""
    if cluster.here:
        return Equipment(variables)
    paths = {name: Path(value) for name, value in names.items() if Path(value).is_absolute()}
    return Equipment(
        variables,
        {name: path.read_bytes() for name, path in paths.items() if path.is_file()},
        [name for name, path in paths.items() if path.is_dir()],
    )


def _groups(
    client: Any, cluster: Cluster, size: int, agent: Callable[[], Agent]
) -> list[ClientGroup]:
    """Spread *size* clients over the hosts, and start an agent on each."""
    address_of = addresses(client)
    starting = []
    for worker, clients in zip(cluster.workers, cluster.shares(size)):
        if not clients:
            continue
        if worker.name not in address_of:
            raise Failed(Failure(f"host {worker} has left the cluster"))
        future = client.submit(
            agent, actor=True, pure=False,
            workers=[address_of[worker.name]], allow_other_workers=False, retries=0,
        )  # fmt: skip
        starting.append((str(worker), future, clients))
    groups = []
    for name, future, clients in starting:
        with failures_of(name):
            groups.append(ClientGroup(name, future.result(START_TIMEOUT), clients))
    return groups
