"""The actor in a Dask worker that starts the clients of its host, and answers for them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from zodbshootout.client.protocol import Call, SystemClock
from zodbshootout.crews.interpreters import own_interpreter, started
from zodbshootout.crews.logs import LogSettings

PULSE = 0.2
"""Seconds between two checks of a host that its answer is still waited for."""


class Agent:
    """Answers calls of ``Leading`` in an interpreter of its own, which has the clients.

    They need one because a Dask worker runs several threads, from which nothing should be forked,
    and is a daemon, which cannot have children.
    """

    def __init__(self, *, settings: LogSettings, equipment: Equipment, gevent: bool) -> None:
        from distributed import get_worker

        self._worker: Any = get_worker()
        self._clock = SystemClock()
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
                    # Dask has extended the path by what was sent to this worker.
                    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                },
            )
        )  # fmt: skip
        self._stack.callback(_kill_group, self._peer.pid)

    async def now(self) -> float:
        """Return the time of this host's clock."""
        return self._clock.now()

    async def ask(self, call: Call) -> Any:
        """Return the answer of the interpreter, or its failure."""
        # The loop of the worker, which this is called in, has other things to do meanwhile.
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
        """Return whether anybody still holds this actor."""
        return any(actor is self for actor in self._worker.state.actors.values())

    def end(self) -> None:
        """End the interpreter and all clients, whatever they are doing."""
        self._stack.close()

    def __del__(self) -> None:
        self.end()


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


@dataclass(frozen=True)
class Equipment:
    """Variables and files that a host needs besides the packages that are installed there."""

    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables of the environment."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Contents of files that the run has made, by the names of their paths in the configuration."""
    directories: Sequence[str] = ()
    """Names in the configuration of the run's directories."""

    def unpacked(self, place: Path) -> dict[str, str]:
        """Make the files and directories in a *place*; return their paths by their names."""
        paths = {name: place / name for name in (*self.files, *self.directories)}
        for name, content in self.files.items():
            paths[name].write_bytes(content)
        for name in self.directories:
            paths[name].mkdir(mode=0o700)
        return {name: str(path) for name, path in paths.items()}
