"""Which row has a round next, and when each has had enough of them.

A round makes one run of each contender of a row.  With a fixed effort every row has its rounds one
after the other.  With a precision each row has one round after the others have had theirs: so the
runs of a row are spread over the whole time, and what the machine does in some minutes is in their
differences rather than in their mean.  A row that is known well enough takes no more part, and
leaves its time to the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from zodbshootout.scheduling.interleaved_run import Effort

R = TypeVar("R", bound=Hashable)


@dataclass
class Rounds(Generic[R]):
    """The rounds of rows, of which somebody makes each before asking for the next."""

    rows: Sequence[R]
    effort: Effort
    limit: float
    """Seconds that all rounds may take, where a precision is asked for."""
    needed: Callable[[R], int]
    """Return how many rounds a row takes in all, as far as is known by now; 0 ends it at once."""
    closed: Callable[[R], None] = lambda _: None
    """Called when a row has had its last round."""
    clock: Callable[[], float] = time.monotonic
    made: dict[R, int] = field(default_factory=dict)
    """The rounds that each row has had, be it before these began."""
    _took: dict[R, float] = field(init=False, default_factory=dict)

    def __iter__(self) -> Iterator[tuple[R, int]]:
        """Return each row that has a round next, with the number of that round, from 0 on."""
        began = self.clock()
        waiting = list(self.rows)
        while waiting:
            row = waiting.pop(0)
            number = self.made.get(row, 0)
            if number >= self._due(row) or not self._fits(row, self.clock() - began):
                self.closed(row)
                continue
            started = self.clock()
            yield row, number
            self.made[row] = number + 1
            self._took[row] = self.clock() - started
            waiting.insert(len(waiting) if self.effort.precision else 0, row)

    def seconds_left(self, elapsed: float) -> float:
        """Return about how long the rounds take that are due by now.

        *elapsed* is what they have taken until now.
        """
        known = self._took.values()
        usual = sum(known) / len(known) if known else 0.0
        left = sum(
            max(0, self._due(row) - self.made.get(row, 0)) * self._took.get(row, usual)
            for row in self.rows
        )
        return min(left, max(0.0, self.limit - elapsed)) if self.effort.precision else left

    def _due(self, row: R) -> int:
        needed = self.needed(row)
        return max(needed, self.effort.processes) if needed else 0

    def _fits(self, row: R, elapsed: float) -> bool:
        if not self.effort.precision:
            return True
        return elapsed + self._took.get(row, 0.0) <= self.limit and elapsed < self.limit
