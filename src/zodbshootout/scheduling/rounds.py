"""The order and the number of the rounds of rows.

A round makes one run of each contender of a row.  With a fixed effort, each row has all its rounds
before the next row begins.  With a precision, the rows take turns, one round at a time: so the runs
of a row are spread over the whole time, and changes of the machine over some minutes appear in the
differences between runs rather than in their mean.  A row that is known well enough has no more
rounds, and leaves its time to the others.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from zodbshootout.scheduling.calibration import Effort

R = TypeVar("R", bound=Hashable)


@dataclass
class Rounds(Generic[R]):
    """The rounds of rows; the caller makes each before it asks for the next."""

    rows: Sequence[R]
    effort: Effort
    limit: float
    """Seconds that all rounds may take, if a precision is to be reached."""
    needed: Callable[[R], int]
    """Returns the number of rounds that a row takes in all; 0 ends it at once."""
    closed: Callable[[R], None] = lambda _: None
    """Called when a row has had its last round."""
    clock: Callable[[], float] = time.monotonic
    made: dict[R, int] = field(default_factory=dict)
    """The rounds that each row has had, including those before the run was resumed."""
    _began: float = field(init=False)
    _left: dict[R, int] = field(init=False, default_factory=dict)
    """The rounds that each row still takes."""
    _took: dict[R, float] = field(init=False, default_factory=dict)
    """Seconds of the last round of each row that has had one."""

    def __iter__(self) -> Iterator[tuple[R, int]]:
        """Yield each row that has a round next, with the number of that round, from 0 on."""
        self._began = self.clock()
        waiting = deque(self.rows)
        self._left = {row: self._rounds_left(row) for row in self.rows}
        while waiting:
            row = waiting.popleft()
            if not self._left[row] or not self._fits(row):
                self.closed(row)
                continue
            started = self.clock()
            number = self.made.get(row, 0)
            yield row, number
            self.made[row] = number + 1
            self._took[row] = self.clock() - started
            self._left[row] = self._rounds_left(row)
            if self.effort.precision:
                waiting.append(row)
            else:
                waiting.appendleft(row)

    @property
    def seconds_left(self) -> float:
        """An estimate of the seconds that the remaining rounds take."""
        took = self._took
        usual = sum(took.values()) / len(took) if took else self.effort.duration
        left = sum(rounds * self._took.get(row, usual) for row, rounds in self._left.items())
        if not self.effort.precision:
            return left
        return min(left, max(0.0, self.limit - (self.clock() - self._began)))

    def expected(self, row: R) -> int:
        """Return the number of rounds that a row takes in all, as far as there is time."""
        left = self._left[row]
        if self.effort.precision and self._took:
            usual = sum(self._took.values()) / len(self._took)
            others = (self._took.get(other, usual) for other in self.rows if self._left[other])
            seconds = self.limit - (self.clock() - self._began)
            left = min(left, math.ceil(seconds / max(sum(others), 1e-9)))
        return self.made.get(row, 0) + max(1, left)

    def _rounds_left(self, row: R) -> int:
        needed = self.needed(row)
        return max(0, max(needed, self.effort.processes) - self.made.get(row, 0)) if needed else 0

    def _fits(self, row: R) -> bool:
        if not self.effort.precision:
            return True
        elapsed = self.clock() - self._began
        return elapsed + self._took.get(row, 0.0) <= self.limit and elapsed < self.limit
