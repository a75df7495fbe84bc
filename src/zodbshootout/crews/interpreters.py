"""Another Python, as of another virtual environment: starting it, and asking it.

It runs :mod:`zodbshootout.crews.serving`, from a directory with the modules of ours that this
needs, and finds everything else, ZODB first of all, where it finds its own.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from zodbshootout.client.outcome import Failed, Failure
from zodbshootout.client.specification import Interpreter
from zodbshootout.guardian import describe_exit

_PATIENCE = 5.0
"""Seconds that it has to end after the connection was closed, before it is killed."""
LIFELINE = "--lifeline"
"""Tells the process to have a group, which ends when nobody holds its standard input any more."""
_NOT_ITS_OWN = ("PYTHONPATH", "PYTHONHOME")
"""Variables that tell the Python of the command where its modules are."""
_PROGRAM = (
    "import sys; sys.path[:] = [sys.argv[1], *filter(None, sys.path)]; "
    "from zodbshootout.crews.serving import main; main(sys.argv[2:])"
)


@dataclass(frozen=True)
class LogSettings:
    """What another Python is told first."""

    log: str | None = None
    """A level's name, or the path of a ZConfig logging file."""
    secrets: Sequence[str] = ()
    """What is to be in no log."""


def own_interpreter(*, gevent: bool) -> Interpreter:
    """Return the Python of this process, for another process of it."""
    modules = Path(__file__).parents[2]
    return Interpreter("", sys.executable, str(modules), sees_ours=True, gevent=gevent)


class Peer:
    """A process of another Python that answers what it is asked, one thing after the other."""

    def __init__(self, name: str, connection: Connection, process: subprocess.Popen[bytes]) -> None:
        self._name = name
        self._connection = connection
        self._process = process

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def tell(self, message: object) -> None:
        """Send something that is not answered."""
        with suppress(BrokenPipeError, ConnectionResetError):  # the next answer tells of its end
            self._connection.send(message)

    def ask(self, message: object) -> Any:
        """Return what it answers.

        :raises Failed: when that is a failure, or it has ended
        """
        self.tell(message)
        self.poll()
        return self.answer()

    def poll(self, seconds: float | None = None) -> bool:
        """Wait for an answer, so many *seconds* at most; say whether there is one, or an end."""
        # Greenlets have their turn meanwhile.
        ready, _, _ = select.select([self._connection], [], [], seconds)
        return bool(ready)

    def answer(self) -> Any:
        """Return what it has answered.

        :raises Failed: when that is a failure, or it has ended
        """
        try:
            answer = self._connection.recv()
        except (EOFError, OSError):  # an answer can be cut off, too
            answer = self._end()
        if isinstance(answer, Failure):
            raise Failed(answer)
        return answer

    def _end(self) -> Failure:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        cause = f"{self._name} {describe_exit(self._process.returncode)}"
        return Failure(cause, cause, crashed=True)


@contextmanager
def started(
    interpreter: Interpreter,
    hello: LogSettings,
    *,
    environment: Mapping[str, str] | None = None,
    own_group: bool = False,
) -> Iterator[Peer]:
    """Have a process of another Python; it has ended when the context has.

    Its *environment* has that beside what this one has.  With a group of its own, the process and
    all that it starts are killed when this process ends, however it does.

    :raises Failed: when it cannot be started
    """
    ours, theirs = socket.socketpair()
    command = [
        interpreter.executable, "-c", _PROGRAM, interpreter.modules, str(theirs.fileno()),
        *(["--gevent"] if interpreter.gevent else []), *([LIFELINE] if own_group else []),
    ]  # fmt: skip
    variables = dict(os.environ) if interpreter.sees_ours else foreign_environment(os.environ)
    with ours, theirs:
        try:
            process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.PIPE if own_group else subprocess.DEVNULL,
                env={**variables, **(environment or {})},
            )
        except OSError as error:
            cause = f"{_name_of(interpreter)} cannot be started: {error}"
            raise Failed(Failure(cause)) from error
        theirs.close()
        connection = Connection(ours.detach())
        peer = Peer(_name_of(interpreter), connection, process)
        try:
            peer.tell(hello)
            yield peer
        finally:
            connection.close()
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdin is not None:
                process.stdin.close()


def _name_of(interpreter: Interpreter) -> str:
    """Return what messages call the process."""
    if not interpreter.name:
        return "the process of its clients"
    return f"the Python of environment {interpreter.name}"


def carried_out(interpreter: Interpreter, task: Any, hello: LogSettings) -> Any:
    """Have another Python do a task of :mod:`~zodbshootout.client.tasks`; return what it gives.

    :raises Failed: when it cannot be done there
    """
    with started(interpreter, hello) as peer:
        return peer.ask(task)


def foreign_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what is about the Python of the command."""
    return {name: text for name, text in environment.items() if name not in _NOT_ITS_OWN}
