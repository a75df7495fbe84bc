"""A storage of known capacity, for configurations: ``%import benchmarks.limited``."""

from __future__ import annotations

import os
import time
from array import array
from pathlib import Path
from typing import Any

from ZODB.config import BaseConfig
from ZODB.FileStorage import FileStorage

PAUSE = 0.01
"""Seconds for which each commit holds the commit lock, at least."""
CAPACITY = 1 / PAUSE
"""Commits a second, at most."""


class LimitedStorage(FileStorage):  # type: ignore[misc]
    """A FileStorage that notes when each commit ended."""

    def __init__(self, path: str, journal: str) -> None:
        """Open the file at *path*; times are appended to *journal*.

        A time is a double of :func:`time.perf_counter`, which is one clock for all processes on
        Linux.
        """
        super().__init__(path)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._journal = os.open(journal, flags, mode=0o600)

    def close(self) -> None:
        """Close the files."""
        super().close()
        if self._journal >= 0:
            os.close(self._journal)
            self._journal = -1

    def tpc_vote(self, transaction: Any) -> None:
        """Vote, and hold the commit lock for longer."""
        super().tpc_vote(transaction)
        time.sleep(PAUSE)

    def tpc_finish(self, transaction: Any, func: Any = None) -> bytes:
        """Finish, and note when that was."""

        def note_and_tell(tid: bytes) -> None:
            # Still under the lock: the times in the file ascend.
            if func is not None:
                func(tid)
            os.write(self._journal, array("d", [time.perf_counter()]).tobytes())

        tid: bytes = super().tpc_finish(transaction, note_and_tell)
        return tid


def commits(journal: Path) -> list[float]:
    """Return when each commit ended, of all that were noted in *journal*."""
    times = array("d")
    times.frombytes(journal.read_bytes())
    return sorted(times)


class LimitedSection(BaseConfig):  # type: ignore[misc]
    """The section ``<limitedstorage>``."""

    def open(self) -> LimitedStorage:
        """Open the storage."""
        return LimitedStorage(self.config.path, self.config.journal)
