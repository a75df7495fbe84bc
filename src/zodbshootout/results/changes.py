"""Changes: a quantity of two cells, the ratio of the two figures, and the sentence about it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from zodbshootout.model.grouping import grouped
from zodbshootout.model.quantities import Combine, Sense
from zodbshootout.results.estimate import (
    MIN_RUNS,
    Estimate,
    joined,
    mean_of,
    mean_of_estimates,
    mean_of_runs,
)
from zodbshootout.results.figures import Figure, Round
from zodbshootout.results.pairs import Pairs, log_ratios_of, of_mean
from zodbshootout.results.ratios import (
    FALSE_CALLS,
    MAX_WIDTH,
    SIGNIFICANT,
    Ratio,
    Verdict,
    verdicts,
)

Rounds = Mapping[Round, Mapping[int, float]]
"""The amounts of a cell by round, and by the number of the slice."""


@dataclass(frozen=True)
class Words:
    """The words for changes of quantities of one sense."""

    worse: str
    better: str
    statement: str
    """A statement about two cells; ``{times}`` stands for the ratio."""
    than: str


_WORDS = {
    Sense.SPEED: Words("slower", "faster", "is {times} times as fast", "as"),
    Sense.LATENCY: Words(
        "higher latency", "lower latency", "has {times} times lower latency", "than"
    ),
    Sense.AMOUNT: Words("more", "less", "takes {times} times as much", "as"),
}


@dataclass(frozen=True)
class Change:
    """A quantity of a base and of a new cell: their ratio, and whether it is significant."""

    base: Figure
    new: Figure
    ratio: Ratio
    verdict: Verdict
    runs_needed: int | None = None
    """The predicted number of runs that each cell needs for a verdict on an undecided change."""

    @property
    def name(self) -> str:
        """The benchmark, with the name of the figure if the cell has several."""
        return f"{self.base.cell.benchmark} {self.base.name}".rstrip()

    @property
    def seconds_needed(self) -> float:
        """The predicted duration of the missing runs, in seconds."""
        if self.runs_needed is None:
            return 0.0
        seconds = self.base.result.run_seconds, self.new.result.run_seconds
        runs = self.runs_needed - self.ratio.runs
        # Paired runs are made in turn, so each run's duration includes the other run's slices.
        return runs * (max(seconds) if self.ratio.paired else sum(seconds))

    @property
    def is_significant(self) -> bool:
        """Whether chance is unlikely to be the cause; see :data:`~.ratios.FALSE_CALLS`."""
        return self.verdict in SIGNIFICANT

    def is_worse(self, part: float) -> bool:
        """Return whether *new* is significantly worse, and the ratio is beyond 1 + *part*."""
        return self.verdict is Verdict.SLOWER and self.ratio.value < 1 / (1 + part)

    def beyond(self, part: float) -> bool | None:
        """Return whether *new* is certainly worse than *base* by more than the fraction *part*.

        Then the whole interval is beyond 1 + *part*.  ``None`` means that a part of it is.
        """
        low, high = self.ratio.interval
        if self.is_worse(part) and high < 1 / (1 + part):
            return True
        return None if low < 1 / (1 + part) else False

    @property
    def words(self) -> Words:
        """The words for changes of such a quantity."""
        words = _WORDS[self.base.quantity.sense]
        if self.base.quantity.better == "more" and words is _WORDS[Sense.AMOUNT]:
            return replace(words, worse=words.better, better=words.worse)
        return words

    @property
    def shown(self) -> Ratio:
        """The ratio in the direction in which words give it: for amounts, new amount / base."""
        quantity = self.base.quantity
        is_inverse = quantity.sense is Sense.AMOUNT and quantity.better != "more"
        return self.ratio.inverse if is_inverse else self.ratio

    def sentence(self, base: str, new: str, *, brief: bool = False) -> str:
        """Return the sentence about the change; *base* and *new* are the names of the two cells.

        A significant change names the better cell or, for amounts, the cell that takes more.  A
        *brief* sentence is for readers who see both cells and their figures: it names one cell.
        """
        ratio = self.shown
        if not self.is_significant:
            alike = f"{self.verdict.value} {ratio.within}".rstrip()
            if ratio.is_exact:
                alike = self.verdict.value if ratio.log.mean else "equal"
            return alike if brief else f"{new} and {base}: {alike}"
        (first, more), (second, less) = (new, self.new), (base, self.base)
        if ratio.value < 1:
            first, more, second, less, ratio = second, less, first, more, ratio.inverse
        if math.isinf(ratio.value):
            return f"{first} takes some" if brief else f"{first} takes some, and {second} none"
        said = f"{first} {self.words.statement.format(times=ratio.times)}"
        if brief:
            return f"{said} {ratio.within}"
        is_amount = self.base.quantity.sense is Sense.AMOUNT
        amounts = f": {more.text()} against {less.text()}" if is_amount else ""
        return f"{said} {self.words.than} {second} {ratio.within}{amounts}"


def changes_of(figures: Sequence[tuple[Figure, Figure]]) -> list[Change]:
    """Compare pairs of figures, the base first; correct verdicts for the number of pairs."""
    ratios = [ratio_of(base, new) for base, new in figures]
    changes = []
    for (base, new), ratio, verdict in zip(figures, ratios, verdicts(ratios), strict=True):
        needed = None
        is_amount = base.quantity.sense is Sense.AMOUNT
        if is_amount and ratio.is_known and not base.quantity.differs(base.value, new.value):
            verdict = Verdict.NO_DIFFERENCE  # noqa: PLW2901
        has_no_logarithm = is_amount and not ratio.is_known and ratio.runs >= MIN_RUNS
        if verdict is Verdict.UNDECIDED and not has_no_logarithm:
            needed = ratio.runs_needed(MAX_WIDTH)
        changes.append(Change(base, new, ratio, verdict, needed))
    return changes


def ratio_of(base: Figure, new: Figure) -> Ratio:
    """Return how many times better *new* is than *base*, a figure of the same quantity.

    A pair is one amount of each cell, both from the same slice of the same round.  The two amounts
    were measured within about a second of each other; :mod:`.pairs` tells what they come to in each
    run.  Runs without a counterpart, such as those after the other cell failed,
    are left out, because the machine may have been faster or slower meanwhile.

    Pairs are used if at least :data:`MIN_RUNS` rounds have pairs.  If the cells have fewer rounds
    than that in common, a single round with pairs is enough.  Without pairs, a run counts as the
    logarithm of its mean amount.  If one command measured both cells, but never both cells
    in the same round, the interval is unknown.
    """
    if base.quantity.sense is Sense.AMOUNT and (exact := _exact_ratio(base, new)):
        return exact
    of_base, of_new = _by_round(base), _by_round(new)
    common = [name for name in of_base if name in of_new]
    in_common = [(of_base[name], of_new[name]) for name in common]
    pairs = list(pairs_of(of_base, of_new).values())
    paired = bool(pairs) and (len(pairs) >= MIN_RUNS or len(common) < MIN_RUNS)
    runs = len(pairs)
    if paired:
        logs = log_ratios_of(pairs)
        amounts = mean_of_runs(joined(logs) if base.result.wanted_seconds else logs)
    else:
        firsts, seconds = (
            zip(*in_common, strict=True) if common else (of_base.values(), of_new.values())
        )
        amounts, runs = _mean_log(firsts) - _mean_log(seconds), min(len(firsts), len(seconds))
        if not common and _commands(of_base) & _commands(of_new):
            amounts = replace(amounts, df=0)
    return Ratio(
        replace(amounts, mean=_oriented(amounts.mean, base, new)),
        runs,
        paired,
        len(base.runs) + len(new.runs) - 2 * runs if common else 0,
    )


def pairs_of(base: Rounds, new: Rounds) -> dict[Round, Pairs]:
    """Return the pairs of amounts, the base's amount first, by round."""
    pairs = {
        name: [(one, other[turn]) for turn, one in of_round.items() if turn in other]
        for name, of_round in base.items()
        for other in [new.get(name, {})]
    }
    return {name: of_round for name, of_round in pairs.items() if of_round}


