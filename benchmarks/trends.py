"""Simulated trends: how often steady contenders seem to have one, how often true ones are found.

The logarithm of a value is a sum: of the machine's effect, which the contenders of a row share, and
of the noise of a contender's run and slice.  The machine drifts in a random walk of 1 % from round
to round, and its noise of 10 % is correlated from slice to slice.  A run of the command has seven
rows.

There are 40 runs that share their clients; their noise is correlated from one run to the next.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.line import Line, at_least, at_most, info
from zodbshootout.results.trend import (
    FALSE_TRENDS,
    FEWEST_RUNS,
    Change,
    Rounds,
    find_shared_trends,
    find_trends,
)

ROWS = 7
SLICES = 6
CORRELATION = 0.5
"""The correlation of the machine's noise in successive slices."""

Row = Mapping[int, Rounds]
"""The contenders of a row, by number."""
Rise = Callable[[float, float], float]
"""Returns the factor of a value's time, given the elapsed parts of the rounds and of its run."""


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
    slow_last: int = 0
    """The number of the first contender's last runs that take twice as long."""
    repeated: float = 0.0
    """The probability that a run is repeated, so that its slices have different numbers."""

    def row(self, chance: random.Random, rise: Rise = lambda *_: 1.0) -> Row:
        """Return the values of a row in which the first contender has a *rise*."""
        rounds = chance.randint(*self.rounds)
        ends = [
            chance.randrange(1, rounds) if chance.random() < self.failing else rounds
            for _ in range(self.contenders)
        ]
        row: dict[int, dict[str, dict[int, float]]] = {key: {} for key in range(self.contenders)}
        walked, runs = 0.0, [self._noise(chance, self.of_run) for _ in range(self.contenders)]
        for number in range(rounds):
            walked += chance.gauss(0, self.walk)
            passed = number / (rounds - 1)
            new = math.sqrt(1 - self.correlation**2)
            runs = [self.correlation * run + new * self._noise(chance, self.of_run) for run in runs]
            round_ = self._round(chance, 2 * SLICES * number, runs)
            if number >= rounds - self.slow_last:
                round_[0] = {turn: log + math.log(2) for turn, log in round_[0].items()}
            for key, slices in round_.items():
                if number < ends[key]:
                    level = walked + self.drift * passed
                    row[key][str(number)] = {
                        turn: log + level + self._rise(key, rise, passed, turn)
                        for turn, log in slices.items()
                    }
        return row

    def _round(
        self, chance: random.Random, first: int, runs: Sequence[float]
    ) -> dict[int, dict[int, float]]:
        """Return the noise of each contender's slices, which are numbered from *first* on.

        *runs* is the noise of the contenders' runs.
        """
        firsts = [first + SLICES * (chance.random() < self.repeated) for _ in runs]
        slices: dict[int, dict[int, float]] = {key: {} for key in range(self.contenders)}
        machine = chance.gauss(0, self.of_machine)
        new = self.of_machine * math.sqrt(1 - CORRELATION**2)
        for turn in range(SLICES):
            for key in chance.sample(range(self.contenders), self.contenders):
                machine = CORRELATION * machine + chance.gauss(0, new)
                noise = runs[key] + self._noise(chance, self.of_slice)
                slices[key][firsts[key] + turn] = machine + noise
        return slices

    def _rise(self, key: int, rise: Rise, passed: float, turn: int) -> float:
        return 0.0 if key else math.log(rise(passed, turn % SLICES / (SLICES - 1)))

    def _noise(self, chance: random.Random, scale: float) -> float:
        normal = chance.gauss(0, scale)
        return normal / math.sqrt(chance.expovariate(1)) if self.heavy else normal


STEADY = {
    "correlated": Model(),
    "three contenders": Model(3),
    "shared drift of 50 %": Model(drift=0.4),
    "heavy tails": Model(heavy=True),
    "4 rounds": Model(rounds=(4, 4)),
    "missing, repeated": Model(3, drift=0.4, failing=0.3, repeated=0.1),
    "by itself": Model(1),
}
"""Models without a trend."""
SEVEN = Model(rounds=(7, 7))
QUIET = Model(rounds=(7, 7), of_machine=0.02, of_run=0.02, of_slice=0.02)
"""A quiet machine: the ratio of two runs has a noise of 3 % instead of 7 %."""


def to_the_end(times: float) -> Rise:
    """Return a linear rise by a factor from the first round to the last."""
    return lambda passed, _: 1 + (times - 1) * passed


def in_each_run(times: float) -> Rise:
    """Return a linear rise by a factor from the first slice of each run to the last."""
    return lambda _, passed: 1 + (times - 1) * passed


RISING = {
    "6 times in 7 rounds": (SEVEN, to_the_end(6), 0.95),
    "6 times in 7 rounds by itself": (replace(SEVEN, contenders=1), to_the_end(6), 0.3),
    "1.8 times in each of 7 runs": (SEVEN, in_each_run(1.8), 0.5),
    "1.5 times in 12 rounds": (Model(rounds=(12, 12)), to_the_end(1.5), 0.7),
    "1.2 times in 7 quiet rounds": (QUIET, to_the_end(1.2), 0.1),
    "1.2 times in 12 quiet rounds": (replace(QUIET, rounds=(12, 12)), to_the_end(1.2), 0.7),
}
"""Models with a rise in one of seven rows, and the minimum share in which it must be found."""


