"""Another Python, as of another virtual environment: starting it, calling it, and a crew in it.

It runs :mod:`zodbshootout.crews.serving` from a directory with the modules of ours that this needs,
and finds everything else, ZODB first of all, where it finds its own.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from zodbshootout.client.outcome import Failed, Failure
from zodbshootout.client.protocol import Call, SystemClock
from zodbshootout.client.specification import Interpreter
from zodbshootout.crews.crew import Crew
from zodbshootout.crews.hosts import Host, HostsCrew, StartCrew, result
from zodbshootout.crews.logs import LogSettings
from zodbshootout.guardian import END_TIMEOUT, Child

LIFELINE = "--lifeline"
"""Makes the process lead a group that ends when its standard input is closed."""
_NOT_ITS_OWN = ("PYTHONPATH", "PYTHONHOME")
"""Variables with the paths of the modules of the command's Python."""
_PROGRAM = (
    "import sys; sys.path[:] = [sys.argv[1], *filter(None, sys.path)]; "
    "from zodbshootout.crews.serving import main; main(sys.argv[2:])"
)


def own_interpreter(*, gevent: bool) -> Interpreter:
    """Return the Python of this process, for another process of it."""
    modules = Path(__file__).parents[2]
    return Interpreter("", sys.executable, str(modules), sees_ours=True, gevent=gevent)


@dataclass(frozen=True)
class Peer:
    """A process of another Python that answers calls, one after the other."""

    name: str
    """Its name in messages."""
    connection: Connection
    process: Child

    def send(self, message: object) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # result() says how it ended
            self.connection.send(message)

    def ask(self, call: Call) -> Peer:
        """Send a call; :meth:`result` waits for the answer."""
        self.send(call)
        return self

    def poll(self, seconds: float | None) -> bool:
        """Wait at most *seconds* for an answer or the process's end; return whether one came."""
        # Greenlets have their turn meanwhile.
        ready, _, _ = select.select([self.connection], [], [], seconds)
        return bool(ready)

    def result(self) -> Any:
        """Wait for the answer; it is a :class:`Failure` if the process has ended, too."""
        self.poll(None)
        try:
            return self.connection.recv()
        except (EOFError, OSError):  # an answer can be cut off, too
            cause = f"{self.name} {self.process.describe_exit(END_TIMEOUT)}"
            return Failure(cause, cause, crashed=True)


@contextmanager
def started(
    interpreter: Interpreter,
    settings: LogSettings,
    *,
    environment: Mapping[str, str] | None = None,
    own_group: bool = False,
) -> Iterator[Peer]:
    """Have a process of another Python until the context ends.

    *environment* is added to that of this process.  With *own_group*, the process and all that it
    starts are killed when this process ends, however it does.

    :raises Failed: if it cannot be started
    """
    name = "the process of its clients"
    if interpreter.name:
        name = f"the Python of environment {interpreter.name}"
    ours, theirs = socket.socketpair()
    command = [
        interpreter.executable, "-c", _PROGRAM, interpreter.modules, str(theirs.fileno()),
        *(["--gevent"] if interpreter.gevent else []), *([LIFELINE] if own_group else []),
    ]  # fmt: skip
    variables = dict(os.environ) if interpreter.sees_ours else foreign_environment()
    with ours, theirs:
        try:
            process = Child(
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.PIPE if own_group else subprocess.DEVNULL,
                env={**variables, **(environment or {})},
            )
        except OSError as error:
            raise Failed(Failure(f"{name} cannot be started: {error}")) from error
        theirs.close()
        connection = Connection(ours.detach())
        peer = Peer(name, connection, process)
        try:
            peer.send(settings)
            yield peer
        finally:
            connection.close()
            if process.exit_code(END_TIMEOUT) is None:
                process.kill()
                process.wait()
            if process.stdin is not None:
                process.stdin.close()


def call_in(interpreter: Interpreter, call: Call, settings: LogSettings) -> Any:
    """Call a function of :mod:`~zodbshootout.client.tasks` in another Python; return its result.

    :raises Failed: if it fails there
    """
    with started(interpreter, settings) as peer:
        return result("", peer.ask(call))


@contextmanager
def interpreter_crew(
    interpreter: Interpreter, start_crew: StartCrew, settings: LogSettings
) -> Iterator[Crew]:
    """Have a crew in another Python on this host, every client of which is set up.

    :raises Failed: if a client fails
    """
    size = start_crew.specification.parameters.crew.size
    with started(interpreter, settings) as peer:
        hosts = [Host("", peer, range(size))]
        with HostsCrew(SystemClock(), hosts, start_crew).started() as crew:
            yield crew


def foreign_environment() -> dict[str, str]:
    """Return this process's environment without the variables for the Python of the command."""
    return {name: value for name, value in os.environ.items() if name not in _NOT_ITS_OWN}
