"""Sequential decisions, made between runs, on whether a candidate's performance has changed.

Results are looked at after fixed numbers of runs.  Each look gets an equal part of the allowed
probability of a wrong decision.  So the probability for all looks together is limited, although
looks are not independent (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from zodbshootout.results.probabilities import t_quantile
from zodbshootout.results.verdicts import Ratio

LOOKS = (8, 16, 32, 64, 128, 256, 512)
"""The numbers of runs after which results are looked at."""
_BOUNDARY_OF_NONE = 1.0
"""The boundary if the logarithm of the ratio is infinite, because a cost is 0 on one side."""


@dataclass(frozen=True)
class Rule:
    """A rule that decides on which side of a boundary a ratio is."""

    error: float
    """The maximum probability of a wrong decision."""
    boundary: float | None = None
    """The logarithm of the ratio at the boundary.  If ``None``, the boundary is halfway between 1
    and the measured ratio, so that :meth:`is_changed` cannot return ``False``."""
    looks: Sequence[int] = LOOKS

    def is_changed(self, ratio: Ratio) -> bool | None:
        """Return whether the boundary lies between 1 and a ratio; ``None`` if undecided.

        Call this only once per look.
        """
        if not ratio.is_known:
            return None
        boundary = boundary_for(ratio) if self.boundary is None else self.boundary
        distance = math.copysign(1.0, boundary) * (ratio.log.mean - boundary)
        if abs(distance) <= self._half_width(ratio):
            return None
        return distance > 0

    def next_look(self, runs: int) -> int:
        """Return the number of runs at the first look after *runs*, 0 if there is no such look."""
        return next((look for look in self.looks if look > runs), 0)

    def _half_width(self, ratio: Ratio) -> float:
        if not ratio.log.variance:
            return 0.0
        quantile = t_quantile(ratio.log.df, self.error / len(self.looks))
        return quantile * math.sqrt(ratio.log.variance)


def boundary_for(ratio: Ratio) -> float:
    """Return half of the logarithm of *ratio*.

    If the logarithm is infinite, the result is 1 or -1, with the sign of the logarithm.
    """
    half = ratio.log.mean / 2
    return math.copysign(_BOUNDARY_OF_NONE, half) if math.isinf(half) else half
