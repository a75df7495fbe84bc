"""Simulated trends: how often steady contenders seem to have one, how often true ones are found.

The logarithm of a value is a sum: of the machine's effect, which the contenders of a row share, and
of the noise of a contender's run and slice.  The machine drifts in a random walk of 1 % from round
to round, and its noise of 10 % is correlated from slice to slice.  A run of the command has seven
rows.

With ``--for``, 40 runs share their clients: half of the noise of a run is still in the next one.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyperf

from benchmarks.line import Line, at_least, at_most, info
from zodbshootout.model.specification import BenchmarkWords, CrewShape, Parameters
from zodbshootout.results.cell import Cell
from zodbshootout.results.result import CellResult
from zodbshootout.results.trend import FALSE_TRENDS, FEWEST_RUNS, with_trends

SLICES = 3
CORRELATION = 0.5
"""The correlation of the machine's noise in successive slices."""


@dataclass(frozen=True)
class Model:
    """The contenders of simulated rows; noise is the standard deviation of logarithms."""

    contenders: int = 2
    rounds: tuple[int, int] = (4, 16)
    """The minimum and the maximum number of rounds of a row."""
    walk: float = 0.01
    """The standard deviation of the machine's random walk from round to round."""
    drift: float = 0.0
    """The logarithm of the ratio of the last round's times to the first's, for all contenders."""
    of_machine: float = 0.1
    of_run: float = 0.03
    of_slice: float = 0.03
    heavy: bool = False
    """Whether the noise of runs and slices has Student's distribution with 2 degrees of freedom."""
    failing: float = 0.0
    """The probability that a contender fails after some round."""
    correlation: float = 0.0
    """The correlation of a contender's noise in successive runs."""

    @property
    def rows(self) -> int:
        """The number of rows; a measurement with ``--for`` has one."""
        return 1 if self.correlation else 7

    def results(self, chance: random.Random, times: float = 1.0) -> list[CellResult]:
        """Return all rows; times of the first cell rise in a straight line by a factor *times*."""
        first = self._row(0, chance, times)
        return [*first, *(one for row in range(1, self.rows) for one in self._row(row, chance))]

    def _row(self, row: int, chance: random.Random, times: float = 1.0) -> list[CellResult]:
        rounds = chance.randint(*self.rounds)
        levels = [self._noise(chance, self.of_run) for _ in range(self.contenders)]
        runs: list[list[pyperf.Run]] = [[] for _ in levels]
        shared: dict[str, Any] = {"for_s": 1.0} if self.correlation else {}
        walked, new = 0.0, math.sqrt(1 - self.correlation**2)
        for number in range(rounds):
            walked += chance.gauss(0, self.walk)
            passed = number / (rounds - 1)
            levels = [
                self.correlation * level + new * self._noise(chance, self.of_run)
                for level in levels
            ]
            rise = math.log(1 + (times - 1) * passed)
            means = [level + walked + self.drift * passed for level in levels]
            means[0] += rise
            for of_contender, values in zip(runs, self._round(chance, means), strict=True):
                of_contender.append(run_of(number, values, **shared))
        return [
            result_of(row, key, made[: self._end(chance, rounds)]) for key, made in enumerate(runs)
        ]

    def _end(self, chance: random.Random, rounds: int) -> int:
        return chance.randrange(1, rounds) if chance.random() < self.failing else rounds

    def _round(self, chance: random.Random, means: Sequence[float]) -> list[list[float]]:
        """Return the values of each contender's slices; *means* are of logarithms."""
        values: list[list[float]] = [[] for _ in means]
        machine = chance.gauss(0, self.of_machine)
        new = self.of_machine * math.sqrt(1 - CORRELATION**2)
        for _ in range(SLICES):
            for key in chance.sample(range(len(means)), len(means)):
                machine = CORRELATION * machine + chance.gauss(0, new)
                noise = machine + self._noise(chance, self.of_slice)
                values[key].append(math.exp(means[key] + noise))
        return values

    def _noise(self, chance: random.Random, scale: float) -> float:
        normal = chance.gauss(0, scale)
        return normal / math.sqrt(chance.expovariate(1)) if self.heavy else normal


def result_of(row: int, contender: int, runs: Sequence[pyperf.Run]) -> CellResult:
    """Return the result of a contender in the row of this number."""
    words, parameters = BenchmarkWords("Add"), Parameters(CrewShape(1))
    return CellResult(Cell(f"row {row}", str(contender), parameters, words), runs=tuple(runs))


def run_of(number: int, values: Sequence[float], first: int = 0, **more: Any) -> pyperf.Run:
    """Return the run of the round of this *number*, whose slices are numbered from *first* on."""
    slices = " ".join(map(str, range(first, first + len(values))))
    metadata = {"round": str(number), "slices": slices, **more}
    return pyperf.Run(values, metadata=metadata, collect_metadata=False)


