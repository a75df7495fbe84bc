"""Slow drift over many points: a scan for the place where the level of a series changes.

The scan detects what no single point shows.  Its threshold comes from simulated points, which are
independent.  Dependent points exceed it more often, so the scan gives hints, not verdicts.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

FALSE_HINTS = 0.01
"""The probability that a scan of several series gives a hint although no series changes."""
FEWEST_POINTS = 8
LATEST = 100
"""A scan covers the latest points, at most this many."""
FEWEST_ON_A_SIDE = 2
_SIMULATED = 20_000


@dataclass(frozen=True)
class Drift:
    """A change of the level of a series."""

    start: int
    """The number of the first point after the change, from 0 on."""
    difference: float
    """The mean after the change minus the mean before the change."""


def drift_of(series: Sequence[float], scanned: int = 1) -> Drift | None:
    """Return the change of the mean of a series, ``None`` if there is no change.

    *scanned* is the number of series that are scanned together; see :data:`FALSE_HINTS`.
    """
    import numpy as np

    earlier, series = series[:-LATEST], series[-LATEST:]
    count = len(series)
    if count < FEWEST_POINTS:
        return None
    numbers = np.asarray(series, dtype=float)[None, :]
    statistics = _statistics(numbers)[0]
    place = int(np.argmax(statistics))
    if statistics[place] <= _threshold(count, scanned):
        return None
    start = place + FEWEST_ON_A_SIDE
    difference = float(numbers[0, start:].mean() - numbers[0, :start].mean())
    return Drift(len(earlier) + start, difference) if math.isfinite(difference) else None


def _statistics(numbers: Any) -> Any:
    """Split each row at each place, and return Student's t of the two parts."""
    import numpy as np

    count = numbers.shape[1]
    centred = numbers - numbers.mean(axis=1, keepdims=True)
    before = np.arange(FEWEST_ON_A_SIDE, count - FEWEST_ON_A_SIDE + 1)
    sums = np.cumsum(centred, axis=1)[:, before - 1]
    between = sums**2 * count / (before * (count - before))
    total = (centred**2).sum(axis=1, keepdims=True)
    within = np.maximum(total - between, 1e-12 * total + 1e-300)
    return np.sqrt(between / within * (count - 2))


@functools.cache
def _threshold(count: int, scanned: int) -> float:
    """Return the threshold of t for *scanned* series, each of *count* independent points."""
    import numpy as np

    chance = np.random.default_rng(1)
    maxima = _statistics(chance.standard_normal((_SIMULATED, count))).max(axis=1)
    return float(np.quantile(maxima, 1 - FALSE_HINTS / scanned))