def _oriented(log: float, base: Figure, new: Figure) -> float:
    """Return how many times better *new* is from the logarithm of base's amounts / new amounts."""
    quantity = base.quantity
    if quantity.combine is Combine.PER_SECOND:
        return log + math.log(new.work / base.work)
    return -log if quantity.better == "more" else log


def _exact_ratio(base: Figure, new: Figure) -> Ratio | None:
    """Return the ratio of amounts if each side has the same amount in all of its runs.

    One run suffices for an amount that is counted, such as round trips.  Other amounts need
    :data:`MIN_RUNS` runs to show that they do not vary.  If amounts may vary, and one of them has
    no logarithm because it is 0 or less, the ratio is that of the means.
    """
    amounts = set(base.amounts), set(new.amounts)
    runs = min(len(base.runs), len(new.runs))
    enough = base.quantity.unit.is_exact or runs >= MIN_RUNS
    if all(len(side) == 1 for side in amounts) and enough:
        (one,), (other,) = amounts
        if one == other:
            return Ratio(Estimate(0.0, 0.0, math.inf), runs)
        log = (
            math.log(one / other) if one > 0 and other > 0 else math.copysign(math.inf, one - other)
        )
        return Ratio(Estimate(_oriented(log, base, new), 0.0, math.inf), runs)
    return _ratio_of_means(base, new, runs) if min(*base.amounts, *new.amounts) <= 0 else None


