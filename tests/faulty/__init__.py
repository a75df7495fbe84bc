"""Storages that fail in a benchmark, leak or slow down, for configurations of tests."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import psutil
from ZODB.config import BaseConfig
from ZODB.POSException import StorageError


def _raise() -> None:
    raise StorageError("the disk is on fire")


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _exit() -> None:
    sys.stdout.write("there is no more room\n")
    sys.stdout.flush()
    os._exit(7)


PRINTED = 2**26


def _print() -> None:
    """Print more than any reader takes, then hang."""
    lines = b"nobody has asked for this\n" * 4096
    for _ in range(-(-PRINTED // len(lines))):
        sys.stdout.buffer.write(lines)
    sys.stdout.flush()
    _hang()


def _hang() -> None:
    time.sleep(3600)


class Leaked:
    """An object that a leaking storage keeps for every commit."""


leaked: list[Leaked] = []


def _step_clock(seconds: float) -> None:
    """Make the time of day jump in this process and its forks."""
    real: Callable[[], float] = time.time
    time.time = lambda: real() + seconds


def _leak() -> None:
    leaked.append(Leaked())


def _segv() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _escape() -> None:
    """Leave behind a process, in its own session, that holds the output of this one open."""
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)


def _ancestor(generation: int) -> psutil.Process:
    """Return an ancestor of a forked client: 1 is the worker, 2 its fork server, 3 the command."""
    return psutil.Process().parents()[generation - 1]


def _kill_worker() -> None:
    _ancestor(1).kill()


def _kill_fork_server() -> None:
    _ancestor(2).kill()


def _kill_command() -> None:
    _ancestor(3).kill()


def _kill_relay() -> None:
    for owner in (psutil.Process(), _ancestor(1)):
        for child in owner.children():
            if "relay.py" in " ".join([child.name(), *child.cmdline()]):
                child.kill()


def _kill_children(word: str) -> None:
    """Kill the children of the command with *word* in their command line, and their children.

    One that is forked has the command line of the command, but a name of its own.
    """
    for child in _ancestor(3).children():
        if word in " ".join([child.name(), *child.cmdline()]):
            for process in [child, *child.children(recursive=True)]:
                process.kill()
            child.wait(10)


def _dask_worker() -> psutil.Process | None:
    """Return the Dask worker called alpha if this process is one of its clients."""
    for parent in psutil.Process().parents():
        words = parent.cmdline()
        if any("dask_worker" in word for word in words) and "alpha" in words:
            return parent
    return None


def _kill_dask_worker() -> None:
    if worker := _dask_worker():
        worker.kill()


def _kill_dask_scheduler() -> None:
    if worker := _dask_worker():
        for sibling in psutil.Process(worker.ppid()).children():
            if any("dask_scheduler" in word for word in sibling.cmdline()):
                sibling.kill()


def _raise_on_host() -> None:
    if _dask_worker():
        raise StorageError("no route to the database")


FAULTS: dict[str, Callable[[], object]] = {
    "kill-worker": _kill_worker, "kill-fork-server": _kill_fork_server,
    "kill-command": _kill_command, "kill-guardian": lambda: _kill_children("guardian.py"),
    "kill-relay": _kill_relay,
    "kill-zeo": lambda: _kill_children("runzeo"),
    "kill-postgresql": lambda: _kill_children("postgres"),
    "kill-pooler": lambda: _kill_children("pgbouncer"),
    "kill-mariadb": lambda: _kill_children("mariadbd"),
    "raise": _raise, "kill": _kill, "segv": _segv, "exit": _exit, "hang": _hang, "leak": _leak,
    "print": _print,
    "kill-dask-worker": _kill_dask_worker, "kill-dask-scheduler": _kill_dask_scheduler,
    "raise-on-host": _raise_on_host,
    "escape": _escape, "clock-ahead": lambda: _step_clock(3600.0),
    "clock-back": lambda: _step_clock(-3600.0),
}  # fmt: skip
LASTING = {"leak"}
"""Faults of every commit, not only of the chosen one."""


class SlowingSection(BaseConfig):  # type: ignore[misc]
    def open(self) -> Any:
        storage = self.config.base.open()
        vote, commits = storage.tpc_vote, count(1)

        def slow_vote(*arguments: Any) -> Any:
            of_size = self.config.per_megabyte * storage.getSize() / 1e6
            number = next(commits)
            of_commits = self.config.per_commit * number
            if number % self.config.every == 0:
                time.sleep((self.config.milliseconds + of_size + of_commits) / 1000)
            return vote(*arguments)

        storage.tpc_vote = slow_vote
        return storage


class StallingSection(BaseConfig):  # type: ignore[misc]
    def open(self) -> Any:
        storage = self.config.base.open()
        pack = storage.pack

        def stall(*arguments: Any, **named: Any) -> None:
            pack(*arguments, **named)
            with storage._commit_lock:
                time.sleep(self.config.milliseconds / 1000)

        storage.pack = stall
        return storage


HELPER = """
import sys, time
for seconds in sys.stdin:
    until = time.process_time() + float(seconds)
    while time.process_time() < until:
        pass
    print(flush=True)