LONG = Model(rounds=(40, 40), correlation=0.5)
STEADY = {
    "correlated": Model(),
    "three contenders": Model(3),
    "shared drift of 50 %": Model(drift=0.4),
    "heavy tails": Model(heavy=True),
    "4 rounds": Model(rounds=(4, 4)),
    "some fail": Model(3, drift=0.4, failing=0.3),
    "by itself": Model(1, walk=0.0),
    "--for": LONG,
    "--for, three contenders": replace(LONG, contenders=3),
    "--for, drifting": replace(LONG, walk=0.05),
    "--for, heavy tails": replace(LONG, heavy=True),
    "--for, correlated noise only": replace(LONG, of_machine=0.02, of_slice=0.01),
    "--for, some fail": replace(LONG, contenders=3, drift=0.4, failing=0.3),
    "--for, 24 runs": replace(LONG, rounds=(24, 24)),
    "--for, 120 runs": replace(LONG, rounds=(120, 120)),
    "--for, by itself": replace(LONG, contenders=1, walk=0.0, of_machine=0.02),
}
"""Models without a trend."""
QUIET = Model(rounds=(12, 12), of_machine=0.02, of_run=0.02, of_slice=0.02)
"""A quiet machine: the ratio of two runs has a noise of 3 % instead of 7 %."""
QUIET_LONG = replace(LONG, of_machine=0.02, of_run=0.01, of_slice=0.01)
RISING = {
    "3 times in 8 rounds": (Model(rounds=(8, 8)), 3.0, 0.95),
    "1.8 times in 12 rounds": (Model(rounds=(12, 12)), 1.8, 0.95),
    "1.3 times in 12 quiet rounds": (QUIET, 1.3, 0.95),
    "--for, 1.5 times": (LONG, 1.5, 0.95),
    "--for, 1.2 times, quiet": (QUIET_LONG, 1.2, 0.95),
    "--for, 1.2 times, three quiet contenders": (replace(QUIET_LONG, contenders=3), 1.2, 0.95),
    "--for, 1.2 times, quiet but drifting": (replace(QUIET_LONG, walk=0.05), 1.2, 0.7),
}
"""Models with a rise, and the minimum share in which it must be found."""


def figures(runs: int, most: float) -> Iterator[Line]:
    """Yield how often steady contenders seem to get slower, and how often others are found to.

    The former may be up to the share *most* of *runs*; its standard error is 0.2 % for 2000.
    """
    chance = random.Random(2)  # noqa: S311
    for name, model in STEADY.items():
        false = sum(_misled(model.results(chance)) for _ in range(runs))
        yield at_most(f"error_rates: steady, {name}", false / runs, most, "{:.2%}")
    some = runs // 4
    false = sum(_misled(_ended_early(Model().results(chance))) for _ in range(some))
    yield at_most("error_rates: steady, ended early", false / some, most, "{:.2%}")
    for name, (model, times, goal) in RISING.items():
        firsts, others = zip(*(_judged(model, times, chance) for _ in range(some)), strict=True)
        found = [one.trend for one in firsts if one.trend and one.trend.found]
        yield at_least(f"error_rates: {name}, found", len(found) / some, goal, "{:.1%}")
        yield at_most(f"error_rates: {name}, others blamed", sum(others) / some, most, "{:.2%}")
        inside = statistics.fmean(low <= times <= high for low, high in (t.interval for t in found))
        yield info(f"error_rates: {name}, in its interval", inside, "{:.1%}")


def _misled(results: Sequence[CellResult]) -> bool:
    """Return whether a contender is said to get slower.

    It is also correct to say that it or the machine does, if others share too few runs with it.
    """
    by_itself = len({result.cell.contender for result in results}) == 1
    trends = [result.trend for result in with_trends(results)]
    return any(one is not None and one.found and (by_itself or not one.alone) for one in trends)


def _judged(model: Model, times: float, chance: random.Random) -> tuple[CellResult, bool]:
    """Return the cell whose times rise, and whether others of its row are said to get slower."""
    first, *others = with_trends(model.results(chance, times))
    return first, any(one.gets_slower for one in others[: model.contenders - 1])


def _ended_early(results: list[CellResult]) -> list[CellResult]:
    """Return the results up to the first rounds after which the command would end a row."""
    for number in range(FEWEST_RUNS, max(len(result.runs) for result in results)):
        begun = [replace(result, runs=result.runs[:number]) for result in results]
        if any(result.gets_slower for result in with_trends(begun, FALSE_TRENDS / 20)):
            return begun
    return results
