"""How many times as fast a cell is as another one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from zodbshootout.results.estimate import Estimate, mean_of_runs
from zodbshootout.results.result import CellResult


@dataclass(frozen=True)
class Ratio:
    """A speed as a multiple of another one, each run being one independent measurement."""

    log: Estimate
    """Of the logarithm of it.  A ratio and its inverse are equally far from 1 there."""
    paired: bool = False
    """Whether both were measured in turn, and values of the same slices were compared."""

    @property
    def value(self) -> float:
        """Return the ratio: above 1 where the second is the faster one."""
        return math.exp(self.log.mean)

    @property
    def interval(self) -> tuple[float, float]:
        """Return the ends of its 95 % confidence interval; from 0 to infinity where unknown."""
        low, high = self.log.interval
        return math.exp(low), math.exp(high) if high < math.inf else math.inf


def ratio_of(base: CellResult, new: CellResult) -> Ratio:
    """Return how many times as fast *new* is as *base*; both have been measured.

    That is about what they do in a second, the figures of the table.  Where both were measured in
    the same rounds, the values of the same slices are pairs, taken within a second or so of each
    other: a run gives the mean of the logarithms of their ratios.  Otherwise it gives the mean of
    its values' logarithms.
    """
    pairs = _pairs(base, new)
    times = _mean_log(base) - _mean_log(new) if pairs is None else mean_of_runs(pairs)
    more_work = math.log(new.work / base.work)
    return Ratio(replace(times, mean=times.mean + more_work), paired=pairs is not None)


def _mean_log(result: CellResult) -> Estimate:
    return mean_of_runs([[math.log(each) for each in run.values] for run in result.runs])


def _pairs(base: CellResult, new: CellResult) -> list[list[float]] | None:
    """Return the logarithms of the ratios of all pairs, run by run.

    ``None`` where the runs of one are not all in the same rounds as those of the other.
    """
    of_base, of_new = _by_round(base), _by_round(new)
    if of_base is None or of_new is None or of_base.keys() != of_new.keys():
        return None
    found = []
    for name, first in of_base.items():
        second = of_new[name]
        pairs = [math.log(first[each] / second[each]) for each in first if each in second]
        if not pairs:
            return None
        found.append(pairs)
    return found


def _by_round(result: CellResult) -> dict[str, dict[int, float]] | None:
    """Return the values of each round by their slices, or ``None`` where that is not known."""
    found: dict[str, dict[int, float]] = {}
    for run in result.runs:
        metadata = run.get_metadata()
        name, slices = metadata.get("round"), _numbers(metadata.get("slices"))
        if not isinstance(name, str) or name in found or len(slices) != len(run.values):
            return None
        found[name] = dict(zip(slices, run.values, strict=True))
    return found


def _numbers(told: Any) -> list[int]:
    return [int(number) for number in str(told or "").split()]
