"""Another Python, such as that of a virtual environment: start it, call it, have a crew in it.

It imports :mod:`zodbshootout.crews.serving`, with the modules of ours that this needs, from a
directory of the run, and everything else, ZODB first of all, from its own environment.
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

from zodbshootout.client.protocol import Call, SystemClock
from zodbshootout.crews.crew import Crew
from zodbshootout.crews.hosts import Host, HostsCrew, StartCrew, result
from zodbshootout.crews.logs import LogSettings
from zodbshootout.guardian import END_TIMEOUT, Process
from zodbshootout.model.outcome import Failed, Failure
from zodbshootout.model.specification import Interpreter

LIFELINE = "--lifeline"
"""The option with which the process leads a group that ends when its standard input is closed."""
_PATH_VARIABLES = ("PYTHONPATH", "PYTHONHOME")
"""Variables with paths of modules for the Python of this process, not for another one."""
_PROGRAM = (
    "import sys; sys.path[:] = [sys.argv[1], *filter(None, sys.path)]; "
    "from zodbshootout.crews.serving import main; main(sys.argv[2:])"
)


def own_interpreter(*, gevent: bool) -> Interpreter:
    """Return the Python of this process, to start another process of it."""
    modules = Path(__file__).parents[2]
    return Interpreter("", sys.executable, str(modules), sees_ours=True, gevent=gevent)


@dataclass(frozen=True)
class Peer:
    """A process of another Python that answers calls, one after the other."""

    name: str
    """Its name in messages."""
    connection: Connection
    process: Process

    def send(self, message: object) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # result() says how it ended
            self.connection.send(message)

    def ask(self, call: Call) -> Peer:
        """Send a call; return the peer, whose :meth:`result` waits for the answer."""
        self.send(call)
        return self

    def poll(self, seconds: float | None) -> bool:
        """Wait at most *seconds* for an answer or the end of the process; return whether one came.

        Other greenlets run meanwhile.
        """
        ready, _, _ = select.select([self.connection], [], [], seconds)
        return bool(ready)

    def result(self) -> Any:
        """Wait for the answer: a :class:`Failure` if the call failed or the process has ended."""
        self.poll(None)
        try:
            return self.connection.recv()
        except (EOFError, OSError):  # OSError if an answer is cut off
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
    """Start a process of another Python, and end it with the context.

    *environment* is added to its variables.  With *own_group*, it and all processes that it starts
    are killed when this process ends, however that happens.

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
            process = Process(
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
    """Call a task of :mod:`~zodbshootout.client.preparation` in another Python; return its result.

    :raises Failed: if it fails there
    """
    with started(interpreter, settings) as peer:
        return result("", peer.ask(call))


@contextmanager
def interpreter_crew(
    interpreter: Interpreter, start_crew: StartCrew, settings: LogSettings
) -> Iterator[Crew]:
    """Start a crew in another Python on this host and set all clients up; end it with the context.

    :raises Failed: if a client fails
    """
    size = start_crew.specification.parameters.crew.size
    with started(interpreter, settings) as peer:
        hosts = [Host("", peer, range(size))]
        with HostsCrew(SystemClock(), hosts, start_crew).started() as crew:
            yield crew


def foreign_environment() -> dict[str, str]:
    """Return the environment of this process without paths of modules for its own Python."""
    return {name: value for name, value in os.environ.items() if name not in _PATH_VARIABLES}