SHARED = Model(rounds=(40, 40), correlation=0.5)
SHARED_QUIET = replace(SHARED, of_machine=0.02, of_run=0.01, of_slice=0.01)
DRIFTING = replace(SHARED_QUIET, walk=0.05)
"""A machine whose load changes by a third, up or down, within the 40 runs."""
SHARED_STEADY = {
    "correlated": SHARED,
    "three contenders": replace(SHARED, contenders=3),
    "shared drift of 50 %": replace(SHARED, drift=0.4),
    "drifting": DRIFTING,
    "drifting, three contenders": replace(DRIFTING, contenders=3),
    "independent": replace(SHARED, correlation=0.0),
    "heavy tails": replace(SHARED, heavy=True),
    "a slow run": replace(SHARED, slow_last=1),
    "slow in the last tenth": replace(SHARED, slow_last=4),
    "slow in the last tenth, quiet": replace(SHARED_QUIET, slow_last=4),
    "22 runs": replace(SHARED, rounds=(22, 22)),
    "120 runs": replace(SHARED, rounds=(120, 120)),
    "one fails": replace(SHARED, contenders=3, failing=0.3),
    "by itself": replace(SHARED, contenders=1, of_machine=0.02),
}
"""Models without a trend, whose runs share their clients."""
COMMITS = 10
"""Commits per run; each takes longer than the one before by 0.2 % of the first one's time."""
SLOWING = 1 + 0.002 * COMMITS * 39
SHARED_RISING = {
    "0.2 % a commit": (SHARED, SLOWING, 0.99),
    "0.2 % a commit, 120 runs": (SHARED_STEADY["120 runs"], SLOWING, 0.95),
    "0.2 % a commit, by itself": (SHARED_STEADY["by itself"], SLOWING, 0.7),
    "12 %, quiet": (SHARED_QUIET, 1.12, 0.95),
    "12 %, drifting": (DRIFTING, 1.12, 0.95),
    "12 %, drifting, three contenders": (replace(DRIFTING, contenders=3), 1.12, 0.95),
}
"""Models with a rise, and the minimum share in which it must be found."""


def shared_figures(runs: int, most: float) -> Iterator[Line]:
    """Yield these figures for runs that share their clients, and the error of what is found."""
    chance = random.Random(3)  # noqa: S311
    for name, model in SHARED_STEADY.items():
        of_runs = [_changes(model.row(chance)).values() for _ in range(runs)]
        false = sum(any(change.slower for change in changes) for changes in of_runs)
        yield at_most(f"error_rates: shared, steady, {name}", false / runs, most, "{:.2%}")
    for name, (model, times, goal) in SHARED_RISING.items():
        rows = [
            list(_changes(model.row(chance, to_the_end(times))).values()) for _ in range(runs // 4)
        ]
        changes = [first for first, *_ in rows]
        trends = [change.slower for change in changes if change.slower]
        seen = len(trends) / len(changes)
        yield at_least(f"error_rates: shared, {name}, found", seen, goal, "{:.0%}")
        blamed = statistics.fmean(any(map(_differs, others)) for _, *others in rows)
        yield at_most(f"error_rates: shared, {name}, others blamed", blamed, most, "{:.2%}")
        if not trends:
            continue
        # The first run is ignored.
        truth = times / (1 + (times - 1) / (model.rounds[0] - 1))
        errors = [abs((trend.times - 1) / (truth - 1) - 1) for trend in trends]
        inside = [
            low <= truth <= high for trend in trends for low, high in [trend.interval or (0, 0)]
        ]
        form = "{:.1%}"
        if times == SLOWING and model.contenders > 1:
            error = statistics.median(errors)
            yield at_most(f"error_rates: shared, {name}, error", error, 0.1, form)
        yield info(f"error_rates: shared, {name}, in interval", statistics.fmean(inside), form)


def _differs(change: Change) -> bool:
    return change.slower is not None or change.faster


def _changes(row: Row) -> dict[int, Change]:
    return find_shared_trends([row])[0]


def figures(runs: int, most: float) -> Iterator[Line]:
    """Yield how often steady contenders seem to become slower, and how often others are found to.

    The former may be up to the share *most* of *runs*; its standard error is 0.2 % for 2000.
    """
    chance = random.Random(2)  # noqa: S311
    for name, model in STEADY.items():
        false = sum(_has_trend(_rows(model, chance)) for _ in range(runs))
        yield at_most(f"error_rates: steady, {name}", false / runs, most, "{:.2%}")
    some = runs // 2
    false = sum(_has_trend(map(_ended_early, _rows(Model(), chance))) for _ in range(some))
    yield at_most("error_rates: steady, ended early", false / some, most, "{:.2%}")
    for name, (model, rise, goal) in RISING.items():
        seen = sum(_is_found(model, rise, chance) for _ in range(some))
        yield at_least(f"error_rates: {name}, found", seen / some, goal, "{:.0%}")


def _rows(model: Model, chance: random.Random) -> list[Row]:
    return [model.row(chance) for _ in range(ROWS)]


def _has_trend(rows: Iterable[Row]) -> bool:
    """Return whether a contender is said to become slower.

    It is also correct to say that it or the machine does, if others share too few runs with it.
    """
    rows = list(rows)
    return any(
        not trend.alone or len(row) == 1
        for row, trends in zip(rows, find_trends(rows), strict=True)
        for trend in trends.values()
    )


def _ended_early(row: Row) -> Row:
    """Return the rounds of a row up to the first after which the command would end the row."""
    rounds = next(iter(row.values()))
    for number in range(FEWEST_RUNS, len(rounds)):
        some = list(rounds)[:number]
        begun = {key: {name: slices[name] for name in some} for key, slices in row.items()}
        if any(find_trends([begun], FALSE_TRENDS / 10 / ROWS)):
            return begun
    return row


def _is_found(model: Model, rise: Rise, chance: random.Random) -> bool:
    first = model.row(chance, rise)
    return 0 in find_trends([first, *_rows(model, chance)[1:]])[0]
