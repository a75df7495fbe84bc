"""Comparisons of results: the pairs of cells, ratios of speeds, verdicts, and other differences."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from zodbshootout.client.specification import Parameters
from zodbshootout.errors import UserError
from zodbshootout.results.cell import Cell
from zodbshootout.results.estimate import Estimate, mean_of_estimates, mean_of_runs, runs_needed
from zodbshootout.results.result import CellResult, long_name

FALSE_CALLS = 0.01
"""The false discovery rate: the share of chance findings among cells called faster or slower.

If no cell differs, it is the probability that a comparison calls any cell different.
"""
COMPARED = ("p50", "p99")
"""The percentiles that are compared if iterations come at a rate."""
MAX_WIDTH = math.log(1.1)
"""The largest half width of a ratio's logarithm with which a verdict can be no difference."""


@dataclass(frozen=True)
class Ratio:
    """The speed of a new cell as a multiple of that of its base."""

    log: Estimate
    """The logarithm of the ratio, in which a ratio and its inverse are equally far from 1."""
    paired: bool = False
    """Whether both cells were measured in turn, and values of the same slices were compared."""

    @property
    def value(self) -> float:
        """The ratio itself, above 1 if the new cell is the faster one."""
        return math.exp(self.log.mean)

    @property
    def is_known(self) -> bool:
        """Whether there are enough runs for an interval."""
        return self.log.df > 0

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the 95 % confidence interval: 0 and infinity if it is unknown."""
        low, high = self.log.interval
        return math.exp(low), math.exp(high)

    @property
    def inverse(self) -> Ratio:
        """The speed of the base as a multiple of that of the new cell."""
        return replace(self, log=replace(self.log, mean=-self.log.mean))


class Verdict(Enum):
    """The outcome of a comparison."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_DIFFERENCE = "no significant difference"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Pair:
    """The results of both sides that are compared, and their comparison."""

    base: CellResult
    new: CellResult
    speed: Ratio
    verdict: Verdict
    runs_needed: int | None = None
    """The predicted number of runs of each cell for a verdict, if there is none yet."""

    @property
    def seconds_needed(self) -> float:
        """The predicted duration of the missing runs, in seconds."""
        if self.runs_needed is None:
            return 0.0
        seconds = self.base.run_seconds, self.new.run_seconds
        runs = self.runs_needed - min(len(self.base.runs), len(self.new.runs))
        # Paired runs are made in turn, so the duration of each includes those of the others.
        return runs * (max(seconds) if self.speed.paired else sum(seconds))

    def slower_than(self, part: float) -> bool:
        """Return whether *new* certainly takes more than 1 + *part* times as long as *base*."""
        return self.verdict is Verdict.SLOWER and self.speed.interval[1] < 1 / (1 + part)

    def may_be_slower_than(self, part: float) -> bool:
        """Return whether *new* may take more than 1 + *part* times as long as *base*."""
        return self.speed.interval[0] < 1 / (1 + part)


@dataclass(frozen=True)
class Comparison:
    """The cells that two sides have in common, and those that only one has."""

    pairs: Sequence[Pair]
    only_base: Sequence[CellResult]
    only_new: Sequence[CellResult]
    overloaded: Sequence[CellResult]
    """Cells of both sides that cannot keep up with their rate, and so have no latencies."""
    differences: Sequence[str]
    """The facts that differ, then the settings of the contenders that differ."""

    @property
    def mean(self) -> Ratio | None:
        """The geometric mean of the ratios whose intervals are known, if there are any."""
        known = [pair.speed.log for pair in self.pairs if pair.speed.is_known]
        return Ratio(mean_of_estimates(known)) if known else None


def pairs_to_compare(
    originals: Mapping[str, str], baseline: str | None = None
) -> list[tuple[str, str]]:
    """Return the pairs of contenders to compare, the base of each comparison first.

    *originals* are the measured contenders in order, with the contender of which each is a variant,
    or an empty string.  A variant is compared with its original, any other contender with the
    first; if the user has named a *baseline*, all others are compared with that.
    """
    first = next(iter(originals), "")
    bases = {name: baseline or original or first for name, original in originals.items()}
    return [(base, name) for name, base in bases.items() if base != name and base in originals]


