"""The program that another Python runs: it answers calls until its connection is closed.

It and all that it imports need ZODB and the storage, nothing else, and Python 3.9 or later.
"""

from __future__ import annotations

import sys

if "--gevent" in sys.argv:
    try:
        from gevent import monkey
    except ImportError:  # start_crew then refuses a crew of greenlets
        pass
    else:
        monkey.patch_all()

import os
import select
import signal
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from zodbshootout.client import preparation
from zodbshootout.client.protocol import Call, Stop, Stretch, SystemClock
from zodbshootout.crews.crew import Crew
from zodbshootout.crews.hosts import StartCrew
from zodbshootout.crews.interpreters import LIFELINE
from zodbshootout.crews.local import plan_of
from zodbshootout.crews.logs import LogSettings, configure_logging
from zodbshootout.model.latencies import Latencies
from zodbshootout.model.outcome import Unsupported, failure_of
from zodbshootout.model.specification import ClientKind

CALLS = frozenset({"start_crew", "ask", "leave"})


def main(arguments: Sequence[str]) -> None:
    """Serve over the connection whose file descriptor is the first of *arguments*."""
    descriptor = int(arguments[0])
    if LIFELINE in arguments:
        _end_with_standard_input(descriptor)
    try:
        with Connection(descriptor) as connection, suppress(_Ended, BrokenPipeError):
            # While a client has a copy of it, the other end cannot see that this process has ended.
            os.register_at_fork(after_in_child=connection.close)
            _serve(connection)
    finally:
        # A client that hangs in its storage would keep the interpreter from ending.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _end_with_standard_input(descriptor: int) -> None:
    """Lead a process group, and fork a process that kills it when standard input is closed.

    A client that hangs would notice nothing.  The forked process closes the *descriptor* of the
    connection, so that the other end sees the end of this process.
    """
    os.setpgrp()  # in the same session: Linux divides processor time by sessions first
    if os.fork() == 0:
        try:
            os.close(descriptor)
            os.read(sys.stdin.fileno(), 1)
        finally:
            os.killpg(os.getpgrp(), signal.SIGKILL)


class _Ended(Exception):  # noqa: N818
    """The other end has closed the connection."""


def _received(connection: Connection) -> Any:
    select.select([connection], [], [])  # lets other greenlets run meanwhile
    try:
        return connection.recv()
    except EOFError as error:
        raise _Ended from error


def _serve(connection: Connection) -> None:
    """Receive the log settings, then answer calls until one fails or the connection is closed."""
    try:
        settings: LogSettings = _received(connection)
        configure_logging(settings)
        with ExitStack() as stack:
            leading = Leading(stack)
            while True:
                call: Call = _received(connection)
                target = preparation if call.name in preparation.TASKS else leading
                connection.send(call.on(target, preparation.TASKS | CALLS))
    except _Ended:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is this cell's failure
        connection.send(failure_of(error))


@dataclass
class Leading:
    """Passes orders on to a crew, which ends when *stack* is closed."""

    stack: ExitStack
    crew: Crew | None = None

    def start_crew(self, start: StartCrew) -> float:
        """Start a crew; return the time on its clock."""
        client_kind = start.specification.parameters.crew.client_kind
        if client_kind is ClientKind.GREENLET and "gevent" not in sys.modules:
            raise Unsupported("gevent is not installed in its environment")
        profiles = Path(start.profiles) if start.profiles else None
        plan = plan_of(start.specification, profiles, start.clients)
        self.crew = self.stack.enter_context(plan.started())
        return SystemClock.now()

    def ask(self, order: Any, first_only: bool) -> list[Any]:
        """Return the reports of all clients, or only of the first."""
        assert self.crew is not None
        reports = self.crew.ask(order, first_only=first_only)
        return _latencies_together(reports) if isinstance(order, Stop) else reports

    def leave(self) -> None:
        """Have all clients leave, and wait until they have ended."""
        self.stack.close()


def _latencies_together(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Merge the latencies of all reports into the first: the crew merges them anyway."""
    together = Latencies()
    for stretch in stretches:
        together.merge(stretch.latencies)
    first, *others = stretches
    return [
        replace(first, latencies=together),
        *(replace(stretch, latencies=Latencies()) for stretch in others),
    ]
