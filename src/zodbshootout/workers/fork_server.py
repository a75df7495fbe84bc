"""The process that workers are forked from: ``python -m zodbshootout.workers.fork_server``.

The process runs in the Python that opens the storages.  It opens no storage itself, but imports
what workers need.  Therefore workers start at once, and share the memory that they do not change.
Orders to fork a worker come through a socket, with the path of the output file and an end of a
pipe.  The process sends a line of JSON when a worker has started or ended.
"""

from __future__ import annotations

import sys

if "--gevent" in sys.argv:
    try:
        from gevent import monkey
    except ImportError:  # workers then refuse crews of greenlets
        pass
    else:
        monkey.patch_all()

import argparse
import json
import os
import select
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from typing import NoReturn

import pyperf

from zodbshootout.client import benchmarks, storage_types
from zodbshootout.client.database import database_schema
from zodbshootout.guardian import Ending, end_group, start_of
from zodbshootout.plugins import entries
from zodbshootout.workers.worker import work

MAX_BYTES = 65536


def main() -> NoReturn:
    """Fork workers until the socket is closed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", type=int, required=True)
    parser.add_argument("--gevent", action="store_true")
    parser.add_argument("--one-session", action="store_true")
    options = parser.parse_args()
    _load()
    # Each worker leads a process group, so that a signal can end the worker with all its clients.
    lead_group = os.setpgrp if options.one_session else os.setsid
    Forker(socket.socket(fileno=options.socket), lead_group).serve()
    sys.stdout.flush()
    os._exit(0)  # an orderly end of the interpreter takes a third of a second


def _load() -> None:
    """Load what every worker needs; each worker itself imports plug-ins."""
    benchmarks.ours()
    storage_types.ours()
    entries(benchmarks.ENTRY_POINTS)
    database_schema()


class Forker:
    """Forks workers and reports how they ended."""

    def __init__(self, orders: socket.socket, lead_group: Callable[[], None]) -> None:
        self._orders = orders
        self._lead_group = lead_group
        self._started: dict[int, str] = {}
        self._runner = _runner()  # workers inherit it
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> None:
        """Fork a worker for each message that brings a pipe.

        Any other message is a list of modules, which this process imports.
        """
        while True:
            ready, _, _ = select.select([self._orders.fileno(), self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, MAX_BYTES)
                self._report_ended()
            if self._orders.fileno() in ready:
                text, descriptors, _, _ = socket.recv_fds(self._orders, MAX_BYTES, 1)
                if not text:
                    return
                if descriptors:
                    self._fork(text, descriptors[0])
                else:
                    self._import(text.decode().split())

    def _import(self, modules: Sequence[str]) -> None:
        for module in modules:
            with suppress(Exception):  # workers that need the module report the error
                import_module(module)
        self._send(imported=len(modules))

    def _fork(self, output: bytes, descriptor: int) -> None:
        pid = os.fork()
        if pid == 0:
            self._become_worker(output, descriptor)
        os.close(descriptor)
        self._started[pid] = start_of(pid)
        self._send(started=pid)

    def _become_worker(self, output: bytes, descriptor: int) -> NoReturn:
        status = 1
        try:
            self._lead_group()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for inherited in (self._woken, self._wake):
                os.close(inherited)
            self._orders.close()
            file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(file, sys.stdout.fileno())
            os.dup2(file, sys.stderr.fileno())
            os.close(file)
            status = work(Connection(descriptor), self._runner)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            # A client that hangs in its storage would keep the interpreter from ending.
            os._exit(status)

    def _report_ended(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                # A killed worker leaves its clients behind.
                end_group(pid, Ending(signal.SIGKILL), started=self._started.pop(pid, ""))
                self._send(ended=pid, exit_code=os.waitstatus_to_exitcode(status))

    def _send(self, **message: int) -> None:
        with suppress(BrokenPipeError):
            self._orders.sendall(json.dumps(message).encode() + b"\n")


def _runner() -> pyperf.Runner:
    """Return pyperf's Runner, even in a Python that is older than pyperf requires."""
    if sys.version_info < (3, 10):
        # A Runner in worker mode needs a newer Python only to list the hooks.
        pyperf._hooks.get_hooks = tuple
    return pyperf.Runner()


if __name__ == "__main__":
    main()