def compare(
    base: Sequence[CellResult],
    new: Sequence[CellResult],
    ignored: Collection[str] = (),
    *,
    across: bool = False,
) -> Comparison:
    """Compare the cells that both sides have measured.

    Two cells are compared if they have the same benchmark, the same parameters (except those that
    are *ignored*) and the same contender (unless contenders are compared *across* their names).
    The names of parameters are those of :class:`~zodbshootout.client.specification.Parameters`, and
    for the crew those of the options ``concurrency``, ``threads`` and ``hosts``.

    :raises UserError: if several cells of one side are then the same
    """
    of_base = _by_key(_with_measures(base), ignored, across=across)
    of_new = _by_key(_with_measures(new), ignored, across=across)
    common = [(of_base[key], of_new[key]) for key in of_base if key in of_new]
    return Comparison(
        _pairs(common),
        [result for key, result in of_base.items() if key not in of_new],
        [result for key, result in of_new.items() if key not in of_base],
        [result for result in (*base, *new) if result.measures and not result.keeps_up],
        [
            *_differing([(_facts(base), _facts(new)) for base, new in common]),
            *_differing([(_settings(base), _settings(new)) for base, new in common]),
        ],
    )


def _with_measures(results: Sequence[CellResult]) -> Iterator[CellResult]:
    """Yield the results to compare: for iterations at a rate, their median and tail latencies."""
    for result in results:
        if not result.measures:
            yield result
        elif result.keeps_up:
            yield from (result.measures[name] for name in COMPARED)


def _by_key(
    results: Iterable[CellResult], ignored: Collection[str], *, across: bool
) -> dict[tuple[Any, ...], CellResult]:
    by_key: dict[tuple[Any, ...], CellResult] = {}
    for result in results:
        if not result.measured:
            continue
        cell = result.cell
        parameters = _by_name(cell.parameters)
        compared = (value for name, value in parameters.items() if name not in ignored)
        key = (cell.benchmark, "" if across else cell.contender, *compared, result.measure)
        if key in by_key:
            raise UserError(
                "--ignore: which of these is meant: "
                f"{long_name(by_key[key].cell)}, {long_name(cell)}?"
            )
        by_key[key] = result
    return by_key


def _by_name(parameters: Parameters) -> dict[str, Any]:
    crew = parameters.crew
    return {
        **{name: value for name, value in vars(parameters).items() if name != "crew"},
        "concurrency": crew.size,
        "threads": (crew.client_kind, crew.shared),
        "hosts": crew.hosts,
    }


def differing(base: Cell, new: Cell) -> set[str]:
    """Return the names of the parameters in which two cells differ."""
    of_base, of_new = _by_name(base.parameters), _by_name(new.parameters)
    return {name for name in of_base if of_base[name] != of_new[name]}


def verdicts(ratios: Sequence[Ratio]) -> list[Verdict]:
    """Return the verdicts, by Student's t-test, corrected for the number of comparisons.

    The correction is that of the false discovery rate by Benjamini and Hochberg (Journal of the
    Royal Statistical Society B 57, 1995).
    """
    p_values = [ratio.log.p_value for ratio in ratios]
    if min(p_values, default=1.0) <= FALSE_CALLS:  # the correction does not lower a p-value
        from scipy.stats import false_discovery_control  # the import takes a second

        p_values = false_discovery_control(p_values).tolist()
    return [_verdict(ratio, p_value) for ratio, p_value in zip(ratios, p_values, strict=True)]


def _verdict(ratio: Ratio, p_value: float) -> Verdict:
    if p_value <= FALSE_CALLS:
        return Verdict.FASTER if ratio.log.mean > 0 else Verdict.SLOWER
    return Verdict.UNDECIDED if ratio.log.half_width > MAX_WIDTH else Verdict.NO_DIFFERENCE


def _pairs(cells: Sequence[tuple[CellResult, CellResult]]) -> list[Pair]:
    ratios = [ratio_of(base, new) for base, new in cells]
    pairs = []
    for (base, new), ratio, verdict in zip(cells, ratios, verdicts(ratios), strict=True):
        needed = None
        if verdict is Verdict.UNDECIDED:
            needed = runs_needed(ratio.log, min(len(base.runs), len(new.runs)), MAX_WIDTH)
        pairs.append(Pair(base, new, ratio, verdict, needed))
    return pairs


