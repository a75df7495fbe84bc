"""The finish of a stretch, at which every client of a crew sees when all clients have arrived."""

from __future__ import annotations

import mmap
import time
from typing import Union

Memory = Union[bytearray, mmap.mmap]
YIELD_INTERVAL = 0.0005
"""Seconds after which a thread lets the other threads of its process run."""


class Finish:
    """Which clients have done their counted iterations, in memory that all clients share.

    Each client has a byte, the number of stretches that it has finished.  The numbers differ by at
    most one, because all clients start a stretch together.
    """

    def __init__(self, memory: Memory, own: int) -> None:
        """Note in *memory* when client number *own* arrives."""
        self._memory, self._own = memory, own
        self._shares_process = isinstance(memory, bytearray)
        self._next_yield = 0.0
        self._before = bytes(1)
        """The byte of clients that have not arrived."""

    @staticmethod
    def among_threads(clients: int) -> Memory:
        """Return memory that the threads of this process share."""
        return bytearray(clients)

    @staticmethod
    def among_processes(clients: int) -> Memory:
        """Return memory that this process shares with processes that it will fork."""
        return mmap.mmap(-1, clients)

    def arrive(self) -> None:
        """Note that this client has done its counted iterations."""
        before = self._memory[self._own]
        self._before = bytes([before])
        self._memory[self._own] = (before + 1) % 256

    def all_arrived(self) -> bool:
        """Return whether all clients have arrived.

        Threads of one process now and then let the others run: greenlets would not otherwise.
        """
        if self._shares_process and time.perf_counter() >= self._next_yield:
            time.sleep(0)
            self._next_yield = time.perf_counter() + YIELD_INTERVAL
        return self._memory.find(self._before) < 0
