"""Simulated releases: how often equal ones seem to differ, and how often steps are found.

A run has the seven benchmarks of a storage in six releases.  A slice is a recorded pair; each
release is as far from the pair's middle as one value of another pair of the same round, so that any
two releases differ as twins did.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyperf

from benchmarks.line import Line, at_least, at_most, info
from zodbshootout.model.specification import BenchmarkWords, CrewShape, Parameters
from zodbshootout.model.titles import RELEASE, Release
from zodbshootout.results.cell import Cell
from zodbshootout.results.result import CellResult
from zodbshootout.results.series import Step, steps_of

if TYPE_CHECKING:
    from benchmarks.error_rates import Shape

RELEASES = 6
STEP = 3
"""The number of the first release that differs from the one before it."""
SLOWER = 1.05
KNOWN = 0.02
"""The half width of intervals in which a step of 5 % must be found."""
ROUNDS = (8, 400)
"""The number of rounds of equal releases, and the maximum number of others."""


@dataclass
class Released:
    """The rounds of a benchmark in several releases."""

    shape: Shape
    chance: random.Random
    benchmark: str
    slower: float = 1.0
    """The time from release :data:`STEP` on, as a multiple of the time before."""
    rounds: list[list[list[float]]] = field(default_factory=list)
    """The values of each release, by round."""

    def measure(self, rounds: int) -> None:
        """Make a number of rounds."""
        self.rounds += [self._round() for _ in range(rounds)]

    def _round(self) -> list[list[float]]:
        pairs = self.chance.choice(self.shape.rounds)
        slices = self.chance.choices(pairs, k=len(pairs))
        values = []
        for release in range(RELEASES):
            logs = [
                statistics.fmean(pair) + self.chance.choice((-1, 1)) * (one - other) / math.sqrt(2)
                for pair, (one, other) in zip(
                    slices, self.chance.choices(pairs, k=len(pairs)), strict=True
                )
            ]
            slower = self.slower if release >= STEP else 1.0
            values.append([slower * math.exp(log) for log in logs])
        return values

    def results(self) -> Iterator[CellResult]:
        """Yield the results of all releases; the last is installed."""
        for release in range(RELEASES):
            is_last = release == RELEASES - 1
            variant = {} if is_last else {RELEASE: Release("it", str(release))}
            runs = [
                pyperf.Run(
                    values[release],
                    metadata={
                        "round": f"r-{number}",
                        "slices": " ".join(map(str, range(len(values[release])))),
                        "version_it": str(release),
                    },
                    collect_metadata=False,
                )
                for number, values in enumerate(self.rounds)
            ]
            words = BenchmarkWords(self.benchmark)
            cell = Cell(self.benchmark, "a", Parameters(CrewShape(1)), words, variant)
            yield CellResult(cell, runs=tuple(runs))


def figures(storages: Sequence[Sequence[Shape]], runs: int) -> Iterator[Line]:
    """Yield how often equal releases are called different, and how often a step is found."""
    chance = random.Random(4)  # noqa: S311
    called, any_called = [], 0
    for number in range(runs):
        steps = _steps(_released(storages[number % len(storages)], chance))
        called += [step.change.is_significant for step in steps]
        any_called += any(step.change.is_significant for step in steps)
    share = statistics.fmean(called)
    yield at_most("error_rates: equal releases, called different", share, 0.01, "{:.2%}")
    yield info("error_rates: runs with such a release", any_called / runs, "{:.2%}")
    detected, elsewhere = [], []
    for number in range(max(2, runs // 20)):
        released = _released(storages[number % len(storages)], chance, SLOWER)
        for step in _known(released):
            if step.since == str(STEP):
                detected.append(step.change.is_significant and step.change.ratio.value < 1)
            else:
                elsewhere.append(step.change.is_significant)
    share = statistics.fmean(detected)
    yield at_least("error_rates: release 5 % slower, found", share, 0.95, "{:.1%}")
    share = statistics.fmean(elsewhere)
    yield at_most("error_rates: found at another release", share, 0.01, "{:.2%}")


def _released(
    storage: Sequence[Shape], chance: random.Random, slower: float = 1.0
) -> list[Released]:
    released = [Released(shape, chance, str(n), slower) for n, shape in enumerate(storage)]
    for one in released:
        one.measure(ROUNDS[0])
    return released


def _steps(released: Sequence[Released]) -> list[Step]:
    return steps_of([result for one in released for result in one.results()])


def _known(released: Sequence[Released]) -> list[Step]:
    """Measure until changes are known within :data:`KNOWN`; return those that are known."""
    while True:
        steps = _steps(released)
        vague = {
            step.change.new.cell.benchmark
            for step in steps
            if step.change.ratio.log.half_width > KNOWN
        }
        more = [one for one in released if one.benchmark in vague and len(one.rounds) < ROUNDS[1]]
        if not more:
            return [one for one in steps if one.change.new.cell.benchmark not in vague]
        for one in more:
            one.measure(len(one.rounds))