def ratio_of(base: CellResult, new: CellResult) -> Ratio:
    """Return how many times as fast *new* is as *base*, two measured cells.

    The speeds are the figures of the table: work per second.  If the runs of both were made in the
    same rounds, the values of the same slices are pairs, measured within about a second, and a run
    counts as the mean of the logarithms of their ratios.  Otherwise a run counts as the mean of the
    logarithms of its values.
    """
    pairs = _logs_of_pairs(base, new)
    times = _mean_log(base) - _mean_log(new) if pairs is None else mean_of_runs(pairs)
    more_work = math.log(new.work / base.work)
    return Ratio(replace(times, mean=times.mean + more_work), paired=pairs is not None)


def rounds_needed(results: Mapping[str, CellResult], baseline: str | None, precision: float) -> int:
    """Predict the number of rounds after which a row has a *precision*.

    Then the figure of each contender has it, and so has its ratio to the contender that it is
    compared with.  *results* are the measured cells of the row, by contender; *precision* is half
    of the width of a confidence interval, as a fraction of the figure.
    """
    estimates = [(result.relative, len(result.runs)) for result in results.values()]
    originals = {name: result.variant_of for name, result in results.items()}
    for pair in pairs_to_compare(originals, baseline):
        base, new = (results[name] for name in pair)
        estimates.append((ratio_of(base, new).log, min(len(base.runs), len(new.runs))))
    return max(runs_needed(estimate, runs, precision) for estimate, runs in estimates)


def _mean_log(result: CellResult) -> Estimate:
    return mean_of_runs([[math.log(value) for value in run.values] for run in result.runs])


def _logs_of_pairs(base: CellResult, new: CellResult) -> list[list[float]] | None:
    """Return the logarithms of the ratios, run by run, or ``None`` if the rounds differ."""
    of_base, of_new = _by_round(base), _by_round(new)
    if of_base is None or of_new is None or of_base.keys() != of_new.keys():
        return None
    runs = []
    for name, first in of_base.items():
        second = of_new[name]
        runs.append([math.log(first[n] / second[n]) for n in first if n in second])
    return runs if all(runs) else None


def _by_round(result: CellResult) -> dict[str, dict[int, float]] | None:
    """Return each round's values by slice number, or ``None`` if rounds or slices are unknown."""
    rounds: dict[str, dict[int, float]] = {}
    for run in result.runs:
        metadata = run.get_metadata()
        name = metadata.get("round")
        slices = [int(number) for number in str(metadata.get("slices") or "").split()]
        if not isinstance(name, str) or name in rounds or len(slices) != len(run.values):
            return None
        rounds[name] = dict(zip(slices, run.values, strict=True))
    return rounds


_FACTS = (
    "environment", "hostname", "platform", "cpu_model_name", "cpu_count", "cpu_affinity",
    "python_implementation", "python_version", "driver", "storage_classes", "sharing",
    "corrections", "packed", "zapped", "servers_restarted", "uncleared_caches", "profiler",
    "work_per_iteration", "unit",
)  # fmt: skip
"""The metadata that may explain a difference, besides versions and settings."""


def _differing(pairs: Sequence[tuple[dict[str, str], dict[str, str]]]) -> list[str]:
    """Return the names and both values of what differs; ``-`` stands for a missing value."""
    names = dict.fromkeys(name for pair in pairs for side in pair for name in side)
    differing = []
    for name in names:
        values = [
            (base.get(name, "-"), new.get(name, "-"))
            for base, new in pairs
            if base.get(name) != new.get(name)
        ]
        if values:
            base, new = (", ".join(dict.fromkeys(side)) for side in zip(*values, strict=True))
            differing.append(f"{name}: {base} against {new}")
    return differing


def _facts(result: CellResult) -> dict[str, str]:
    metadata = [run.get_metadata() for run in result.runs]
    versions = sorted({key for keys in metadata for key in keys if key.startswith("version_")})
    facts = {
        name: dict.fromkeys(str(keys[name]) for keys in metadata if name in keys)
        for name in [*_FACTS, *versions]
    }
    return {name: ", ".join(values) for name, values in facts.items() if values}


def _settings(result: CellResult) -> dict[str, str]:
    try:
        return {name: str(value) for name, value in json.loads(result.metadata["settings"]).items()}
    except (KeyError, ValueError, AttributeError):
        # Files of 1.0.0.dev0 have settings only as text.
        settings = str(result.metadata.get("configuration", "")).split("; ")
        pairs = (setting.partition("=") for setting in settings if setting)
        return {name: value for name, _, value in pairs}
