"""How well a mean is known: estimates from few independent numbers, and their intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

CONFIDENCE = 0.95
"""The part of all intervals that cover the truth."""


@dataclass(frozen=True)
class Estimate:
    """A mean that was estimated from normally distributed numbers."""

    mean: float
    variance: float
    """The square of the standard error of the mean."""
    df: float
    """The degrees of freedom of that; 0 where one number cannot tell how numbers vary."""
    variance_floor: float = 0.0
    """What that is at least, as far as the values within runs tell; see :func:`mean_of_runs`."""

    @property
    def half_width(self) -> float:
        """Return half of the width of the interval of :data:`CONFIDENCE`, by Student's t."""
        if self.df <= 0:
            return math.inf
        return _quantile(self.df, (1 + CONFIDENCE) / 2) * math.sqrt(self.variance)

    @property
    def interval(self) -> tuple[float, float]:
        """Return the ends of the interval."""
        return self.mean - self.half_width, self.mean + self.half_width

    @property
    def p_value(self) -> float:
        """Return how probable a mean so far from 0 is, or one farther, where the true one is 0."""
        if self.df <= 0:
            return 1.0
        variance = max(self.variance, self.variance_floor)
        if not variance:
            return 0.0 if self.mean else 1.0
        from scipy.special import stdtr

        return float(2 * stdtr(self.df, -abs(self.mean) / math.sqrt(variance)))

    def __sub__(self, other: Estimate) -> Estimate:
        """Return the difference of two independent means (Welch's t-test)."""
        return _sum(self.mean - other.mean, [self, other])


def mean_of(numbers: Sequence[float]) -> Estimate:
    """Return what independent *numbers* tell of their mean."""
    count = len(numbers)
    variance = _squares(numbers) / (count - 1) / count if count > 1 else 0.0
    return Estimate(statistics.fmean(numbers), variance, count - 1)


def mean_of_runs(runs: Sequence[Sequence[float]]) -> Estimate:
    """Return what *runs* tell of the mean, each of which has one value or several.

    A run counts as one number, the mean of its values, for the values of a run have much in common.
    But few runs can be alike by chance, more than the spread of their own values allows: the means
    of runs vary at least as if all values were independent.
    """
    found = mean_of([statistics.fmean(values) for values in runs])
    several = [values for values in runs if len(values) > 1]
    if not several:
        return found
    spread = sum(map(_squares, several)) / sum(len(values) - 1 for values in several)
    return replace(
        found, variance_floor=spread * sum(1 / len(values) for values in runs) / len(runs) ** 2
    )


def mean_of_estimates(estimates: Sequence[Estimate]) -> Estimate:
    """Return the mean of independent *estimates*, each of as much weight as the others."""
    count = len(estimates)
    parts = [
        Estimate(
            each.mean / count, each.variance / count**2, each.df, each.variance_floor / count**2
        )
        for each in estimates
    ]
    return _sum(sum(part.mean for part in parts), parts)


def runs_needed(estimate: Estimate, runs: int, half_width: float) -> int:
    """Return how many runs, about, an interval of *half_width* takes, where *runs* gave this one.

    More of them vary as these did.  It is never less than *runs*, and 2 where there was one.
    """
    if estimate.df <= 0 or runs == 1:
        return 2
    needed = runs
    while _projected(estimate, runs, needed) > half_width:
        needed = max(needed + 1, math.ceil(needed * 1.02))
    return needed


def _projected(estimate: Estimate, runs: int, needed: int) -> float:
    """Return the half width with *needed* runs in place of *runs*."""
    df = estimate.df * (needed - 1) / (runs - 1)
    return _quantile(df, (1 + CONFIDENCE) / 2) * math.sqrt(estimate.variance * runs / needed)


def _squares(numbers: Sequence[float]) -> float:
    """Return the sum of the squares of how far *numbers* are from their mean."""
    mean = statistics.fmean(numbers)
    return math.fsum((each - mean) ** 2 for each in numbers)


def _sum(mean: float, parts: Sequence[Estimate]) -> Estimate:
    """Return an estimate whose variance is the sum of those of its parts.

    Its degrees of freedom are those of Welch and Satterthwaite.
    """
    variance = sum(part.variance for part in parts)
    variance_floor = sum(part.variance_floor for part in parts)
    if any(part.df <= 0 for part in parts):
        return Estimate(mean, variance, 0, variance_floor)
    if not variance:
        return Estimate(mean, 0.0, min(part.df for part in parts), variance_floor)
    df = variance**2 / sum(part.variance**2 / part.df for part in parts)
    return Estimate(mean, variance, df, variance_floor)


def _quantile(df: float, probability: float) -> float:
    from scipy.special import stdtrit  # imports for a third of a second

    return float(stdtrit(df, probability))
