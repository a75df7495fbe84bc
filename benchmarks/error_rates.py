"""Error rates of comparisons: of equal contenders, and of contenders one of which is slower.

They take thousands of comparisons, so runs are simulated, with the shapes of recorded ones.
``tests/results/data/rounds.json`` contains the rounds of four runs of the command on a shared
machine with two CPUs, one of them beside a load of seven processes, in which ZEO and RelStorage on
SQLite were each measured twice.  For each
benchmark and storage it has each round's pairs of values, as logarithms relative to the run's mean.

A simulated round draws a recorded round at random, and draws its pairs from the recorded ones with
replacement.  The twins of a round are swapped at random, so that neither is faster.  Values are
therefore as skewed as real ones and have similar outliers, rounds differ as much, and a round's
contenders have as much in common.  The distance of a recorded round from the mean of its run is
stretched by the square root of n / (n - 1), because that mean is of the run's n rounds and includes
the round itself.  From round to round the machine drifts, in a random walk of 1 % that both
contenders of a row share.

A row takes rounds until its intervals are narrow enough by the command's own rule.  The command's
own code computes verdicts and intervals.

In a second series, one run in twenty is missing, and one in twenty was repeated after a crash, in
separate slices, when the machine was faster or slower; and in every fifth row the second contender
fails after a random number of rounds.

Equal contenders also have no trend; :mod:`benchmarks.trends` simulates others that have one,
and :mod:`benchmarks.steps` makes releases from the recorded rounds.
"""

from __future__ import annotations

import functools
import json
import math
import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from benchmarks import steps, trends
from benchmarks.line import Line, at_least, at_most, between, info
from benchmarks.trends import result_of, run_of
from zodbshootout.results.changes import ratio_of
from zodbshootout.results.estimate import CONFIDENCE, MIN_RUNS, Estimate, mean_of_runs
from zodbshootout.results.figures import time_of
from zodbshootout.results.pairs import log_ratios_of
from zodbshootout.results.ratios import Ratio, Verdict, verdicts
from zodbshootout.results.result import CellResult
from zodbshootout.results.trend import FALSE_TRENDS, with_trends

RECORDED = Path(__file__).parents[1] / "tests" / "results" / "data" / "rounds.json"
COMPARISONS = 2000
SLOWER = 1.05
"""The time of the slower contender, as a multiple of the other's time."""
FEWEST = 8
"""The minimum number of rounds in a row, which is the command's default."""
DRIFT = 0.01
MISSING = REPEATED = 0.05
"""The probabilities that a run is missing or was repeated; the first three are never missing."""
MEANWHILE = 0.05
"""The standard deviation of the logarithm of the machine's speed when a run is repeated."""
FAILING = 0.2
"""The probability that the second contender fails before the last round."""
KNOWN = 0.025
"""The half width of intervals in which a difference of 5 % must be detected if runs are missing;
that many rows reach 2 % if none is missing."""
DIFFERENT = (Verdict.FASTER, Verdict.SLOWER)

Round = Sequence[tuple[float, float]]
"""Pairs of logarithms of the values of two equally fast contenders."""


@dataclass(frozen=True)
class Shape:
    """The recorded rounds of a benchmark on a storage."""

    runs: Sequence[Sequence[Round]]
    """The rounds of each recorded run."""

    @cached_property
    def rounds(self) -> list[Round]:
        """All rounds, stretched to their expected distance from the true mean."""
        all_rounds: list[Round] = []
        for run in self.runs:
            levels = [
                statistics.fmean(logarithm for pair in pairs for logarithm in pair) for pairs in run
            ]
            stretch = math.sqrt(len(run) / (len(run) - 1))
            for pairs, level in zip(run, levels, strict=True):
                more = (stretch - 1) * (level - statistics.fmean(levels))
                all_rounds.append([(first + more, second + more) for first, second in pairs])
        return all_rounds

    @cached_property
    def truth(self) -> float:
        """The mean of the values without drift of the machine."""
        return statistics.fmean(
            statistics.fmean(math.exp(logarithm) for pair in pairs for logarithm in pair)
            for pairs in self.rounds
        )


