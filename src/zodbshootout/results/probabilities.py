"""Student's t distribution, and the correction of the p-values of several tests.

Libraries with these functions are a hundred times as large as this package, so only the tests use
such a library.  "DLMF" is the Digital Library of Mathematical Functions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from statistics import NormalDist

_PRECISION = 1e-14
_LAST_STEP = 1e-8
"""Newton's method stops after a step of at most this size.  The remaining error is about the square
of the step."""
_GAMMA_LIMIT = 300
"""The largest df for which :func:`math.gamma` is used; above it, a series is exact.  From a df of
343 on, :func:`math.gamma` would overflow."""
_NEWTON_LIMIT = 1e5
"""The largest df for Newton's method.  Above it, the expansion in :func:`t_quantile` is exact, but
the method may never stop, because rounding errors of :func:`t_tail` keep steps too large."""


def t_tail(df: float, t: float) -> float:
    """Return the probability that Student's t exceeds *t*, which is 0 or more.

    If *df* is infinite, the distribution is normal.  Otherwise, the probability is half of the
    regularized incomplete beta function of ``df / (df + t**2)`` with the parameters ``df / 2`` and
    one half (DLMF 8.17).
    """
    if math.isinf(df) or math.isinf(t):
        return math.erfc(t / math.sqrt(2)) / 2
    share = df / (df + t * t)
    if share >= (df + 2) / (df + 5):  # the fraction below would converge slowly
        return 0.5 - t * _density(df, t) * _fraction(0.5, df / 2, t * t / (df + t * t))
    return t * _density(df, t) / df * _fraction(df / 2, 0.5, share)


@functools.lru_cache(maxsize=4096)
def t_quantile(df: float, tail: float) -> float:
    """Return the t that is exceeded with the probability *tail*.

    *tail* is between 0 and one half.  The logarithm of *tail* is a concave function of the
    logarithm of t, so Newton's method converges from any start.  The start is the quantile of the
    normal distribution.  For many degrees of freedom, t is expanded around the start (Abramowitz
    and Stegun 26.7.5).
    """
    z = t = -NormalDist().inv_cdf(tail)
    if df > _NEWTON_LIMIT:
        return z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df * df)
    step = math.inf
    while abs(step) > _LAST_STEP:
        exceeded = t_tail(df, t)
        step = math.log(exceeded / tail) * exceeded / (t * _density(df, t))
        t *= math.exp(step)
    return t


def _density(df: float, t: float) -> float:
    return _gamma_ratio(df) / math.sqrt(math.pi) * math.exp(-(df + 1) / 2 * math.log1p(t * t / df))


@functools.lru_cache(maxsize=4096)
def _gamma_ratio(df: float) -> float:
    """Return Gamma((df + 1) / 2) / Gamma(df / 2) / sqrt(df)."""
    if df <= _GAMMA_LIMIT:
        return math.gamma((df + 1) / 2) / math.gamma(df / 2) / math.sqrt(df)
    inverse = 1 / df
    return math.sqrt(0.5) * (1 - inverse / 4 + inverse**2 / 32 + 5 * inverse**3 / 128)


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function (DLMF 8.17.22).

    The method of Lentz multiplies the ratios of successive convergents.
    """
    numerator, denominator = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = denominator
    m = 0
    while abs(numerator * denominator - 1) > _PRECISION:
        m += 1
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for coefficient in (even, odd):
            numerator = 1 + coefficient / numerator
            denominator = 1 / (1 + coefficient * denominator)
            value *= numerator * denominator
    return value


def corrected(p_values: Sequence[float], level: float) -> list[float]:
    """Correct the p-values of several tests, but only if one is at most *level*.

    The correction only raises p-values.  It limits the false discovery rate (Benjamini and
    Hochberg, Journal of the Royal Statistical Society B 57, 1995).
    """
    if min(p_values, default=1.0) > level:
        return list(p_values)
    count, smallest = len(p_values), 1.0
    result = [1.0] * count
    ascending = sorted(range(count), key=p_values.__getitem__)
    for rank in range(count, 0, -1):
        place = ascending[rank - 1]
        smallest = min(smallest, p_values[place] * count / rank)
        result[place] = smallest
    return result
