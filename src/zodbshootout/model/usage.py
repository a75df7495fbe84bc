"""The use of the machine by one process so far, and by all clients during a measurement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter


@dataclass(frozen=True)
class Usage:
    """A process's use of the machine since the process started."""

    process: int = 0
    """The process ID."""
    cpu: float = 0.0
    """Seconds of processor time."""
    helpers: float = 0.0
    """Seconds of processor time of its helpers: the processes that it started."""
    written: int = 0
    """Bytes that this process and its helpers caused to be written to disks."""
    memory: int = 0
    """The process's peak memory in bytes."""


@dataclass(frozen=True)
class Period:
    """A process's use of the machine at the beginning and at the end of a period."""

    before: Usage = Usage()
    after: Usage = Usage()
    paused: float = 0.0
    """Seconds of processor time that the benchmark spent between iterations."""


@dataclass
class Used:
    """The use of the machine by several processes; the memory is that of the largest process."""

    cpu: float = 0.0
    helpers: float = 0.0
    written: int = 0
    memory: int = 0

    def add(self, periods: Iterable[Period]) -> None:
        """Add each client's use in its period; some clients may be threads of one process."""
        by_process = sorted(periods, key=attrgetter("before.process"))
        for _, group in groupby(by_process, key=attrgetter("before.process")):
            self._add_process(list(group))

    def _add_process(self, threads: list[Period]) -> None:
        # Threads share counters, which only grow: count from the first start to the last end.
        def grown(name: str) -> float:
            after = max(getattr(period.after, name) for period in threads)
            before = min(getattr(period.before, name) for period in threads)
            return float(after - before)

        self.cpu += max(0.0, grown("cpu") - sum(period.paused for period in threads))
        self.helpers += grown("helpers")
        self.written += int(grown("written"))
        self.memory = max(self.memory, *(period.after.memory for period in threads))
