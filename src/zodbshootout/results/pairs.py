"""The ratio of two contenders, from pairs of slices that they took in turn.

There are two estimates of the ratio in a run.  The ratio of the means is that of the figures: it
contains everything that happened, including every burst of the machine's other work that struck one
slice of a pair.  The middle half of the pairs' ratios contains no such burst, so it varies less:
half as much for short reads of equal contenders on a shared machine of two processors.  It varies
as much if slices are long, because bursts are then part of each of them; runs of few pairs, which
have long slices, count with all their ratios.  The middle half would also leave out the stalls of a
storage that stalls now and then.

A burst strikes either slice of a pair by chance, while a stall always strikes the same contender.
So the middle half counts as long as chance can explain the difference between the two estimates,
and the means count otherwise.  The test is lenient, since hiding a stall is worse than an inexact
ratio: two stalls of one contender, and none of the other, are enough.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

Pairs = Sequence[tuple[float, float]]
"""The amounts of two contenders in the slices that both of them took in a run."""

TRIMMED = 0.25
"""The fraction of a run's ratios that is left out at either end."""
FEW = 10
"""With fewer pairs than this, none of a run's ratios is left out."""
ONE_SIDED = 1.15
"""The number of standard errors from which a difference is not taken for chance.  If it is chance,
it is larger in one of four comparisons."""


def log_ratios_of(runs: Sequence[Pairs]) -> list[list[float]]:
    """Return the logarithms of the ratios of first to second amounts, for each of several *runs*.

    The mean of a run's numbers is the logarithm of the run's ratio.  They spread as independent
    logarithms do whose mean has the error of that ratio.
    """
    middles = [middle([math.log(one / other) for one, other in pairs]) for pairs in runs]
    if _is_chance(runs, [statistics.fmean(numbers) for numbers in middles]):
        return middles
    return [_of_means(pairs) for pairs in runs]


def middle(numbers: Sequence[float]) -> list[float]:
    """Return numbers with the mean of the middle half of *numbers*, and spread like its error.

    The error is that of Tukey and McLaughlin: the deviation of Winsorized numbers, divided by the
    fraction of the numbers that are in the mean.
    """
    in_order = sorted(numbers)
    left_out = int(TRIMMED * len(numbers)) if len(numbers) >= FEW else 0
    kept = in_order[left_out : len(numbers) - left_out]
    winsorized = [min(max(number, kept[0]), kept[-1]) for number in numbers]
    mean, center = statistics.fmean(kept), statistics.fmean(winsorized)
    fraction = len(kept) / len(numbers)
    return [mean + (number - center) / fraction for number in winsorized]


def of_mean(amounts: Sequence[float]) -> list[float]:
    """Return numbers with the logarithm of the mean of *amounts*, and spread like its error."""
    mean = statistics.fmean(amounts)
    return [math.log(mean) + amount / mean - 1 for amount in amounts]


def _of_means(pairs: Pairs) -> list[float]:
    first, second = (of_mean(amounts) for amounts in zip(*pairs, strict=True))
    return [one - other for one, other in zip(first, second, strict=True)]


def _is_chance(runs: Sequence[Pairs], logs: Sequence[float]) -> bool:
    """Return whether the means may have the ratios with the logarithms *logs*, one for each run.

    If they have, the differences of first amounts and second amounts times the ratio add up to
    nothing but chance.
    """
    differences = []
    for pairs, log in zip(runs, logs, strict=True):
        first, second = (statistics.fmean(amounts) for amounts in zip(*pairs, strict=True))
        ratio = math.exp(log)
        scale = math.sqrt(ratio * first * second)  # so that contenders can change places
        differences += [(one - ratio * other) / scale for one, other in pairs]
    error = math.sqrt(math.fsum(difference**2 for difference in differences))
    return abs(math.fsum(differences)) <= ONE_SIDED * error
