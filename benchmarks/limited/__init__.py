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
"""The minimum time that a commit holds the commit lock, in seconds."""
CAPACITY = 1 / PAUSE
"""The maximum number of commits a second."""


class LimitedStorage(FileStorage):  # type: ignore[misc]
    """A FileStorage that records the time at which each commit ends."""

    def __init__(self, path: str, journal: str) -> None:
        """Open the file at *path*, and append times to *journal*.

        Each time is a double from :func:`time.perf_counter`, which all processes share on Linux.
        """
        super().__init__(path)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._journal = os.open(journal, flags, mode=0o600)

    def close(self) -> None:
        super().close()
        if self._journal >= 0:
            os.close(self._journal)
            self._journal = -1

    def tpc_vote(self, transaction: Any) -> None:
        """Vote, and hold the commit lock longer."""
        super().tpc_vote(transaction)
        time.sleep(PAUSE)

    def tpc_finish(self, transaction: Any, func: Any = None) -> bytes:

        def record(tid: bytes) -> None:
            # The lock is still held, so the times in the file ascend.
            if func is not None:
                func(tid)
            os.write(self._journal, array("d", [time.perf_counter()]).tobytes())

        tid: bytes = super().tpc_finish(transaction, record)
        return tid


def commits(journal: Path) -> list[float]:
    """Return the ends of all commits in *journal*, in seconds of :func:`time.perf_counter`."""
    times = array("d")
    times.frombytes(journal.read_bytes())
    return sorted(times)


class LimitedSection(BaseConfig):  # type: ignore[misc]
    """The ``<limitedstorage>`` section."""

    def open(self) -> LimitedStorage:
        return LimitedStorage(self.config.path, self.config.journal)
