"""The use of the machine by this process and by the processes that it started."""

from __future__ import annotations

import os
import resource
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from zodbshootout.model.usage import Usage

BLOCK = 512
"""The bytes in a block; ``getrusage`` counts output in blocks."""
_MEMORY_UNIT = 1 if sys.platform == "darwin" else 1024
"""The bytes in the unit in which ``getrusage`` gives peak memory on this system."""
FRESH = 0.001
"""Seconds for which threads reuse what :func:`helpers_now` has measured."""
not_helpers: set[int] = set()
"""The IDs of processes that this process started for the harness, not for a storage."""


def memory_now() -> int:
    """Return the bytes of memory that this process uses; without ``/proc``, the maximum so far."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - a Path is slower
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return usage_now().memory


def usage_now(helpers: float | None = None) -> Usage:
    """Return what this process has used so far.

    Pass a recent result of :func:`helpers_now` as *helpers* if calling the function takes too long.
    """
    own = resource.getrusage(resource.RUSAGE_SELF)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Usage(
        os.getpid(),
        own.ru_utime + own.ru_stime,
        helpers_now() if helpers is None else helpers,
        BLOCK * (own.ru_oublock + ended.ru_oublock),
        _MEMORY_UNIT * own.ru_maxrss,
    )


def helpers_now() -> float:
    """Return the seconds of processor time of all processes that this process started.

    On Linux, running processes are included, except those in :data:`not_helpers`.
    """
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (ChildProcessError, AttributeError):  # macOS has no waitid before Python 3.13
        running = 0.0
    else:
        running = _running.seconds()
    return ended.ru_utime + ended.ru_stime + running


class _Running:
    """The processor time of the running descendants of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = 0
        self._seconds = self._instant = 0.0

    def seconds(self) -> float:
        with self._lock:
            is_fresh = time.monotonic() - self._instant < FRESH and self._process == os.getpid()
            if not is_fresh:
                helpers = set(children(os.getpid())) - not_helpers
                self._seconds = sum(map(_cpu_of_tree, helpers))
                self._process, self._instant = os.getpid(), time.monotonic()
            return self._seconds


_running = _Running()


def children(parent: int) -> Iterator[int]:
    """Yield the IDs of the processes that *parent* started; on systems other than Linux, none."""
    # Looking at every process of the machine, as psutil does, takes as long as a short measurement.
    with suppress(OSError):  # the parent has ended
        for thread in Path(f"/proc/{parent}/task").iterdir():
            with suppress(OSError):
                yield from map(int, (thread / "children").read_text().split())


def _cpu_of_tree(process: int) -> float:
    return cpu_of(process) + sum(map(_cpu_of_tree, children(process)))


def cpu_of(process: int) -> float:
    """Return the seconds of processor time of a process and of its ended children, on Linux."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        # The file counts time in ticks, this clock in nanoseconds; see clock_getcpuclockid(3).
        own = time.clock_gettime((~process << 3) | 2)
    except OSError:  # the process has ended
        return 0.0
    return own + (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
