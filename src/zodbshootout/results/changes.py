"""Comparisons of results: pairs of cells, ratios of speeds, verdicts, and other differences."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from zodbshootout.errors import UserError
from zodbshootout.model.grouping import grouped
from zodbshootout.model.outcome import State
from zodbshootout.model.parameters import PARAMETERS
from zodbshootout.model.quantities import Combine, Quantity, Sense
from zodbshootout.results.axes import at_distances
from zodbshootout.results.cell import Cell
from zodbshootout.results.estimate import (
    MIN_RUNS,
    Estimate,
    joined,
    mean_of_estimates,
    mean_of_runs,
    runs_needed,
)
from zodbshootout.results.figures import Figure, figure_of, figures_of
from zodbshootout.results.names import long_name
from zodbshootout.results.probabilities import corrected
from zodbshootout.results.releases import originals_of
from zodbshootout.results.result import CellResult

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


class Verdict(Enum):
    """The outcome of a comparison."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_DIFFERENCE = "no significant difference"
    UNDECIDED = "undecided"


MISSING = "-"
"""The value of a fact or a setting on a side that lacks it."""
SIGNIFICANT = frozenset({Verdict.SLOWER, Verdict.FASTER})


@dataclass(frozen=True)
class Change:
    """A quantity of a base and of a new cell, with their comparison."""

    base: Figure
    new: Figure
    ratio: Ratio
    verdict: Verdict
    runs_needed: int | None = None
    """The predicted number of runs that each cell needs for a verdict on an undecided change."""

    @property
    def seconds_needed(self) -> float:
        """The predicted duration of the missing runs, in seconds."""
        if self.runs_needed is None:
            return 0.0
        seconds = self.base.result.run_seconds, self.new.result.run_seconds
        runs = self.runs_needed - self.ratio.runs
        # Paired runs are made in turn, so each run's duration includes the other run's slices.
        return runs * (max(seconds) if self.ratio.paired else sum(seconds))

    def slower_than(self, part: float) -> bool:
        """Return whether *new* certainly takes more than 1 + *part* times as long as *base*."""
        return self.verdict is Verdict.SLOWER and self.ratio.interval[1] < 1 / (1 + part)

    def may_be_slower_than(self, part: float) -> bool:
        """Return whether *new* may take more than 1 + *part* times as long as *base*."""
        return self.ratio.interval[0] < 1 / (1 + part)


@dataclass(frozen=True)
class Difference:
    """A fact or a setting that differs between two sides."""

    name: str
    base: str
    """The values on the side of the base; :data:`MISSING` if the side lacks it."""
    new: str

    def __str__(self) -> str:
        return f"{self.name}: {self.base} against {self.new}"


@dataclass(frozen=True)
class Comparison:
    """The cells that two sides have in common, and the cells that only one side has."""

    changes: Sequence[Change]
    only_base: Sequence[CellResult]
    only_new: Sequence[CellResult]
    overloaded: Sequence[CellResult]
    """Results of both sides that are not compared because they do not keep up with their rate."""
    lost: Sequence[CellResult]
    """The new results of cells that failed, do not keep up or are missing, although the base has a
    figure.  The state of a missing cell is ``NOT_RUN``."""
    differences: Sequence[Difference]
    """The facts that differ, followed by the contenders' settings that differ."""

    @property
    def mean(self) -> Ratio | None:
        """The geometric mean of the ratios, as in :func:`mean_ratio`."""
        return mean_ratio(self.changes)


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


def pairs_to_compare(
    originals: Mapping[str, str], baseline: str | None = None
) -> list[tuple[str, str]]:
    """Return the pairs of contenders to compare, the base of each comparison first.

    *originals* has the measured contenders in order, and the base of each.  An empty base stands
    for the first contender or, if that is a variant, for the variant's original.  If the user named
    a *baseline*, it is the base of all others.
    """
    first = next(iter(originals), "")
    first = originals.get(first) or first
    bases = {name: baseline or original or first for name, original in originals.items()}
    return [(base, name) for name, base in bases.items() if base != name and base in originals]


def compare(
    base: Sequence[CellResult],
    new: Sequence[CellResult],
    ignored: Collection[str] = (),
    *,
    across: bool = False,
    quantity: Quantity | None = None,
) -> Comparison:
    """Compare a *quantity* of the cells that both sides measured, by default the cells' figures.

    Two cells are compared if their benchmarks and parameters are the same.  Parameters of *ignored*
    options may differ.  The contenders have to be the same too, unless *across* is set.

    :raises UserError: if several cells of one side are the same without the *ignored* options
    """
    of_base = _by_key(base, ignored, across=across)
    of_new = _by_key(new, ignored, across=across)
    common = [
        (of_base[key], of_new[key])
        for key in of_base
        if key in of_new and all(_is_measured(side[key], quantity) for side in (of_base, of_new))
    ]
    return Comparison(
        changes_of(
            [
                change
                for sides in common
                for change in _alike(*(compared(side, quantity) for side in sides))
            ]
        ),
        _only_in(of_base, of_new, quantity),
        _only_in(of_new, of_base, quantity),
        [result for result in (*base, *new) if result.measured and not result.keeps_up],
        list(_lost(of_base, of_new, quantity)),
        [
            *_differing([(_facts(base), _facts(new)) for base, new in common]),
            *_differing([(base.settings, new.settings) for base, new in common]),
        ],
    )


