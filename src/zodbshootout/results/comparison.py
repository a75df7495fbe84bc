"""Comparing results with others: cell by cell, and all of them together."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from zodbshootout.client.specification import CrewShape, Parameters
from zodbshootout.errors import UserError
from zodbshootout.results.cell import Cell
from zodbshootout.results.differences import Difference, differences
from zodbshootout.results.estimate import mean_of_estimates, runs_needed
from zodbshootout.results.ratio import Ratio, ratio_of
from zodbshootout.results.result import CellResult, long_name

FALSE_CALLS = 0.01
"""Of all cells that are called faster or slower, this part at most is so by chance.

And where none of them differs, this is how often any of a comparison is called different.
"""
TELLING = math.log(1.1)
"""No difference can be told where the interval of a ratio is wider than this to either side."""


class Verdict(Enum):
    """What a comparison of two cells says."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_DIFFERENCE = "no difference seen"
    TOO_FEW = "too few values"


@dataclass(frozen=True)
class Pair:
    """A cell of both sides, compared."""

    base: CellResult
    new: CellResult
    speed: Ratio
    verdict: Verdict
    runs_needed: int | None = None
    """About how many runs of each it takes to tell, where there are too few and several."""

    def slower_than(self, part: float) -> bool:
        """Say whether the new one takes more than *part* longer than the other, for sure."""
        return self.verdict is Verdict.SLOWER and self.speed.interval[1] < 1 / (1 + part)


@dataclass(frozen=True)
class Comparison:
    """What two sides have in common, and what they do not."""

    pairs: Sequence[Pair]
    only_base: Sequence[CellResult]
    only_new: Sequence[CellResult]
    """What was measured on one side alone."""
    differences: Sequence[Difference]

    @property
    def mean(self) -> Ratio | None:
        """Return the geometric mean of the ratios, if there are any."""
        if not self.pairs:
            return None
        return Ratio(mean_of_estimates([pair.speed.log for pair in self.pairs]))


def pairs_to_compare(
    originals: Mapping[str, str], baseline: str | None = None
) -> list[tuple[str, str]]:
    """Return the pairs of contenders to compare, the base of each comparison first.

    *originals* are the measured contenders in order, with the contender of which each is a variant,
    or an empty string.  A variant is compared with its original, any other contender with the
    first; if the user has named a *baseline*, all others are compared with that.
    """
    usual = baseline or next(iter(originals), "")
    bases = {
        name: usual if baseline or not original else original
        for name, original in originals.items()
    }
    return [(base, name) for name, base in bases.items() if base != name and base in originals]


def compare(
    base: Sequence[CellResult],
    new: Sequence[CellResult],
    ignored: Collection[str] = (),
    *,
    across: bool = False,
) -> Comparison:
    """Compare the cells that both sides have measured.

    These are of the same benchmark and of the same parameters but for the *ignored* ones, which
    are named as in :class:`~zodbshootout.client.specification.Parameters`, and those of the crew as
    the options ``concurrency``, ``threads`` and ``hosts``; and unless it goes *across*
    contenders of the same contender.

    :raises UserError: if several cells of a side are alike then
    """
    of_base = _by_key(base, ignored, across=across)
    of_new = _by_key(new, ignored, across=across)
    both = [(of_base[key], of_new[key]) for key in of_base if key in of_new]
    return Comparison(
        _judged(both),
        [result for key, result in of_base.items() if key not in of_new],
        [result for key, result in of_new.items() if key not in of_base],
        differences(both),
    )


def overall(base: Sequence[CellResult], new: Sequence[CellResult]) -> tuple[Ratio, int] | None:
    """Return the geometric mean of the ratios of two contenders, and of how many cells it is.

    ``None`` where they have no cell in common that was measured.
    """
    of_base, of_new = (_by_key(side, across=True) for side in (base, new))
    logs = [ratio_of(of_base[key], of_new[key]).log for key in of_base if key in of_new]
    return (Ratio(mean_of_estimates(logs)), len(logs)) if logs else None


_Key = tuple[str, str, tuple[Any, ...]]


def _by_key(
    results: Sequence[CellResult], ignored: Collection[str] = (), *, across: bool
) -> dict[_Key, CellResult]:
    found: dict[_Key, CellResult] = {}
    for result in results:
        if not result.measured:
            continue
        key = _key(result.cell, ignored, across=across)
        if key in found:
            raise UserError(
                "--ignore: which of these is meant: "
                f"{long_name(found[key].cell)}, {long_name(result.cell)}?"
            )
        found[key] = result
    return found


def _key(cell: Cell, ignored: Collection[str], *, across: bool) -> _Key:
    """Return what a cell has in common with the one it is compared with."""
    unset = _told(Parameters(CrewShape(1)))
    told = {**_told(cell.parameters), **{name: unset[name] for name in ("owner", *ignored)}}
    return cell.benchmark, "" if across else cell.contender, tuple(told.values())


def _told(parameters: Parameters) -> dict[str, Any]:
    """Return parameters by their names; how many clients there are is apart from what they are."""
    crew = parameters.crew
    told = {name: value for name, value in vars(parameters).items() if name != "crew"}
    return {
        **told, "concurrency": crew.size, "threads": (crew.client_kind, crew.shared),
        "hosts": crew.hosts,
    }  # fmt: skip


def differing(base: Cell, new: Cell) -> set[str]:
    """Return the names of the parameters in which two cells differ."""
    of_base, of_new = _told(base.parameters), _told(new.parameters)
    return {name for name in of_base if of_base[name] != of_new[name]}


def verdicts(ratios: Sequence[Ratio]) -> list[Verdict]:
    """Return the verdicts, by Student's t-test and with the correction for many comparisons.

    That is the false discovery rate of Benjamini and Hochberg (Journal of the Royal Statistical
    Society B 57, 1995).
    """
    if not ratios:
        return []
    from scipy.stats import false_discovery_control  # imports for a second

    p_values = false_discovery_control([ratio.log.p_value for ratio in ratios])
    return [
        _verdict(ratio, float(p_value)) for ratio, p_value in zip(ratios, p_values, strict=True)
    ]


def _judged(both: Sequence[tuple[CellResult, CellResult]]) -> list[Pair]:
    ratios = [ratio_of(base, new) for base, new in both]
    return [
        Pair(base, new, ratio, verdict, _runs_needed(base, new, ratio, verdict))
        for (base, new), ratio, verdict in zip(both, ratios, verdicts(ratios), strict=True)
    ]


def _verdict(ratio: Ratio, p_value: float) -> Verdict:
    if p_value <= FALSE_CALLS:
        return Verdict.FASTER if ratio.log.mean > 0 else Verdict.SLOWER
    return Verdict.TOO_FEW if ratio.log.half_width > TELLING else Verdict.NO_DIFFERENCE


def _runs_needed(base: CellResult, new: CellResult, ratio: Ratio, verdict: Verdict) -> int | None:
    if verdict is not Verdict.TOO_FEW or ratio.log.df <= 0:
        return None
    return runs_needed(ratio.log, min(len(base.runs), len(new.runs)), TELLING)
