"""The search for the highest rate at which latencies stay within a limit.

A slice at a rate keeps the limit or breaks it.  If the storage stalls, even a slice at a low rate
breaks the limit.  Therefore the highest rate is estimated like a threshold in psychophysics.  Each
candidate for the highest rate has a probability.  After a slice, each candidate's probability is
multiplied by the chance that the slice would have this outcome if the candidate were the highest
rate.  The next slice is taken at the median of the candidates.  See QUEST in A. B. Watson and
D. G. Pelli, Perception & Psychophysics 33 (1983), 113-120.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import accumulate

STALL = 0.3
"""The probability that a slice breaks the limit although the storage sustains the rate."""
LUCK = 0.05
"""The probability that a slice keeps the limit although the storage does not sustain the rate."""
STEEPNESS = 33
"""The exponent of rate / candidate in the probability that a slice keeps the limit.  It is so high
that differences of 3 % matter."""
NARROW, SURE = 1.03, 0.6
"""The search ends when the candidates within a factor NARROW of the median have a total probability
of at least SURE."""
COARSE = 1.12
"""Slices may be short until candidates within this ratio of the median have half of the total
probability."""
MAX_STEPS = 24
"""The maximum number of slices in a search."""
LOWEST, HIGHEST = 1 / 64, 4
"""The range of candidates, as multiples of the throughput or the expected rate."""
STEP = 1.005
"""The ratio of neighbouring candidates."""
DOUBT = 0.1
"""The spread of the probabilities before the first slice.  A candidate is half as probable as the
expected rate if it is a factor of exp(DOUBT), about 1.1, above or below that rate."""


class RateSearch:
    """Estimates the highest rate that keeps the limit, in iterations a second."""

    def __init__(self, throughput: float = 0.0, expected: float = 0.0) -> None:
        """Begin at an *expected* rate, or well below a *throughput*.

        Few storages keep the limit at their full throughput.
        """
        begin = throughput or expected
        ratios = [LOWEST]
        while ratios[-1] < HIGHEST:
            ratios.append(ratios[-1] * STEP)
        self._candidates = [begin * ratio for ratio in ratios]
        self._weigh([
            ratio if throughput and ratio < 1 else 1 / (1 + (math.log(ratio) / DOUBT) ** 2)
            for ratio in ratios
        ])  # fmt: skip
        self._has_held = False
        self.steps = 0

    @property
    def highest(self) -> float:
        """The median, which estimates the highest rate; 0 if no slice has kept the limit."""
        return self._median if self._has_held else 0.0

    @property
    def rate(self) -> float:
        """The rate of the next slice; 0 if the search is over."""
        is_over = self.steps >= MAX_STEPS or self._probability_within(NARROW) >= SURE
        return 0.0 if is_over else self._median

    @property
    def is_coarse(self) -> bool:
        """Whether slices may still be short."""
        return self._probability_within(COARSE) < 1 / 2

    def note(self, rate: float, *, holds: bool) -> None:
        """Record whether a slice at a *rate* has kept the limit."""
        self.steps += 1
        self._has_held = self._has_held or holds
        chances = (
            LUCK + (1 - STALL - LUCK) / (1 + (rate / candidate) ** STEEPNESS)
            for candidate in self._candidates
        )
        self._weigh([
            weight * (chance if holds else 1 - chance)
            for weight, chance in zip(self._weights, chances)
        ])  # fmt: skip

    def _weigh(self, weights: list[float]) -> None:
        sums = list(accumulate(weights))
        self._weights = weights
        self._sums = sums
        self._median = self._candidates[bisect_left(sums, sums[-1] / 2)]

    def _probability_within(self, ratio: float) -> float:
        """Return the probability of candidates within a *ratio* of the median."""
        first = bisect_left(self._candidates, self._median / ratio)
        last = bisect_left(self._candidates, self._median * ratio)
        return sum(self._weights[first:last]) / self._sums[-1]
