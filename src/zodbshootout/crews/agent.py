"""What runs in a Dask worker: it starts the clients of its host, and speaks for them."""

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

from zodbshootout.client.clock import SystemClock
from zodbshootout.client.outcome import Failed
from zodbshootout.crews.interpreters import LogSettings, own_interpreter, started
from zodbshootout.crews.remote import StartCrew

PULSE = 0.2
"""Seconds after which a host looks whether anybody still waits for its answer."""


class Agent:
    """What speaks for the clients of a host: an actor in a Dask worker.

    The clients live in an interpreter of their own: a Dask worker runs several threads, from which
    nothing should be forked, and is a daemon, which cannot have children.
    """

    def __init__(self, *, hello: LogSettings, equipment: Equipment, gevent: bool) -> None:
        """Start the interpreter, with what the coordinator sends along."""
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
                own_interpreter(gevent=gevent), hello, own_group=True,
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

    async def ask(self, message: object) -> Any:
        """Return the answer of the interpreter, be it a failure."""
        # The loop of the worker, which this is called in, has other things to do meanwhile.
        await asyncio.to_thread(self._peer.tell, self._with_names_here(message))
        while not await asyncio.to_thread(self._peer.poll, PULSE):
            if not self._is_wanted():
                self.end()
                return None
        try:
            return await asyncio.to_thread(self._peer.answer)
        except Failed as error:
            return error.failure

    def _with_names_here(self, message: object) -> object:
        if not isinstance(message, StartCrew):
            return message
        storage = message.specification.storage
        storage = replace(storage, names={**storage.names, **self._names})
        return replace(message, specification=replace(message.specification, storage=storage))

    def _is_wanted(self) -> bool:
        """Say whether anybody still holds this actor."""
        return any(each is self for each in self._worker.state.actors.values())

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
    """What a host needs besides the packages that are installed there."""

    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables of the environment."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files that the run has made, by the names that the configuration has for their paths."""
    directories: Sequence[str] = ()
    """The names that it has for directories of the run."""

    def unpacked(self, place: Path) -> dict[str, str]:
        """Have the files and directories in a *place*; return their paths by their names."""
        found = {name: place / name for name in (*self.files, *self.directories)}
        for name, content in self.files.items():
            found[name].write_bytes(content)
        for name in self.directories:
            found[name].mkdir(mode=0o700)
        return {name: str(path) for name, path in found.items()}
