"""The turn to take a slice, which the workers of a row pass to each other.

The coordinator plans many slices in advance, and the workers take them without it.  A worker whose
turn is over writes the number of the next slice to memory that all workers of the row share, and
wakes the worker that takes the next slice.  To wake a worker is to write a byte to its pipe.

If the worker that has the turn ends, it passes nothing on.  So the coordinator marks workers that
have ended, and passes on the turn in their place.
"""

from __future__ import annotations

import mmap
import os
import select
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_NOBODY = -1
"""The current number while no slice is to be taken."""
_BYTES = 8
"""The size of the current number in memory.  Numbers are written and read at once."""


class Baton:
    """The number of the current slice, in files of a *directory* that all holders share.

    A holder is a worker or the coordinator, and is called by its index.  A plan is a sequence of
    holders: holder ``plan[0]`` takes slice 0, and so on.
    """

    def __init__(self, directory: str) -> None:
        """Open the files that :meth:`create` has created."""
        self._directory = Path(directory)
        with (self._directory / "current").open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        self._pipes: dict[int, int] = {}

    @staticmethod
    def create(directory: str, holders: int) -> None:
        """Create the files for a number of holders."""
        ended = bytes(holders)
        (Path(directory) / "current").write_bytes(_bytes(_NOBODY) + ended)
        for holder in range(holders):
            os.mkfifo(Path(directory) / f"{holder}", 0o600)

    def close(self) -> None:
        """Close the files."""
        while self._pipes:
            os.close(self._pipes.popitem()[1])
        self._memory.close()

    @property
    def current(self) -> int:
        """The number of the current slice; the length of the plan after the last one."""
        return int.from_bytes(self._memory[:_BYTES], "little", signed=True)

    def pipe(self, holder: int) -> int:
        """Return the descriptor of the pipe that wakes a holder."""
        if holder not in self._pipes:
            # A pipe that is open for both directions has no end of file.
            path = self._directory / f"{holder}"
            self._pipes[holder] = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        return self._pipes[holder]

    def reset(self) -> None:
        """Have all holders wait, before they get a plan."""
        self._memory[:_BYTES] = _bytes(_NOBODY)

    def pass_on(self, plan: Sequence[int], number: int = _NOBODY) -> None:
        """End slice *number*; wake the holder of the next slice whose holder has not ended."""
        number += 1
        while number < len(plan) and self._memory[_BYTES + plan[number]]:
            number += 1
        self._memory[:_BYTES] = _bytes(number)
        if number < len(plan):
            self._wake(plan[number])

    def mark_ended(self, holder: int) -> None:
        """Note that a holder has ended; from now on, its slices are left out."""
        self._memory[_BYTES + holder] = 1

    def mend(self, plan: Sequence[int]) -> None:
        """Pass the turn on if its holder has ended, maybe just before it woke the next holder."""
        number = self.current
        if not 0 <= number < len(plan):
            return
        if self._memory[_BYTES + plan[number]]:
            self.pass_on(plan, number)
        else:
            self._wake(plan[number])

    def turns(self, plan: Sequence[int], own: int, coordinator: Any) -> Iterator[Any]:
        """Yield a context for each slice of holder *own*; entering it waits for the turn.

        *coordinator* is the connection to the coordinator.

        :raises EOFError: on entering, if the coordinator has ended
        """
        waiting = select.poll()
        waiting.register(self.pipe(own), select.POLLIN)
        waiting.register(coordinator, select.POLLIN)
        for number, holder in enumerate(plan):
            if holder == own:
                yield self._turn(plan, number, waiting)

    @contextmanager
    def _turn(self, plan: Sequence[int], number: int, waiting: Any) -> Iterator[None]:
        own = plan[number]
        while self.current != number:
            if any(ready != self.pipe(own) for ready, _ in waiting.poll()):
                raise EOFError("the coordinator has ended")
            self.clear(own)
        try:
            yield
        finally:
            self.pass_on(plan, number)

    def clear(self, holder: int) -> None:
        """Empty the pipe of a holder that is awake."""
        with suppress(BlockingIOError):
            os.read(self.pipe(holder), 4096)

    def _wake(self, holder: int) -> None:
        with suppress(BlockingIOError):  # it is full, so the holder wakes anyway
            os.write(self.pipe(holder), b"\0")


def _bytes(number: int) -> bytes:
    return number.to_bytes(_BYTES, "little", signed=True)
