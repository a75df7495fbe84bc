"""The processor time, the writes and the memory of all processes of a private server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from zodbshootout.client.usage import children, cpu_of

_GONE = (psutil.Error, OSError)
"""The errors that psutil raises for a process that has ended, or belongs to another user."""


@dataclass(frozen=True)
class ServerUsage:
    """The use of the machine by a server's processes since their start."""

    cpu: float = 0.0
    """Seconds of processor time, including that of processes that have ended."""
    written: int = 0
    """Bytes that the processes caused to be written to disks."""

    def __add__(self, other: ServerUsage) -> ServerUsage:
        return ServerUsage(self.cpu + other.cpu, self.written + other.written)

    def since(self, before: ServerUsage) -> ServerUsage:
        """Return what was used in addition to *before*."""
        return ServerUsage(max(0.0, self.cpu - before.cpu), max(0, self.written - before.written))


def usage_of(root: int) -> ServerUsage:
    """Return what the process with ID *root* and all its descendants have used."""
    total = ServerUsage()
    for process in tree_of(root):
        with suppress(*_GONE):
            total += ServerUsage(_cpu(process), _written(process))
    return total


def memory_of(root: int) -> int:
    """Return the bytes of memory that a process and all its descendants use.

    Pages that several of these processes share are counted once.
    """
    total = 0
    for process in tree_of(root):
        with suppress(*_GONE):
            memory = process.memory_full_info()
            total += getattr(memory, "pss", memory.uss)
    return total


def kill_tree(root: int) -> None:
    """Kill a process and all its descendants, which may be in separate groups."""
    processes = list(tree_of(root))
    for process in processes:
        with suppress(*_GONE):
            process.kill()
    psutil.wait_procs(processes[1:], timeout=5)


def tree_of(root: int) -> Iterator[psutil.Process]:
    """Yield a process and all its descendants."""
    with suppress(*_GONE):
        yield psutil.Process(root)
        for child in _children(root):
            yield from tree_of(child)


def _children(parent: int) -> list[int]:
    if not Path(f"/proc/{parent}/task/{parent}/children").exists():
        return [child.pid for child in psutil.Process(parent).children()]
    return list(children(parent))


def _cpu(process: psutil.Process) -> float:
    if sys.platform == "linux":
        return cpu_of(process.pid)
    kinds = ("user", "system", "children_user", "children_system")
    return float(sum(getattr(process.cpu_times(), kind, 0.0) for kind in kinds))


def _written(process: psutil.Process) -> int:
    counters = process.io_counters() if hasattr(process, "io_counters") else None  # macOS
    return int(getattr(counters, "write_bytes", 0))
