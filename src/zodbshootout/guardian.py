"""Nothing is left behind: a small process that outlives the run and clears up after it.

A run that is killed cannot stop its servers and workers.  The guardian can: it reads from a pipe
what it has to look after, and when the pipe is closed, by whatever end of the run, it ends the
process groups and removes the directories that it was told of and that were not taken back.

The second half of this module runs in that process, by itself and without any package.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

GRACE = 3.0
"""Seconds between asking a process group to end and killing it."""


@dataclass(frozen=True)
class Ending:
    """How a process group is ended."""

    signal: int = signal.SIGTERM
    """What asks it to end; 0 leaves it to end by itself."""
    grace: float = GRACE
    """Seconds after which it is killed if it has not."""


GENTLE = Ending()


class Guardian:
    """The run's side of the pipe.  It is used as a context manager around all of the run."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )

    def __enter__(self) -> Guardian:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        # Whoever interrupts this would have directories removed from under programs that still run.
        with _signals_deferred():
            self._process.stdin.close()
            self._process.wait()

    def start(
        self, command: Sequence[str], ending: Ending = GENTLE, **options: Any
    ) -> subprocess.Popen[Any]:
        """Start a process in a group of its own, which is ended if the run ends before it.

        *options* are those of :class:`subprocess.Popen`.  :meth:`release_group` takes it back.
        """
        with _signals_deferred():
            process = subprocess.Popen(command, start_new_session=True, **options)
            self._tell("watch", f"{process.pid} {int(ending.signal)} {ending.grace}")
        return process

    def release_group(self, group: int) -> None:
        """Leave a process group alone: it has ended, and its number may be another's soon."""
        self._tell("release", str(group))

    def watch_directory(self, path: Path) -> None:
        """Have a directory removed when the run ends."""
        self._tell("remove", str(path))

    def _tell(self, word: str, argument: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word} {argument}\n")
        self._process.stdin.flush()


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Let Ctrl-C and the like wait: between its start and its notice nobody knows of a process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    previous = {
        number: signal.signal(number, lambda number, _: arrived.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        if arrived:
            signal.raise_signal(arrived[0])


def end_group(
    group: int, ending: Ending = GENTLE, reap: Callable[[], object] = lambda: None
) -> None:
    """Ask every process of a group to end, and kill what is left when its time is up.

    *reap* is called while waiting: whoever started the group has to collect its leader.
    """
    end_groups({group: ending}, reap)


def end_groups(endings: Mapping[int, Ending], reap: Callable[[], object] = lambda: None) -> None:
    """End several groups, each in its way, at the same time."""
    asked = time.monotonic()
    left = {group: way for group, way in endings.items() if _signal_group(group, way.signal)}
    for group in left:
        _signal_group(group, signal.SIGCONT)  # what is stopped hears nothing
    while left:
        reap()
        waited = time.monotonic() - asked
        for group in [group for group, way in left.items() if waited > way.grace]:
            _signal_group(group, signal.SIGKILL)
            del left[group]
        left = {group: way for group, way in left.items() if _lives(group)}
        time.sleep(0.02 if left else 0.0)
    reap()


def _lives(group: int) -> bool:
    """Say whether a group has a process that runs.

    One that has ended is still of its group until somebody collects it, which for those whose
    parent has ended may be late: not everything that runs as process 1 is an init.
    """
    if not _signal_group(group, 0):
        return False
    states = []
    for path in Path("/proc").glob("[0-9]*/stat"):  # which there is on Linux
        with contextlib.suppress(OSError):
            state, _, of, *_ = path.read_text(errors="replace").rpartition(")")[2].split()
            if int(of) == group:
                states.append(state)
    return not states or any(state not in "ZX" for state in states)


def manner_of_end(exit_code: int | None) -> str:
    """Say how a process ended, from the exit code that :mod:`subprocess` and others report."""
    if exit_code is None:
        return "no longer answers"
    if exit_code < 0:
        try:
            return f"was killed by {signal.Signals(-exit_code).name}"
        except ValueError:  # a real-time signal, which has no name
            return f"was killed by signal {-exit_code}"
    return f"ended with exit status {exit_code}"


def _signal_group(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _stand_guard(orders: TextIO) -> None:
    groups: dict[int, Ending] = {}
    directories: list[str] = []
    for line in orders:
        word, _, argument = line.rstrip("\n").partition(" ")
        if word == "watch":
            group, number, grace = argument.split()
            groups[int(group)] = Ending(int(number), float(grace))
        elif word == "release":
            groups.pop(int(argument), None)
        elif word == "remove":
            directories.append(argument)
    # All at once, for where orphans are collected slowly each takes seconds to be gone.
    end_groups(groups)
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with contextlib.suppress(OSError):
            signal.signal(_number, signal.SIG_IGN)
    _stand_guard(sys.stdin)