def _ratio_of_means(base: Figure, new: Figure, runs: int) -> Ratio:
    """Return the ratio of amounts of which some are 0 or less, so that only means have a ratio.

    If only one mean is above 0, the ratio is infinite or 0, provided that the means differ.
    """
    means = [[statistics.fmean(run) for run in side.runs if run] for side in (base, new)]
    logs = [mean_of(of_mean(side)) for side in means if statistics.fmean(side) > 0]
    if len(logs) == len(means):
        amounts = logs[0] - logs[1]
        return Ratio(replace(amounts, mean=_oriented(amounts.mean, base, new)), runs)
    difference = mean_of(means[0]) - mean_of(means[1])
    if logs and difference.p_value <= FALSE_CALLS:
        infinite = _oriented(math.copysign(math.inf, difference.mean), base, new)
        return Ratio(Estimate(infinite, 0.0, math.inf), runs)
    return Ratio(Estimate(0.0, 0.0, 0), runs)


def mean_ratio(changes: Iterable[Change]) -> Ratio | None:
    """Return the geometric mean of the ratios with known intervals; ``None`` if there are none.

    The figures of a cell at a rate come from the same iterations.  So they count as one ratio,
    whose error is the mean of their errors, as if one figure determined the other.
    """
    cells = grouped(((change.base.cell, change.new.cell), change) for change in changes)
    known = [ratio for ratio in map(_ratio_of_cell, cells.values()) if ratio.is_known]
    if not known:
        return None
    runs = min(ratio.runs for ratio in known)
    return Ratio(mean_of_estimates([ratio.log for ratio in known]), runs)


def _ratio_of_cell(changes: Sequence[Change]) -> Ratio:
    if len(changes) == 1:
        return changes[0].ratio
    logs = [change.ratio.log for change in changes]
    error = statistics.fmean(math.sqrt(log.variance) for log in logs)
    mean = statistics.fmean(log.mean for log in logs)
    return replace(changes[0].ratio, log=Estimate(mean, error**2, min(log.df for log in logs)))


def _mean_log(rounds: Iterable[Mapping[int, float]]) -> Estimate:
    return mean_of_runs([of_mean(list(values.values())) for values in rounds])


def _by_round(figure: Figure) -> Rounds:
    """Return the amounts by round; if no rounds are known, every run counts as a round."""
    runs = enumerate(figure.runs)
    return figure.by_round or {(str(id(figure)), str(n)): dict(enumerate(run)) for n, run in runs}


def _commands(rounds: Iterable[Round]) -> set[str]:
    """Return the commands that measured the rounds."""
    return {command for command, _ in rounds}