def compared(result: CellResult, quantity: Quantity | None = None) -> list[Figure]:
    """Return the figures to compare: a *quantity* or, by default, what :func:`figures_of` returns.

    The list is empty if the result does not keep up with its rate, or lacks the quantity.
    """
    if quantity is None:
        return figures_of(result)
    figure = figure_of(result, quantity) if result.keeps_up else None
    return [figure] if figure else []


def _alike(base: Sequence[Figure], new: Sequence[Figure]) -> list[tuple[Figure, Figure]]:
    """Pair the figures of two results that are of one quantity."""
    of_new = {figure.quantity: figure for figure in new}
    return [(one, of_new[one.quantity]) for one in base if one.quantity in of_new]


def _is_measured(result: CellResult, quantity: Quantity | None) -> bool:
    return result.measured and (quantity is None or figure_of(result, quantity) is not None)


_Key = tuple[Any, ...]
"""The benchmark, the contender and the parameters by which cells are compared."""


def _by_key(
    results: Iterable[CellResult], ignored: Collection[str], *, across: bool
) -> dict[_Key, CellResult]:
    by_key: dict[_Key, CellResult] = {}
    for result in results:
        cell = result.cell
        compared = (one.of(cell.parameters) for one in PARAMETERS if one.option not in ignored)
        key = (cell.benchmark, "" if across else cell.column, *compared)
        known = by_key.get(key)
        if known is not None and known.measured and result.measured:
            raise UserError(
                f"--ignore: only ignored options distinguish {long_name(known.cell)} and "
                f"{long_name(cell)}; ignore fewer options"
            )
        if known is None or result.measured:
            by_key[key] = result
    return by_key


def _only_in(
    results: Mapping[_Key, CellResult], others: Mapping[_Key, CellResult],
    quantity: Quantity | None,
) -> list[CellResult]:  # fmt: skip
    return [
        result
        for key, result in results.items()
        if _is_measured(result, quantity)
        and not (key in others and _is_measured(others[key], quantity))
    ]


def _lost(
    of_base: Mapping[_Key, CellResult], of_new: Mapping[_Key, CellResult],
    quantity: Quantity | None,
) -> Iterator[CellResult]:  # fmt: skip
    for key, base in of_base.items():
        new = of_new.get(key, CellResult(base.cell))
        has_failed = new.state is State.FAILED and base.state is not State.FAILED
        there, still_there = (
            {figure.quantity for figure in compared(side, quantity)} for side in (base, new)
        )
        if there and (has_failed or there - still_there):
            yield new


def differing(base: Cell, new: Cell) -> set[str]:
    """Return the options that set parameters in which two cells differ."""
    return {one.option for one in PARAMETERS if one.of(base.parameters) != one.of(new.parameters)}


def verdicts(ratios: Sequence[Ratio]) -> list[Verdict]:
    """Return the verdicts of Student's t-test, corrected for the number of comparisons."""
    p_values = corrected([ratio.log.p_value for ratio in ratios], FALSE_CALLS)
    return [_verdict(ratio, p_value) for ratio, p_value in zip(ratios, p_values, strict=True)]


def _verdict(ratio: Ratio, p_value: float) -> Verdict:
    if p_value <= FALSE_CALLS:
        return Verdict.FASTER if ratio.log.mean > 0 else Verdict.SLOWER
    return Verdict.UNDECIDED if ratio.log.half_width > MAX_WIDTH else Verdict.NO_DIFFERENCE


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
            needed = runs_needed(ratio.log, ratio.runs, MAX_WIDTH)
        changes.append(Change(base, new, ratio, verdict, needed))
    return changes


