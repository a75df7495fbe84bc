"""How often a comparison says that equal contenders differ, and misses that one is slower.

It takes thousands of comparisons, so the runs are simulated, with the shapes of recorded ones:
``tests/compare/data/rounds.json`` holds the rounds of nine runs of the command on a shared machine
with two CPUs, in which ZEO and RelStorage on SQLite were there twice each.  For each benchmark of
each of the two it has the pairs of values of each round, as logarithms, from the mean of that run.

A simulated round is a recorded one, drawn at random: its pairs are drawn from those of that one,
with replacement, and which of the twins is which is left to chance, so that none is faster.  Thus
values are as skewed and have the outliers that real ones have, rounds differ as much as they did,
and contenders of a round have as much in common.  How far a recorded round is from the mean of its
run is stretched by the square root of 3/2, for that mean is of three rounds, of which it is one.
Over the rounds of a row the machine drifts, a random walk of 1 % a round, which both contenders of
a row have in common.

A row takes rounds until the intervals are narrow enough, by the rule of the command.  Verdicts and
intervals are computed by the command's own code.
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from benchmarks.figure import Figure, at_least, at_most, between, info
from zodbshootout.results.comparison import Ratio, Verdict, verdicts
from zodbshootout.results.estimate import CONFIDENCE, Estimate, mean_of_runs

RECORDED = Path(__file__).parents[1] / "tests" / "results" / "data" / "rounds.json"
COMPARISONS = 2000
SLOWER = 1.05
"""How much longer the slower contender takes."""
FEWEST = 4
"""Rounds of a row at least, as the command has it by default."""
DRIFT = 0.01
STRETCH = math.sqrt(3 / 2)
DIFFERENT = (Verdict.FASTER, Verdict.SLOWER)

Round = Sequence[tuple[float, float]]
"""The logarithms of the values of two that are equally fast, in pairs."""


@dataclass(frozen=True)
class Shape:
    """The recorded rounds of one benchmark of one storage."""

    runs: Sequence[Sequence[Round]]
    """The rounds of each recorded run."""

    @cached_property
    def rounds(self) -> list[Round]:
        """Return all rounds, as far apart as those of one run are from the true mean."""
        all_rounds: list[Round] = []
        for run in self.runs:
            levels = [
                statistics.fmean(logarithm for pair in pairs for logarithm in pair) for pairs in run
            ]
            for pairs, level in zip(run, levels, strict=True):
                more = (STRETCH - 1) * (level - statistics.fmean(levels))
                all_rounds.append([(first + more, second + more) for first, second in pairs])
        return all_rounds

    @cached_property
    def truth(self) -> float:
        """Return the mean of a value where the machine does not drift."""
        return statistics.fmean(
            statistics.fmean(math.exp(logarithm) for pair in pairs for logarithm in pair)
            for pairs in self.rounds
        )


@dataclass
class Row:
    """Rounds of two contenders, of which the second takes *slower* times as long."""

    shape: Shape
    chance: random.Random
    slower: float = 1.0
    drift: float = DRIFT
    logs: list[list[float]] = field(default_factory=list)
    """For each pair of each round, the logarithm of how many times as fast the second was."""
    values: tuple[list[list[float]], list[list[float]]] = field(default_factory=lambda: ([], []))
    """For each round, the values of either."""
    _level: float = 0.0

    def measure(self, precision: float, most: int) -> bool:
        """Make rounds until all is known within *precision*, or *most*; say whether it is."""
        while len(self.logs) < most:
            self._make_round()
            if len(self.logs) >= FEWEST and self._is_known(precision):
                return True
        return False

    @property
    def ratio(self) -> Ratio:
        """Return how many times as fast the second is as the first."""
        return Ratio(mean_of_runs(self.logs), paired=True)

    def own(self, which: int) -> Estimate:
        """Return the mean of the values of a contender."""
        return mean_of_runs(self.values[which])

    def _is_known(self, precision: float) -> bool:
        if self.ratio.log.half_width > precision:
            return False
        return all(self.own(side).half_width <= precision * self.own(side).mean for side in (0, 1))

    def _make_round(self) -> None:
        recorded = self.chance.choice(self.shape.rounds)
        pairs = self.chance.choices(recorded, k=len(recorded))
        if self.chance.random() < 1 / 2:
            pairs = [(second, first) for first, second in pairs]
        self._level += self.chance.gauss(0, self.drift)
        self.logs.append([a - b - math.log(self.slower) for a, b in pairs])
        for which, slower in enumerate((1.0, self.slower)):
            values = [slower * math.exp(pair[which] + self._level) for pair in pairs]
            self.values[which].append(values)


def shapes() -> dict[str, list[Shape]]:
    """Return the shapes of all benchmarks, by their storage."""
    by_storage: dict[str, list[Shape]] = {}
    for name, runs in json.loads(RECORDED.read_text(encoding="utf-8")).items():
        by_storage.setdefault(name.split()[0], []).append(Shape(runs))
    return by_storage


def measure(*, quick: bool) -> Iterator[Figure]:
    """Yield the error rates of simulated comparisons, seven benchmarks each."""
    comparisons = COMPARISONS // 20 if quick else COMPARISONS
    chance = random.Random(1)  # noqa: S311
    yield from _equal(comparisons, chance)
    yield from _slower(comparisons // 10, chance)
    yield from _covered(comparisons, chance, 0.025 if quick else 0.01)


def _equal(comparisons: int, chance: random.Random) -> Iterator[Figure]:
    """Compare what does not differ, with the precision and about the time of a default run."""
    called, any_called, cells = 0, 0, 0
    for storage in _alternating(comparisons):
        rows = [Row(shape, chance) for shape in storage]
        for row in rows:
            row.measure(0.05, 12)
        different = sum(verdict in DIFFERENT for verdict in verdicts([row.ratio for row in rows]))
        called += different
        any_called += bool(different)
        cells += len(rows)
    yield at_most("error_rates: equal, called different", called / cells, 0.01, "{:.2%}")
    yield info("error_rates: comparisons with such a cell", any_called / comparisons, "{:.2%}")


def _slower(comparisons: int, chance: random.Random) -> Iterator[Figure]:
    """Compare what is 5 % slower; count what got to the precision of 2 % in 400 rounds."""
    detected, known, wrong, cells, rounds = 0, 0, 0, 0, []
    for storage in _alternating(comparisons):
        rows = [Row(shape, chance, SLOWER) for shape in storage]
        reached = [row.measure(0.02, 400) for row in rows]
        judged = verdicts([row.ratio for row in rows])
        for row, verdict, precise in zip(rows, judged, reached, strict=True):
            cells += 1
            wrong += verdict is Verdict.FASTER
            known += precise
            detected += precise and verdict is Verdict.SLOWER
            rounds.append(len(row.logs))
    yield at_least("error_rates: 5 % slower, found", detected / known, 0.95, "{:.1%}")
    yield info("error_rates: 5 % slower, called faster", wrong / cells, "{:.2%}")
    yield info("error_rates: known within 2 %", known / cells, "{:.0%}")
    yield info("error_rates: median of the rounds", statistics.median(rounds), "{:.0f}")


def _covered(comparisons: int, chance: random.Random, tolerance: float) -> Iterator[Figure]:
    """Count how often the truth is in the intervals.

    The standard error of these figures is 1.2 % for the 350 cells of a quick run, and 0.3 % else.
    """
    ratios, stopped, figures, cells = 0, 0, 0, 0
    for storage in _alternating(comparisons // 2):
        for shape in storage:
            cells += 1
            fixed = Row(shape, chance, SLOWER, drift=0.0)
            fixed.measure(0.0, 10)
            ratios += _contains(fixed.ratio.log, -math.log(SLOWER))
            figures += _contains(fixed.own(0), shape.truth)
            row = Row(shape, chance, SLOWER)
            row.measure(0.05, 12)
            stopped += _contains(row.ratio.log, -math.log(SLOWER))
    form, low, high = "{:.1%}", CONFIDENCE - tolerance, CONFIDENCE + tolerance
    yield between("error_rates: ratio in its interval", ratios / cells, low, high, form)
    yield between("error_rates: the same at 5 % precision", stopped / cells, low, high, form)
    yield between("error_rates: figure in its interval", figures / cells, low, high, form)


def _contains(estimate: Estimate, truth: float) -> bool:
    low, high = estimate.interval
    return low <= truth <= high


def _alternating(comparisons: int) -> Iterator[list[Shape]]:
    """Return the benchmarks of one storage after the other."""
    storages = list(shapes().values())
    for number in range(comparisons):
        yield storages[number % len(storages)]