@dataclass
class Row:
    """Rounds of two contenders; the second takes *slower* times as long as the first."""

    shape: Shape
    chance: random.Random
    slower: float = 1.0
    drift: float = DRIFT
    values: tuple[list[list[float]], list[list[float]]] = field(default_factory=lambda: ([], []))
    """The values by round, for each contender."""
    _level: float = 0.0

    def measure(self, precision: float, most: int) -> bool:
        """Make up to *most* rounds until all is known within *precision*; return whether it is."""
        while self.rounds < most:
            self.make_round()
            # Of many rounds, look at every tenth part only: a look takes all rounds into account.
            is_due = self.rounds >= FEWEST and self.rounds % max(1, self.rounds // 10) == 0
            if is_due and self._is_known(precision):
                return True
        return False

    @property
    def rounds(self) -> int:
        """The number of rounds so far."""
        return len(self.values[0])

    @property
    def ratio(self) -> Ratio:
        """The speed of the second contender as a multiple of the first one's."""
        pairs = [list(zip(*values, strict=True)) for values in zip(*self.values, strict=True)]
        return Ratio(mean_of_runs(log_ratios_of(pairs)), self.rounds, paired=True)

    def disturbed(self) -> Ratio:
        """Return the ratio of results with missing and repeated runs."""
        made = self.rounds
        last = self.chance.randint(MIN_RUNS, made) if self.chance.random() < FAILING else made
        return ratio_of(time_of(self._disturbed(0, made)), time_of(self._disturbed(1, last)))

    def _disturbed(self, which: int, rounds: int) -> CellResult:
        runs = []
        for number, values in enumerate(self.values[which][:rounds]):
            fate = self.chance.random()
            if fate < MISSING and number >= MIN_RUNS:
                continue
            again = fate > 1 - REPEATED
            factor = math.exp(self.chance.gauss(0, MEANWHILE)) if again else 1.0
            measured = [value * factor for value in values]
            runs.append(run_of(number, measured, len(values) * again))
        return result_of(0, which, runs)

    def results(self, row: int) -> list[CellResult]:
        """Return the results of both contenders, in a row of this number."""
        return [
            result_of(row, which, [run_of(number, values) for number, values in enumerate(rounds)])
            for which, rounds in enumerate(self.values)
        ]

    def own(self, which: int) -> Estimate:
        """Return the mean of a contender's values."""
        return mean_of_runs(self.values[which])

    def _is_known(self, precision: float) -> bool:
        if self.ratio.log.half_width > precision:
            return False
        return all(self.own(side).half_width <= precision * self.own(side).mean for side in (0, 1))

    def make_round(self) -> None:
        recorded = self.chance.choice(self.shape.rounds)
        pairs = self.chance.choices(recorded, k=len(recorded))
        if self.chance.random() < 1 / 2:
            pairs = [(second, first) for first, second in pairs]
        self._level += self.chance.gauss(0, self.drift)
        for which, slower in enumerate((1.0, self.slower)):
            values = [slower * math.exp(pair[which] + self._level) for pair in pairs]
            self.values[which].append(values)


@functools.cache
def shapes() -> dict[str, list[Shape]]:
    """Return the shapes of all benchmarks, by storage."""
    by_storage: dict[str, list[Shape]] = {}
    for name, runs in json.loads(RECORDED.read_text(encoding="utf-8")).items():
        by_storage.setdefault(name.split()[0], []).append(Shape(runs))
    return by_storage


def measure(*, quick: bool) -> Iterator[Line]:
    """Yield the error rates of comparisons, of trends and of steps."""
    comparisons = COMPARISONS // 20 if quick else COMPARISONS
    for part in PARTS.values():
        yield from part(comparisons)


def of_comparisons(comparisons: int) -> Iterator[Line]:
    """Yield the error rates of simulated comparisons of seven benchmarks each."""
    chance = random.Random(1)  # noqa: S311
    yield from _equal(comparisons, chance)
    yield from _slower(comparisons // 10, chance)
    yield from _covered(comparisons, chance, 0.01 if comparisons == COMPARISONS else 0.025)
    yield from _steady(comparisons, chance, _most(comparisons))


def _most(comparisons: int) -> float:
    """Return the maximum share of false trends in that many comparisons."""
    return FALSE_TRENDS if comparisons == COMPARISONS else 0.05


def _equal(comparisons: int, chance: random.Random) -> Iterator[Line]:
    """Compare equal contenders with the precision and about the time of a default run."""
    called, disturbed, any_called, cells = 0, 0, 0, 0
    for storage in _alternating(comparisons):
        rows = [Row(shape, chance) for shape in storage]
        for row in rows:
            row.measure(0.05, 12)
        different = sum(verdict in DIFFERENT for verdict in verdicts([row.ratio for row in rows]))
        called += different
        verdicts_on_the_rest = verdicts([row.disturbed() for row in rows])
        disturbed += sum(verdict in DIFFERENT for verdict in verdicts_on_the_rest)
        any_called += bool(different)
        cells += len(rows)
    yield at_most("error_rates: equal, called different", called / cells, 0.01, "{:.2%}")
    yield at_most(
        "error_rates: equal, runs missing, called different", disturbed / cells, 0.01, "{:.2%}"
    )
    yield info("error_rates: comparisons with such a cell", any_called / comparisons, "{:.2%}")


def _slower(comparisons: int, chance: random.Random) -> Iterator[Line]:
    """Compare contenders one of which is 5 % slower, until known within 2 %, up to 400 rounds."""
    detected, known, wrong, cells, rounds = 0, 0, 0, 0, []
    of_the_rest: list[bool] = []
    for storage in _alternating(comparisons):
        rows = [Row(shape, chance, SLOWER) for shape in storage]
        reached = [row.measure(0.02, 400) for row in rows]
        judged = verdicts([row.ratio for row in rows])
        for row, verdict, precise in zip(rows, judged, reached, strict=True):
            cells += 1
            wrong += verdict is Verdict.FASTER
            known += precise
            detected += precise and verdict is Verdict.SLOWER
            rounds.append(row.rounds)
        rest = [row.disturbed() for row in rows]
        of_the_rest += [
            verdict is Verdict.SLOWER
            for ratio, verdict in zip(rest, verdicts(rest), strict=True)
            if ratio.log.half_width <= KNOWN
        ]
    part = statistics.fmean(of_the_rest)
    yield at_least("error_rates: 5 % slower, found", detected / known, 0.95, "{:.1%}")
    yield at_least("error_rates: 5 % slower, runs missing, found", part, 0.95, "{:.1%}")
    yield info("error_rates: 5 % slower, called faster", wrong / cells, "{:.2%}")
    yield info("error_rates: known within 2 %", known / cells, "{:.0%}")
    yield info("error_rates: median of the rounds", statistics.median(rounds), "{:.0f}")


def _covered(comparisons: int, chance: random.Random, tolerance: float) -> Iterator[Line]:
    """Count the intervals that contain the true value.

    The standard error of these figures is 0.3 %; with the 350 cells of a quick try, it is 1.2 %.
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


def _steady(comparisons: int, chance: random.Random, most: float) -> Iterator[Line]:
    """Look for trends among equal contenders, with the precision of a default run."""
    false = 0
    for storage in _alternating(comparisons):
        rows = [Row(shape, chance) for shape in storage]
        for row in rows:
            row.measure(0.05, 12)
        results = [result for number, row in enumerate(rows) for result in row.results(number)]
        false += any(result.gets_slower for result in with_trends(results))
    yield at_most("error_rates: steady, recorded", false / comparisons, most, "{:.2%}")


def _contains(estimate: Estimate, truth: float) -> bool:
    low, high = estimate.interval
    return low <= truth <= high


def _alternating(comparisons: int) -> Iterator[list[Shape]]:
    """Yield the benchmarks of a storage for each comparison, alternating between storages."""
    storages = list(shapes().values())
    for number in range(comparisons):
        yield storages[number % len(storages)]


PARTS: Mapping[str, Callable[[int], Iterator[Line]]] = {
    "comparisons": of_comparisons,
    "releases": lambda comparisons: steps.figures(list(shapes().values()), comparisons // 4),
    "trends": lambda comparisons: trends.figures(comparisons, _most(comparisons)),
}
"""The functions that measure error rates, given the number of simulated comparisons."""