def ratio_of(base: Figure, new: Figure) -> Ratio:
    """Return how many times better *new* is than *base*, a figure of the same quantity.

    A pair is one amount of each cell, both from the same slice of the same round.  The two amounts
    were measured within about a second of each other.  A run counts as the mean of the logarithms
    of the pairs' ratios.  Runs without a counterpart, such as those after the other cell failed,
    are left out, because the machine may have been faster or slower meanwhile.

    Pairs are used if at least :data:`MIN_RUNS` rounds have pairs.  If the cells have fewer rounds
    than that in common, a single round with pairs is enough.  Without pairs, a run counts as the
    mean of the logarithms of its amounts.  If one command measured both cells, but never both cells
    in the same round, the interval is unknown.
    """
    of_base, of_new = _by_round(base), _by_round(new)
    if base.quantity.sense is Sense.AMOUNT and (exact := _exact_ratio(base, new)):
        return exact
    common = of_base.keys() & of_new.keys()
    in_common = [(of_base[name], of_new[name]) for name in of_base if name in common]
    logs = (
        [math.log(one[number] / other[number]) for number in one if number in other]
        for one, other in in_common
    )
    pairs = list(filter(None, logs))
    paired = bool(pairs) and (len(pairs) >= MIN_RUNS or len(common) < MIN_RUNS)
    runs = len(pairs)
    if paired:
        amounts = mean_of_runs(joined(pairs) if base.result.wanted_seconds else pairs)
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
    no logarithm because it is 0 or less, the ratio is unknown.
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
    if min(*base.amounts, *new.amounts) <= 0:
        return Ratio(Estimate(0.0, 0.0, 0), runs)
    return None


def rounds_needed(results: Iterable[CellResult], baseline: str | None, precision: float) -> int:
    """Predict the number of rounds that a row needs to reach a *precision*.

    The *precision* is half the width of a confidence interval, as a fraction of the figure.  Each
    contender's figure has to reach it, and so does the ratio of each pair to compare.  *results*
    are the measured cells of the row.  With ``--rate``, the figures are two percentiles of
    latencies, and a contender that cannot keep up has no figure.
    """
    there = at_distances(list(results))
    rows = grouped((one.cell.parameters.rtt, (one.cell.column, one)) for one in there).values()
    return max((_rounds_of_row(dict(row), baseline, precision) for row in rows), default=MIN_RUNS)


def _rounds_of_row(
    results: Mapping[str, CellResult], baseline: str | None, precision: float
) -> int:
    """Return the number of rounds that the results at one round-trip time need."""
    shown = {name: figures_of(result) for name, result in results.items()}
    rounds = [
        runs_needed(figure.relative, len(figure.runs), precision)
        for figures in shown.values()
        for figure in figures
    ]
    for names in pairs_to_compare(originals_of([*results.values()]), baseline):
        for base, new in _alike(*(shown[name] for name in names)):
            ratio = ratio_of(base, new)
            made = min(len(base.runs), len(new.runs))
            rounds.append(made - ratio.runs + runs_needed(ratio.log, ratio.runs, precision))
    return max(rounds, default=MIN_RUNS)


_Round = Mapping[int, float]
"""The amounts of a run by the numbers of their slices."""


def _mean_log(rounds: Iterable[_Round]) -> Estimate:
    return mean_of_runs([[math.log(value) for value in values.values()] for values in rounds])


def _by_round(figure: Figure) -> Mapping[str, _Round]:
    """Return the amounts by round; if no rounds are known, every run counts as a round."""
    runs = enumerate(figure.runs)
    return figure.by_round or {f"{id(figure)}-{n}": dict(enumerate(run)) for n, run in runs}


def _commands(rounds: Iterable[str]) -> set[str]:
    """Return the parts of rounds' names that identify runs of the command."""
    return {name.rpartition("-")[0] for name in rounds}


_FACTS = (
    "durability", "durability_detail",
    "environment", "hostname", "platform", "cpu_model_name", "cpu_count", "cpu_affinity",
    "python_implementation", "python_version", "driver", "storage_classes", "sharing",
    "corrections", "packed", "zapped", "uncleared_caches", "profiler",
    "work_per_iteration", "unit",
)  # fmt: skip
"""The metadata that may explain a difference, besides versions and settings."""


def _differing(pairs: Sequence[tuple[Mapping[str, str], Mapping[str, str]]]) -> list[Difference]:
    """Return a difference for each name whose values differ."""
    names = dict.fromkeys(name for pair in pairs for side in pair for name in side)
    differing = []
    for name in names:
        values = [
            (base.get(name, MISSING), new.get(name, MISSING))
            for base, new in pairs
            if base.get(name) != new.get(name)
        ]
        if values:
            base, new = (", ".join(dict.fromkeys(side)) for side in zip(*values, strict=True))
            differing.append(Difference(name, base, new))
    return differing


def _facts(result: CellResult) -> dict[str, str]:
    runs = result.facts
    versions = sorted({key for keys in runs for key in keys if key.startswith("version_")})
    facts = {
        name: dict.fromkeys(str(keys[name]) for keys in runs if name in keys)
        for name in [*_FACTS, *versions]
    }
    return {name: ", ".join(values) for name, values in facts.items() if values}
