"""Ratios of figures: their values, intervals and verdicts, and how they are written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from zodbshootout.results.estimate import Estimate, runs_needed
from zodbshootout.results.probabilities import corrected

FALSE_CALLS = 0.01
"""The false discovery rate: the share of chance findings among cells called faster or slower.

If no cells differ, this is the probability that a comparison calls at least one cell different.
"""
MAX_WIDTH = math.log(1.1)
"""The largest half width of a ratio's logarithm for which the verdict may be ``NO_DIFFERENCE``."""


@dataclass(frozen=True)
class Ratio:
    """How many times better a new figure is than its base.

    The ratio is the speed of the new cell as a multiple of the speed of its base or, if less is
    better, the base's amount as a multiple of the new amount.
    """

    log: Estimate
    """The logarithm of the ratio; the inverse ratio's logarithm has the opposite sign."""
    runs: int
    """The number of compared runs of each cell; if the cells' numbers differ, the smaller one."""
    paired: bool = False
    """Whether the cells were measured in turn and compared slice by slice."""
    left_out: int = 0
    """The number of runs of both cells that were not compared, for lack of a counterpart."""

    @property
    def value(self) -> float:
        """The ratio, which is above 1 if the new figure is better."""
        return math.exp(self.log.mean)

    @property
    def is_known(self) -> bool:
        """Whether there are enough runs for an interval."""
        return self.log.df > 0

    @property
    def is_exact(self) -> bool:
        """Whether the ratio has no error, because amounts do not vary from run to run."""
        return math.isinf(self.log.df) and not self.log.variance

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the 95 % confidence interval; 0 and infinity for an unknown interval."""
        low, high = self.log.interval
        return math.exp(low), math.exp(high)

    @property
    def inverse(self) -> Ratio:
        """The speed of the base as a multiple of the speed of the new cell."""
        return replace(self, log=replace(self.log, mean=-self.log.mean))

    def runs_needed(self, half_width: float) -> int:
        """Predict how many runs narrow the logarithm's interval to *half_width*."""
        return runs_needed(self.log, self.runs, half_width)

    @property
    def times(self) -> str:
        """The value with as many decimals as the interval makes meaningful."""
        return f"{self.value:,.{self._decimals}f}"

    @property
    def within(self) -> str:
        """The interval in parentheses, empty if it is unknown."""
        if not self.is_known:
            return ""
        if self.is_exact:
            return "(exactly)"
        low, high = (f"{end:,.{self._decimals}f}" for end in self.interval)
        return f"({low} to {high})"

    @property
    def _decimals(self) -> int:
        low, high = self.interval
        half_width = (high - low) / 2
        return min(3, max(1, -math.floor(math.log10(half_width)))) if half_width > 0 else 2


class Verdict(Enum):
    """The outcome of a comparison."""

    SLOWER = "slower"
    FASTER = "faster"
    NO_DIFFERENCE = "no significant difference"
    UNDECIDED = "undecided"


SIGNIFICANT = frozenset({Verdict.SLOWER, Verdict.FASTER})


def verdicts(ratios: Sequence[Ratio]) -> list[Verdict]:
    """Return the verdicts of Student's t-test, corrected for the number of comparisons."""
    p_values = corrected([ratio.log.p_value for ratio in ratios], FALSE_CALLS)
    return [_verdict(ratio, p_value) for ratio, p_value in zip(ratios, p_values, strict=True)]


def _verdict(ratio: Ratio, p_value: float) -> Verdict:
    if p_value <= FALSE_CALLS:
        return Verdict.FASTER if ratio.log.mean > 0 else Verdict.SLOWER
    return Verdict.UNDECIDED if ratio.log.half_width > MAX_WIDTH else Verdict.NO_DIFFERENCE


def multiple(value: float) -> str:
    """Return a ratio with two or three significant digits."""
    digits = next((d for d, limit in ((3, 0.0995), (2, 9.995), (1, 99.95)) if value < limit), 0)
    return f"{value:,.{digits}f}"
