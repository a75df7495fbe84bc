"""Stop rules: how many runs are wanted.

A :class:`StopRule` says how many rounds a row is to have, and so how many runs each of its cells.
A :class:`Succession` says how many runs the same workers make, one after another, in a round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol

from zodbshootout.results.result import CellResult
from zodbshootout.results.sides import rounds_needed
from zodbshootout.results.trend import with_trends
from zodbshootout.scheduling.calibration import C
from zodbshootout.workers.measuring import Slice


class StopRule(Protocol):
    """Says how many runs a row's cells are to have."""

    def wanted(self, results: Sequence[CellResult]) -> int:
        """Return how many runs, in all, each cell is to have if the cells' results are these."""


@dataclass(frozen=True)
class Fixed:
    """A given number of runs."""

    runs: int

    def wanted(self, results: Sequence[CellResult]) -> int:  # noqa: ARG002
        return self.runs


@dataclass(frozen=True)
class Precise:
    """As many runs as a precision needs, according to the runs so far.

    Cells that get slower with time are ignored, because their figures never become precise.
    """

    precision: float
    """The half width of each confidence interval, as a fraction of the figure."""
    fewest: int
    """The number of runs if no result says how many are needed."""
    baseline: str | None
    level: float
    """The probability with which the test for trends may err, each time that it is made."""

    def wanted(self, results: Sequence[CellResult]) -> int:
        known = with_trends(results, self.level)
        sound = [result for result in known if result.measured and not result.gets_slower]
        return rounds_needed(sound, self.baseline, self.precision) if sound else self.fewest


class Succession(Generic[C]):
    """The successive runs of the same workers in a round; unless derived, a single run.

    Its methods may raise :class:`~zodbshootout.model.outcome.Failed`, except :meth:`is_last` and
    :meth:`labelled`.
    """

    is_whole_only = False
    """Whether its runs are of use only together."""

    def __init__(self) -> None:
        self.made = 0
        """The number of runs so far."""
        self.has_ended = False

    @property
    def rounds(self) -> int:
        """The number of runs so far that count as rounds of their own."""
        return 0

    @property
    def stage(self) -> str:
        """The current run, as the observer shows it; empty if that is the round's affair."""
        return ""

    @property
    def elapsed(self) -> float:
        """Seconds since the first run began, if there is a given time."""
        return 0.0

    def wanted(self) -> int:
        """Return how many runs are wanted, according to what is known now."""
        return 1

    def begin(self, key: C) -> None:
        """Do what comes before the first run of *key*."""

    def prepared(self, key: C) -> None:
        """Do what comes between the preparation of slices and the first of them."""

    def goes_on(self, taken: Sequence[Slice]) -> bool:
        """Return whether the latest value needs another slice; *taken* are the latest ones."""
        return taken[-1].goes_on

    def is_last(self) -> bool:
        """Count a run that has had all its slices; return whether it is the last one."""
        self.made += 1
        self.has_ended = self.made >= self.wanted()
        return self.has_ended

    def labelled(self, key: C, run: Any) -> C:  # noqa: ARG002
        """Add facts to the metadata of a finished *run*; return the key to which it belongs."""
        return key


class Lasting(Succession[C]):
    """As many runs as a given time allows, each a round of its own."""

    def __init__(self, duration: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Make runs for *duration* seconds, from the beginning of the first run on."""
        super().__init__()
        self._duration, self._clock = duration, clock
        self._began = clock()

    @property
    def rounds(self) -> int:
        return self.made

    @property
    def stage(self) -> str:
        return f"run {self.made + 1}"

    @property
    def elapsed(self) -> float:
        return self._clock() - self._began

    def begin(self, key: C) -> None:  # noqa: ARG002
        self._began = self._clock()

    def wanted(self) -> int:
        """Want another run unless the time left is below half an average run."""
        is_over = self.elapsed * (1 + 1 / (2 * max(1, self.made))) >= self._duration
        return self.made if is_over else self.made + 1
