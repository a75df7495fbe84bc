"""What runs in another Python: it does what it is told over a connection, and ends with that.

It and all that it imports need ZODB and the storage, nothing else, and Python 3.9 or later.
"""

from __future__ import annotations

import sys

if "--gevent" in sys.argv:
    try:
        from gevent import monkey
    except ImportError:  # then there is no crew of greenlets
        pass
    else:
        monkey.patch_all()

import os
import select
import signal
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import singledispatch
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from zodbshootout.client import protocol, tasks
from zodbshootout.client.clock import SystemClock
from zodbshootout.client.masking import Mask
from zodbshootout.client.outcome import Unsupported, failure_of
from zodbshootout.client.recorder import Latencies
from zodbshootout.client.specification import ClientKind
from zodbshootout.crews.crew import Crew
from zodbshootout.crews.interpreters import LIFELINE, LogSettings
from zodbshootout.crews.logs import configure_logging
from zodbshootout.crews.profiling import Profiler, profiler_for
from zodbshootout.crews.remote import Order, StartCrew
from zodbshootout.crews.starting import plan_of


def main(arguments: Sequence[str]) -> None:
    """Serve over the connection of which *arguments* begin with the file descriptor."""
    descriptor = int(arguments[0])
    if LIFELINE in arguments:
        _end_with_standard_input(descriptor)
    try:
        with Connection(descriptor) as connection, suppress(_Ended, BrokenPipeError):
            # A client with a copy of it would keep the other end from seeing that this has ended.
            os.register_at_fork(after_in_child=connection.close)
            _serve(connection)
    finally:
        # A client that hangs in its storage would keep the interpreter from ending.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _end_with_standard_input(descriptor: int) -> None:
    """Lead a group, and have a process that kills it when the other end of the input is gone.

    A client that hangs would notice nothing.  That process does not hold the connection, which has
    the file *descriptor*: when this one ends, the other end is to see it.
    """
    os.setpgrp()  # in the same session: Linux divides processor time by sessions first
    if os.fork() == 0:
        try:
            os.close(descriptor)
            os.read(sys.stdin.fileno(), 1)
        finally:
            os.killpg(os.getpgrp(), signal.SIGKILL)


def _serve(connection: Connection) -> None:
    try:
        hello: LogSettings = _received(connection)
        configure_logging(hello.log, Mask(hello.secrets))
        _do(_received(connection), connection)
    except _Ended:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is this cell's failure
        connection.send(failure_of(error))


class _Ended(Exception):  # noqa: N818
    """Nobody asks any more."""


def _received(connection: Connection) -> Any:
    select.select([connection], [], [])  # greenlets have their turn meanwhile
    try:
        return connection.recv()
    except EOFError as error:
        raise _Ended from error


@singledispatch
def _do(task: Any, connection: Connection) -> None:
    connection.send(tasks.carry_out(task))


@_do.register
def _lead(task: StartCrew, connection: Connection) -> None:
    unit = task.specification.parameters.crew.client_kind
    if unit is ClientKind.GREENLET and "gevent" not in sys.modules:
        raise Unsupported("gevent is not installed in its environment")
    profiler = _profiler(task)
    with plan_of(task.specification, profiler, task.clients).started() as crew:
        leading = Leading(crew, profiler)
        connection.send(SystemClock().now())
        while not isinstance((asked := _received(connection)).order, protocol.Leave):
            connection.send(leading.answer(asked))
    connection.send([protocol.Left()] * crew.size)


class Leading:
    """Passes orders on to a crew, and records what it does on the clock."""

    def __init__(self, crew: Crew, profiler: Profiler) -> None:
        self._crew = crew
        self._profiler = profiler
        self._recording = ExitStack()
        self._counts = False

    def answer(self, asked: Order) -> Sequence[Any]:
        """Return the reports of the clients.

        :raises Failed: when one does not answer as it should, or is gone
        """
        order = asked.order
        if isinstance(order, protocol.Prepare):
            self._counts = order.counts
        if isinstance(order, protocol.Start) and self._counts:
            self._recording.enter_context(self._profiler.recording())
        reports: Sequence[Any] = self._crew.ask(order, asked.answer, asked.clients)
        if isinstance(order, protocol.Stop):
            self._recording.close()
            reports = _latencies_together(reports)
        return reports


def _latencies_together(stretches: Sequence[protocol.Stretch]) -> list[protocol.Stretch]:
    """Have the first of several reports tell the latencies of all: they are looked at together."""
    together = Latencies()
    for each in stretches:
        together.merge(each.latencies)
    first, *others = stretches
    return [
        replace(first, latencies=together),
        *(replace(each, latencies=Latencies()) for each in others),
    ]


def _profiler(task: StartCrew) -> Profiler:
    if task.profiling is None:
        return Profiler()
    unit = task.specification.parameters.crew.client_kind
    return profiler_for(task.profiling.profiler, unit, Path(task.profiling.directory))
