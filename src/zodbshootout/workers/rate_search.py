"""The search for the highest rate at which latencies stay within a limit."""

from __future__ import annotations

import math

NARROW = 1.03
"""The ratio of the lowest rate that does not hold to the highest one that does, at the end."""
COARSE = 1.25
"""A greater ratio of these rates, at which a slice needs not tell much."""
CONFIRMED = 2
"""Slices by which a rate has to hold, or not to hold, more often than the contrary."""
MAX_STEPS = 24
"""Slices after which the search ends, whatever they have shown."""
TOO_LOW = 1 / 64
"""The part of the throughput below which no rate is tried."""


class RateSearch:
    """Bisects between a rate that holds and one that does not, until both are confirmed."""

    def __init__(self, throughput: float = 0.0, expected: float = 0.0) -> None:
        """Begin below *throughput*, or around the *expected* result, in iterations a second.

        No rate above the throughput is expected to hold.
        """
        self._lowest = (throughput or expected) * TOO_LOW
        self._throughput = throughput
        self._scores = {throughput: -1} if throughput else {}
        """How many more slices have held a rate than have not."""
        half = math.sqrt(NARROW)
        self._first = [expected / half, expected * half] if expected else []
        """The rates that are tried first."""
        self.steps = 0

    @property
    def held(self) -> float:
        """The highest rate that holds, below those that do not; 0 if none has held."""
        broke = self._broke
        holding = (rate for rate, score in self._scores.items() if score > 0 and rate < broke)
        return max(holding, default=0.0)

    @property
    def _broke(self) -> float:
        return min((r for r, score in self._scores.items() if score < 0), default=math.inf)

    @property
    def is_coarse(self) -> bool:
        return self.steps >= len(self._first) and self._broke > COARSE * self.held

    @property
    def rate(self) -> float:
        """The rate to try next; 0 if there is none, because no rate holds or the search is over."""
        undecided = [rate for rate, score in self._scores.items() if not score]
        if self.steps >= MAX_STEPS:
            return 0.0
        if self.steps < len(self._first):
            return self._first[self.steps]
        return undecided[0] if undecided else self._between()

    def _between(self) -> float:
        held, broke = self.held, self._broke
        if broke > COARSE * held and self._scores.get(broke) == -1 and broke != self._throughput:
            return broke  # a stall of the storage breaks one slice, but hardly the next as well
        if not held:
            return broke / 2 if broke / 2 >= self._lowest else 0.0
        if broke > held * NARROW * (1 + 1e-9):
            return min(2 * held, math.sqrt(held * broke))
        if self._scores[held] < CONFIRMED:
            return held
        return broke if self._scores[broke] > -CONFIRMED else 0.0

    def note(self, rate: float, *, holds: bool) -> None:
        """Note whether a slice at a *rate* has held."""
        self.steps += 1
        self._scores[rate] = self._scores.get(rate, 0) + (1 if holds else -1)