"""
"""A program that uses as many seconds of processor time as each line says, and lives on."""


class SpendingSection(BaseConfig):  # type: ignore[misc]
    def open(self) -> Any:
        storage = self.config.base.open()
        vote, store = storage.tpc_vote, storage.store
        storage.kept = bytearray(os.urandom(1) * (self.config.megabytes * 1_000_000))
        helpers: list[subprocess.Popen[str]] = []

        def have_helped() -> None:
            if not helpers:
                command = [sys.executable, "-c", HELPER]
                pipe = subprocess.PIPE
                helpers.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True))
            (helper,) = helpers
            print(self.config.helper_milliseconds / 1000, file=helper.stdin, flush=True)
            assert helper.stdout is not None
            helper.stdout.readline()

        def busy_vote(*arguments: Any) -> Any:
            if self.config.helper_milliseconds:
                have_helped()
            until = time.thread_time() + self.config.cpu_milliseconds / 1000
            while time.thread_time() < until:
                pass
            return vote(*arguments)

        def padded_store(oid: bytes, serial: bytes, data: bytes, *arguments: Any) -> Any:
            # What follows the end of a pickle is not read.
            return store(oid, serial, data + bytes(self.config.padding), *arguments)

        storage.tpc_vote, storage.store = busy_vote, padded_store
        return storage


class ChattySection(BaseConfig):  # type: ignore[misc]
    def open(self) -> Any:
        return self._chatty(self.config.base.open())

    def _chatty(self, storage: Any) -> Any:
        vote, new_instance = storage.tpc_vote, storage.new_instance

        def chatty_vote(*arguments: Any) -> Any:
            cursor = storage._load_connection.cursor
            cursor.execute("SELECT 1")
            cursor.fetchall()
            return vote(*arguments)

        storage.tpc_vote = chatty_vote
        storage.new_instance = lambda: self._chatty(new_instance())
        return storage


class FaultySection(BaseConfig):  # type: ignore[misc]
    def open(self) -> Any:
        if self.config.during == "open":
            self._trigger_fault()
        storage = self.config.base.open()
        if self.config.during in {"close", "pack", "iterator"}:
            self._replace(storage, self.config.during, lambda: True)
        elif self.config.during:
            self._watch(storage)
        else:
            commits = count(1)
            lasting = self.config.fault in LASTING
            self._replace(
                storage,
                "tpc_vote",
                lambda: next(commits) == self.config.benchmark_commit or lasting,
            )
        return storage

    def _watch(self, storage: Any) -> Any:
        """Make methods of the storage trigger the fault while the chosen one runs; return it."""
        for name in ("load", "loadBefore", "tpc_begin", "new_oid", "poll_invalidations"):
            if hasattr(storage, name):
                self._replace(storage, name, self._is_method_running)
        if hasattr(storage, "new_instance"):
            new_instance: Callable[[], Any] = storage.new_instance
            storage.new_instance = lambda: self._watch(new_instance())
        return storage

    def _replace(self, storage: Any, name: str, triggers: Callable[[], bool]) -> None:
        """Make a method of the storage check for the fault before it does anything else."""
        method = getattr(storage, name)

        def replaced(*arguments: Any, **named: Any) -> Any:
            if triggers():
                self._trigger_fault()
            return method(*arguments, **named)

        setattr(storage, name, replaced)

    def _trigger_fault(self) -> None:
        when, once = Path(self.config.when or os.sep), self.config.once
        if not when.exists() or (once and Path(once).exists()):
            return
        if once:
            Path(once).touch()
        if self.config.fault == "remove":
            shutil.rmtree(when.parent)
        else:
            FAULTS[self.config.fault]()

    def _is_method_running(self) -> bool:
        """Return whether the benchmark method named in the configuration is running."""
        frame = sys._getframe()
        while frame := frame.f_back:  # type: ignore[assignment]
            module = frame.f_globals.get("__name__", "")
            if frame.f_code.co_name == self.config.during and ".benchmarks." in module:
                return True
        return False
