"""The shared memory of a PostgreSQL server, which outlives a server that is killed.

A server that starts again with the same data removes what it left, but perhaps none does: the run
may end, or be killed, while the server is down.
"""

from __future__ import annotations

import ctypes
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from zodbshootout.servers.usage import tree_of

_SEGMENT_LINE = 6
"""The line of postmaster.pid, counted from 0, that has the key and the ID of a segment."""
_MAPPED = re.compile(r"(/dev/shm/PostgreSQL\.\d+)$", re.MULTILINE)
_IPC_RMID = 0


@dataclass(frozen=True)
class SharedMemory:
    """The shared memory of a running server."""

    segment: int | None
    """The ID of the System V segment, if there is one."""
    files: frozenset[Path]

    @classmethod
    def of(cls, pid: int, data: Path) -> SharedMemory:
        """Return the shared memory of the server with process ID *pid* and the directory *data*."""
        segment, files = None, set()
        with suppress(OSError, LookupError, ValueError):
            lines = (data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
            if lines[0] == str(pid):
                segment = int(lines[_SEGMENT_LINE].split()[1])
        for process in tree_of(pid):
            with suppress(OSError):  # it has ended, or there is no /proc
                files |= set(_MAPPED.findall(Path(f"/proc/{process.pid}/maps").read_text()))
        return cls(segment, frozenset(map(Path, files)))

    def remove(self) -> None:
        """Remove the shared memory of a server that has ended."""
        if self.segment is not None:
            ctypes.CDLL(None).shmctl(self.segment, _IPC_RMID, None)
        for file in self.files:
            with suppress(OSError):
                file.unlink()
