"""The order and the number of the rounds of rows.

A round makes one run of each contender of a row.  With a fixed effort, a row has all its rounds
before the next row begins.  With a precision, the rows take turns, one round at a time.  So the
runs of a row are spread over the whole time.  If the machine is slow for some minutes, only some
runs of each row are slow; they visibly differ from the row's other runs.  If
there is time for it, the first row begins with as many rounds as a verdict needs, so that the user
soon sees one.  A row that is precise
enough has no further rounds, which leaves its time to the other rows.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from zodbshootout.results.estimate import MIN_RUNS
from zodbshootout.scheduling.calibration import Effort

R = TypeVar("R", bound=Hashable)

PLANNED = 0.9
"""The part of the remaining time to divide among rounds; the rest is for rounds that overrun."""

AMPLE = 0.5
"""The part of the limit in which all rows must have their first rounds if the first row is to begin
with several."""


@dataclass
class Rounds(Generic[R]):
    """The rounds of rows.  Make the runs of a round before you ask for the next round."""

    rows: Sequence[R]
    effort: Effort
    limit: float
    """Seconds that all rounds may take, if there is a precision."""
    needed: Callable[[R], int]
    """A function that returns how many rounds a row needs in all; 0 ends the row at once."""
    closed: Callable[[R], None] = lambda _: None
    """A function that is called when a row has had its last round."""
    clock: Callable[[], float] = time.monotonic
    made: dict[R, int] = field(default_factory=dict)
    """The number of rounds of each row so far, including rounds before the run was resumed."""
    assured: Callable[[R], int] = lambda _: 0
    """A function that returns the number of assured rounds of a row, which the row gets however
    long they take.  The limit does not include this time."""
    took: dict[R, float] = field(init=False, default_factory=dict)
    """Seconds that each row's latest round took, not counting work that a row does only once."""
    _began: float = field(init=False)
    _once: dict[R, float] = field(init=False, default_factory=dict)
    """Seconds that each row has spent on work that its later rounds do not repeat."""
    _left: dict[R, int] = field(init=False, default_factory=dict)
    """The remaining rounds of each row."""
    _waiting: deque[R] = field(init=False, default_factory=deque)
    """The rows that wait for their next round."""

    def __iter__(self) -> Iterator[tuple[R, int]]:
        """Yield the row of each round, with the round's number in that row, from 0 on."""
        self._began = self.clock()
        waiting = self._waiting = deque(self.rows)
        self._left = {row: self._rounds_left(row) for row in self.rows}
        while waiting:
            row = waiting.popleft()
            if not self._left[row] or not self._fits(row):
                self._left[row] = 0
                self.closed(row)
                continue
            started, once = self.clock(), self._once.get(row, 0.0)
            number = self.made.get(row, 0)
            is_assured = number < self.assured(row)
            yield row, number
            self.made[row] = number + 1
            self.took[row] = self.clock() - started - (self._once.get(row, 0.0) - once)
            if is_assured:
                self._began += self.clock() - started
            self._left[row] = self._rounds_left(row)
            if self._goes_on(row, number + 1):
                waiting.appendleft(row)
            else:
                waiting.append(row)

    def _goes_on(self, row: R, made: int) -> bool:
        """Return whether a row that has *made* rounds has further ones before other rows."""
        if not self.effort.precision:
            return True
        of_row = self.took.get(row, math.inf) * MIN_RUNS + self._once.get(row, 0.0)
        is_ample = of_row * len(self.rows) <= AMPLE * self.limit
        return row == self.rows[0] and made < MIN_RUNS and is_ample

    def following(self, row: R) -> tuple[R, int] | None:
        """Return what probably follows the current round, which is one of *row*.

        ``None`` means that the results of the current round decide it, or that nothing follows.
        """
        made = self.made.get(row, 0) + 1
        is_certain = made < self.effort.processes
        after = next((other for other in self._waiting if self._left[other]), None)
        if is_certain and (after is None or self._goes_on(row, made)):
            return row, made
        if after is None or not self._fits(after):
            return None
        return after, self.made.get(after, 0)

    def spend_once(self, row: R, seconds: float) -> None:
        """Record how much of a row's current round was work that later rounds do not repeat."""
        self._once[row] = self._once.get(row, 0.0) + seconds

    def affordable(self, row: R, fewest: int) -> float:
        """Return the seconds that each round of a row may take so that all rows have enough rounds.

        Each row is to have at least *fewest* rounds, and no fewer than :data:`MIN_RUNS`.  Call this
        in the first round of the row.  A row that had a round is assumed to need the same time for
        each further round.  The time that is left is for the rows that had no round: first for the
        work that each of them does only once, then in equal shares for their rounds.  Assured
        rounds are not counted.
        """
        seconds = self.limit - (self.clock() - self._began)
        spent_once = [once for other, once in self._once.items() if not self.assured(other)]
        rounds = 0
        for other in self.rows:
            assured = self._assured_left(other)
            missing = (
                min(self._left[other], max(MIN_RUNS, fewest) - self.made.get(other, 0)) - assured
            )
            if other in self.took:
                seconds -= max(0, missing) * self.took[other]
            elif missing > 0 or (self._left[other] and not assured):
                rounds += max(1, missing)
                if other != row and spent_once:
                    seconds -= sum(spent_once) / len(spent_once)
        return max(0.0, PLANNED * seconds / max(1, rounds))

    @property
    def seconds_left(self) -> float:
        """An estimate of the seconds of the remaining rounds."""
        took = self.took
        usual = sum(took.values()) / len(took) if took else self.effort.duration
        left = sum(rounds * took.get(row, usual) for row, rounds in self._left.items())
        if not self.effort.precision:
            return left
        assured = sum(self._assured_left(row) * took.get(row, usual) for row in self._left)
        return min(left, assured + max(0.0, self.limit - (self.clock() - self._began)))

    def expected(self, row: R) -> int:
        """Return the total number of rounds that a row will probably have."""
        left = self._left[row]
        sharing = [
            other
            for other in self.rows
            if self._left[other]
            and (other == row or (self._fits(other) and not self._assured_left(other)))
        ]
        known = [self.took[other] for other in sharing if other in self.took]
        if self.effort.precision and known:
            a_turn = sum(known) / len(known) * len(sharing)
            seconds = self.limit - (self.clock() - self._began)
            left = min(left, math.ceil(seconds / max(a_turn, 1e-9)))
        return self.made.get(row, 0) + max(1, left, self._assured_left(row))

    def _assured_left(self, row: R) -> int:
        return max(0, self.assured(row) - self.made.get(row, 0))

    def _rounds_left(self, row: R) -> int:
        needed = self.needed(row)
        return max(0, max(needed, self.effort.processes) - self.made.get(row, 0)) if needed else 0

    def _fits(self, row: R) -> bool:
        if not self.effort.precision or self._assured_left(row):
            return True
        elapsed = self.clock() - self._began
        return elapsed + self.took.get(row, 0.0) <= self.limit and elapsed < self.limit
