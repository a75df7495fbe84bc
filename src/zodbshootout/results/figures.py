"""Figures: one quantity of one cell, with its interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from zodbshootout.model.quantities import TIME, Combine, Quantity, Sense, shown
from zodbshootout.model.units import text_of_range
from zodbshootout.results.cell import Cell
from zodbshootout.results.estimate import MIN_RUNS, Estimate, joined, mean_of, mean_of_runs

if TYPE_CHECKING:
    from zodbshootout.results.result import CellResult

IMPRECISE = 0.1
"""If no precision was requested, a figure is imprecise if the half width of its interval exceeds
this fraction of the figure."""
VAGUE = 0.5
"""A figure has only two digits if half of its interval exceeds this fraction of the figure."""
TILDE = "~"
"""The mark before an imprecise figure."""
_WITHOUT_INTERVAL = frozenset({Combine.LARGEST, Combine.SPREAD})


Round = tuple[str, str]
"""The command that measured a round, and the number of the round in it."""


@dataclass(frozen=True)
class Figure:
    """One quantity of one measured cell."""

    result: CellResult
    quantity: Quantity

    @cached_property
    def runs(self) -> Sequence[Sequence[float]]:
        """The amounts of each run, one for each slice or one for the run, in the quantity's unit.

        Rates have the seconds of an iteration instead.
        """
        return [amounts or () for amounts in _amounts(self.result, self.quantity)]

    @property
    def cell(self) -> Cell:
        return self.result.cell

    @property
    def key(self) -> tuple[Cell, Quantity]:
        """The key by which the same figure is found in other results."""
        return self.cell, self.quantity

    @property
    def name(self) -> str:
        """The name of the quantity if it is one of several figures of the cell, else empty."""
        figures = shown(self.cell.parameters, self.result.facts)
        return self.quantity.name if len(figures) > 1 and self.quantity in figures else ""

    @property
    def amounts(self) -> list[float]:
        """The amounts of all runs."""
        return [amount for run in self.runs for amount in run]

    @cached_property
    def value(self) -> float:
        """The figure, in the unit of the quantity, whose ``combine`` says how runs combine.

        A percentile is that of all iterations of all runs, because percentiles have no mean: 99 %
        of the iterations took at most as long as p99 says, whatever run they were in.
        """
        combine = self.quantity.combine
        if combine is Combine.POOLED:
            percentile = self.quantity.percentile
            return self.result.latencies_at([percentile], self.quantity.kind)[percentile]
        if combine is Combine.LARGEST:
            return max(self.amounts)
        if combine is Combine.SPREAD:
            return statistics.stdev(self.amounts)
        mean = self._mean
        return mean if combine is Combine.MEAN else self.work / mean

    @property
    def _mean(self) -> float:
        weight = self.quantity.weight
        if weight is None:
            return statistics.fmean(self.amounts)
        weights = list(map(weight, self.result.facts))
        means = map(statistics.fmean, self.runs)
        return math.fsum(w * mean for w, mean in zip(weights, means, strict=True)) / sum(weights)

    @property
    def work(self) -> float:
        """The iterations of all clients, or their work, that the figure counts in an iteration."""
        per_client = self.result.work_per_iteration if self.quantity.of_work else 1.0
        return self.cell.parameters.crew.size * per_client

    @cached_property
    def estimate(self) -> Estimate:
        """The mean amount, estimated from runs or, if runs share clients, from batches of runs."""
        known = [list(amounts) for amounts in self.runs if amounts]
        runs = joined(known) if self.result.wanted_seconds else known
        if self.quantity.combine is not Combine.POOLED:
            return mean_of_runs(runs)
        logs = mean_of([statistics.fmean(map(math.log, amounts)) for amounts in runs])
        return replace(logs, mean=self.value, variance=logs.variance * self.value**2)

    @property
    def relative(self) -> Estimate:
        """The estimate divided by its mean, so that the new mean is 1."""
        mean = self.estimate.mean or 1.0
        return replace(self.estimate, mean=1.0, variance=self.estimate.variance / mean**2)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the value; ``None`` if there are too few runs.

        The upper end of a rate may be infinite.
        """
        if len(self.runs) < MIN_RUNS or self.quantity.combine in _WITHOUT_INTERVAL:
            return None
        if self.quantity.combine is Combine.POOLED:
            factor = math.exp(self.relative.half_width)
            return self.value / factor, self.value * factor
        low, high = self.estimate.interval
        if self.quantity.combine is Combine.PER_SECOND:
            return self.work / high, self.work / low if low > 0 else math.inf
        return low, high

    @property
    def half_width(self) -> float | None:
        """The half width of the estimate's interval, as a fraction of the mean."""
        has_interval = self.quantity.combine not in _WITHOUT_INTERVAL
        return self.relative.half_width if has_interval and len(self.runs) >= MIN_RUNS else None

    @property
    def is_imprecise(self) -> bool:
        """Whether the half width is unknown or above the requested precision, by default 10 %.

        A figure that is not watched does not have to be precise, so it is never imprecise.  Figures
        of runs that share clients are never imprecise either.
        """
        is_watched = self.quantity.watched and not self.result.wanted_seconds
        return is_watched and self._is_uncertain

    @property
    def _is_uncertain(self) -> bool:
        wanted = self.result.precision or IMPRECISE
        return self.half_width is None or self.half_width > wanted

    def text(self, digits: int = 0) -> str:
        """Return the figure as it is printed everywhere, with at most *digits* digits, if given."""
        return self.quantity.unit.text(self.value, digits)

    @property
    def entry(self) -> str:
        """The figure as a table shows it: all counts, or a tilde before an uncertain figure."""
        amounts, unit = self.amounts, self.quantity.unit
        is_amount = self.quantity.sense is Sense.AMOUNT
        if is_amount and (unit.is_exact or len(set(amounts)) == 1):
            return text_of_range(unit, amounts)
        has_mark = self.quantity.watched or is_amount
        if not has_mark or self.result.wanted_seconds or not self._is_uncertain:
            return self.text()
        return f"{TILDE}{self.text(3 if (self.half_width or 1.0) <= VAGUE else 2)}"

    @cached_property
    def by_round(self) -> dict[Round, dict[int, float]]:
        """The amounts by round and slice; runs of unknown round or slices are left out."""
        rounds: dict[Round, dict[int, float]] = {}
        facts = self.result.facts
        for run, metadata, amounts in zip(self.result.runs, facts, self.runs, strict=True):
            slices = list(map(int, str(metadata.get("slices", "")).split()))
            if "round" in metadata and len(slices) == len(run.values):
                keys = slices if len(amounts) == len(slices) else range(len(amounts))
                command = str(metadata.get("command_id", ""))
                own = rounds.setdefault((command, str(metadata["round"])), {})
                own.update(zip(keys, amounts, strict=True))
        return rounds


