"""The use of the machine: what a process has used so far, and what a crew used for a value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter


@dataclass(frozen=True)
class Usage:
    """The use of the machine by a process since it was started."""

    process: int = 0
    """Its process id, which differs among the processes that use the machine at the same time."""
    cpu: float = 0.0
    """Seconds of processor time."""
    helpers: float = 0.0
    """Seconds of processor time of the processes that it has started."""
    written: int = 0
    """Bytes that it, and those processes, had the operating system write to disks."""
    memory: int = 0
    """The most bytes of memory that it has had at once."""


@dataclass(frozen=True)
class Period:
    """The use of the machine by a process, at the beginning and at the end of a period."""

    before: Usage = Usage()
    after: Usage = Usage()
    paused: float = 0.0
    """Seconds of processor time for what the benchmark does between iterations."""


@dataclass
class Used:
    """The use of the machine by several processes, and the most memory that one of them had."""

    cpu: float = 0.0
    helpers: float = 0.0
    written: int = 0
    memory: int = 0

    def add(self, periods: Iterable[Period]) -> None:
        """Add the *periods* of clients, of which several may be threads of one process."""
        by_process = sorted(periods, key=attrgetter("before.process"))
        for _, group in groupby(by_process, key=attrgetter("before.process")):
            self._add_process(list(group))

    def _add_process(self, threads: list[Period]) -> None:
        # Counters of a process only grow: this is the period from the first start to the last end.
        def grown(name: str) -> float:
            after = max(getattr(period.after, name) for period in threads)
            before = min(getattr(period.before, name) for period in threads)
            return float(after - before)

        self.cpu += max(0.0, grown("cpu") - sum(period.paused for period in threads))
        self.helpers += grown("helpers")
        self.written += int(grown("written"))
        self.memory = max(self.memory, *(period.after.memory for period in threads))
