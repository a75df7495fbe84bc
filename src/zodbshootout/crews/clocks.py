"""How far the clock of another host is ahead of the one here."""

from __future__ import annotations

from dataclasses import dataclass

DRIFT = 1e-3
"""By how much of the time two clocks may drift apart: NTP has them run up to 0.05 % faster."""


@dataclass(frozen=True)
class Offset:
    """How far another clock is ahead of the one that is read here."""

    at: float
    """When that was found, in seconds of the clock here."""
    seconds: float
    uncertainty: float
    """Half of the round trip in which it was found: it is off by no more."""

    def uncertainty_at(self, time: float) -> float:
        """Return by how much it may be off at some *time* of the clock here."""
        return self.uncertainty + DRIFT * abs(time - self.at)

    def contradicts(self, other: Offset) -> bool:
        """Say whether both cannot be true of clocks that only drift."""
        drift = DRIFT * abs(self.at - other.at)
        return abs(self.seconds - other.seconds) > self.uncertainty + other.uncertainty + drift
