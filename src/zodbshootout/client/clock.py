"""The clock that clients measure with, and on which they agree when to start."""

from __future__ import annotations

import time
from typing import Protocol

SPIN = 0.0003
"""Seconds before an instant from which on the clock is watched, for sleeping is not that exact."""


class Clock(Protocol):
    """Tells the time in seconds; only differences count.

    All clients that start together read the same clock: those on one host that of the system,
    which :func:`time.perf_counter` is for all processes on Linux and macOS.
    """

    def now(self) -> float:
        """Return the time."""

    def wait_until(self, instant: float) -> None:
        """Return at *instant*, or at once where it has passed."""


class SystemClock:
    """The monotonic clock of this host."""

    now = staticmethod(time.perf_counter)

    def wait_until(self, instant: float) -> None:
        """Sleep until shortly before *instant*, and watch the clock from there on."""
        while (left := instant - self.now()) > 0:
            # Others who wait, in this process or for this processor, get their turn meanwhile.
            time.sleep(max(0.0, left - SPIN))
