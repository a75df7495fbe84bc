"""Estimates of means from a few independent numbers, and their confidence intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from zodbshootout.results.probabilities import t_quantile, t_tail

CONFIDENCE = 0.95
"""The fraction of intervals that contain the true mean."""
BATCHES = 8
"""The number of batches into which dependent runs are joined."""
MIN_RUNS = 3
"""The size of the smallest sample that has an interval.  From two numbers, the interval
is too wide to be of use or, if they happen to be equal, has no width."""


@dataclass(frozen=True)
class Estimate:
    """An estimate of a mean from normally distributed numbers."""

    mean: float
    variance: float
    """The square of the standard error of the mean."""
    df: float
    """The degrees of freedom; 0 if there are fewer than :data:`MIN_RUNS` numbers."""

    @property
    def half_width(self) -> float:
        if self.df <= 0:
            return math.inf
        return _quantile(self.df) * math.sqrt(self.variance)

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the confidence interval, by Student's t; see :data:`CONFIDENCE`."""
        return self.mean - self.half_width, self.mean + self.half_width

    @property
    def p_value(self) -> float:
        """The probability of a mean at least as far from 0 as this mean, if the true mean is 0."""
        if self.df <= 0:
            return 1.0
        if not self.variance:
            return 0.0 if self.mean else 1.0
        return 2 * t_tail(self.df, abs(self.mean) / math.sqrt(self.variance))

    def __sub__(self, other: Estimate) -> Estimate:
        """Return the difference of two independent means (Welch's t-test)."""
        return _sum(self.mean - other.mean, [self, other])


def mean_of(numbers: Sequence[float]) -> Estimate:
    """Estimate the mean from independent numbers."""
    count = len(numbers)
    variance = _squared_deviations(numbers) / (count - 1) / count if count > 1 else 0.0
    return Estimate(statistics.fmean(numbers), variance, count - 1 if count >= MIN_RUNS else 0)


def mean_of_runs(runs: Sequence[Sequence[float]]) -> Estimate:
    """Estimate the mean from *runs*, each with one value or several.

    The values of a run are not independent, so a run counts as one number, the mean of the values.
    By chance, the means of a few runs may lie closer together than the spread of the values
    suggests.  So the interval is at least as wide as it would be for independent values.
    """
    estimate = mean_of([statistics.fmean(values) for values in runs])
    several = [values for values in runs if len(values) > 1]
    if not several or estimate.df <= 0:
        return estimate
    spread = sum(map(_squared_deviations, several)) / sum(len(values) - 1 for values in several)
    variance = spread * sum(1 / len(values) for values in runs) / len(runs) ** 2
    if variance > estimate.variance:
        independent = Estimate(estimate.mean, variance, sum(map(len, runs)) - 1)
        floor = (independent.half_width / _quantile(estimate.df)) ** 2
        return replace(estimate, variance=max(estimate.variance, floor))
    return estimate


def joined(runs: Sequence[Sequence[float]], number: int = BATCHES) -> list[list[float]]:
    """Join successive dependent *runs* into batches that are nearly independent."""
    ends = [round(end * len(runs) / number) for end in range(number + 1)]
    batches = [runs[start:end] for start, end in pairwise(ends)]
    return [[value for values in batch for value in values] for batch in batches if batch]


def mean_of_estimates(estimates: Sequence[Estimate]) -> Estimate:
    """Return the mean of independent *estimates* with equal weights."""
    count = len(estimates)
    parts = [
        replace(estimate, mean=estimate.mean / count, variance=estimate.variance / count**2)
        for estimate in estimates
    ]
    return _sum(sum(part.mean for part in parts), parts)


def runs_needed(estimate: Estimate, runs: int, half_width: float) -> int:
    """Predict how many runs narrow an interval to *half_width*.

    *runs* is the number of runs behind *estimate*; later runs are assumed to vary like them.  The
    result is at least *runs* and :data:`MIN_RUNS`.
    """
    if estimate.df <= 0:
        return max(runs, MIN_RUNS)
    needed = runs
    while _projected_half_width(estimate, runs, needed) > half_width:
        needed = max(needed + 1, math.ceil(needed * 1.02))
    return needed


def _projected_half_width(estimate: Estimate, runs: int, needed: int) -> float:
    df = estimate.df * (needed - 1) / (runs - 1)
    return _quantile(df) * math.sqrt(estimate.variance * runs / needed)


def _squared_deviations(numbers: Sequence[float]) -> float:
    mean = statistics.fmean(numbers)
    return math.fsum((number - mean) ** 2 for number in numbers)


def _sum(mean: float, parts: Sequence[Estimate]) -> Estimate:
    """Return an estimate with the sum of the *parts*' variances (Welch and Satterthwaite)."""
    variance = sum(part.variance for part in parts)
    df = min(part.df for part in parts)
    if df > 0 and variance:
        df = variance**2 / sum(part.variance**2 / part.df for part in parts)
    return Estimate(mean, variance, df)


def _quantile(df: float) -> float:
    """Return the number of standard errors in the half width of an interval."""
    return t_quantile(df, (1 - CONFIDENCE) / 2)