class Figures(dict[Quantity, "Figure | None"]):
    """The figures of a cell by quantity, ``None`` if any of its runs lacks the quantity.

    Each figure is computed when it is first asked for.
    """

    def __init__(self, result: CellResult) -> None:
        self._result = result

    def __missing__(self, quantity: Quantity) -> Figure | None:
        is_recorded = bool(self._result.runs) and _is_recorded(self._result, quantity)
        self[quantity] = Figure(self._result, quantity) if is_recorded else None
        return self[quantity]


def _is_recorded(result: CellResult, quantity: Quantity) -> bool:
    if quantity.combine is Combine.POOLED:
        return result.latencies_of(quantity.kind) is not None
    amounts = _amounts(result, quantity)
    fewest = 2 if quantity.combine is Combine.SPREAD else 1
    return all(amounts) and sum(len(run or ()) for run in amounts) >= fewest


def _amounts(result: CellResult, quantity: Quantity) -> Sequence[Sequence[float] | None]:
    """Return a quantity in each run, ``None`` for a run that lacks it."""
    if quantity.combine is Combine.POOLED:
        return result.percentiles_by_run(quantity.percentile, quantity.kind)
    return [
        quantity.read({**result.parameters, **facts}, run.values)
        for run, facts in zip(result.runs, result.facts, strict=True)
    ]


def time_of(result: CellResult) -> Figure:
    """Return the time of an iteration of a timed cell."""
    return result.figures[TIME] or Figure(result, TIME)


def compared(result: CellResult, quantity: Quantity | None = None) -> list[Figure]:
    """Return the figures to compare: a *quantity* or, by default, those that tables show.

    The list is empty if the result does not keep up with its rate, or lacks the quantity.
    """
    if not (result.measured and result.keeps_up):
        return []
    shown_ones = (one for one in shown(result.cell.parameters, result.facts) if one.watched)
    figures = (result.figures[one] for one in ([quantity] if quantity else shown_ones))
    return [figure for figure in figures if figure is not None]
