"""The limits of ``--require``, and whether a run keeps them."""

from __future__ import annotations

import argparse
import math
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass

from zodbshootout.cli.gate import lack
from zodbshootout.cli.output import Streams
from zodbshootout.cli.values import MAX_PERCENTILE, count_or_zero, number, size
from zodbshootout.errors import ALL_MEASURED, SLOWDOWN, suggestion
from zodbshootout.model.costs import BY_NAME, BYTES, SECONDS
from zodbshootout.model.outcome import State
from zodbshootout.model.specification import LatencyLimit
from zodbshootout.reports.metrics import METRICS, OBJECTS, PERCENTILES, cost_text
from zodbshootout.results.names import long_name
from zodbshootout.results.result import CellResult

_FORM = re.compile(
    r"\s*(?:(?P<contender>.+):\s+)?(?P<benchmark>\S+)\s+(?P<metric>[\w.]+)"
    r"\s*(?P<relation>[<>]=?)\s*(?P<value>\S+)\s*"
)
_PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?)")
_RELATIONS = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt}
_time = number(
    lambda text: LatencyLimit.parsed(f"p50={text}").seconds,
    lambda seconds: seconds > 0,
    "a time in ms or s, such as 50ms",
)
_amount = number(float, lambda amount: 0 <= amount < math.inf, "a number, such as 12")


@dataclass(frozen=True)
class Requirement:
    """A limit for a metric of a benchmark."""

    text: str
    contender: str
    """The contender that the requirement limits; empty for all contenders."""
    benchmark: str
    metric: str
    """A key of :data:`METRICS`, or the name of a cost or a percentile, such as ``p99.9``."""
    relation: str
    limit: float
    """The limit in seconds, bytes, objects per second, or whatever else the metric counts."""

    @classmethod
    def parsed(cls, text: str) -> Requirement:
        """Return a requirement such as ``zeo: update p99 <= 50ms``.

        :raises argparse.ArgumentTypeError: if the text has another form
        """
        match = _FORM.fullmatch(text)
        if match is None:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not [CONTENDER:] BENCHMARK METRIC <= VALUE, such as "
                "'update p99 <= 50ms'"
            )
        contender, benchmark, metric, relation, value = match.groups()
        known = [*METRICS, *BY_NAME]
        if metric not in known and _percentile(metric) is None:
            advice = suggestion(metric, known)
            raise argparse.ArgumentTypeError(f"{text!r}: no metric {metric!r}; {advice}")
        try:
            limit = _limit(metric, value)
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None
        return cls(text.strip(), (contender or "").lower(), benchmark, metric, relation, limit)

    def is_about(self, result: CellResult) -> bool:
        """Return whether the requirement applies to a result."""
        cell = result.cell
        return cell.benchmark == self.benchmark and self.contender in {"", cell.contender.lower()}

    def figure(self, result: CellResult) -> float | None:
        """Return the figure that the requirement limits, ``None`` if the result lacks it."""
        if result.state is not State.MEASURED or not result.keeps_up:
            return None
        if cost := BY_NAME.get(self.metric):
            amounts = result.with_cost(cost)
            return None if amounts is None else amounts.mean
        percentile = _percentile(self.metric)
        if percentile is None:
            return METRICS[self.metric].value(result)
        if result.measures:  # at a rate, the table has the mean of the runs' percentiles
            return result.with_measure(self.metric).mean
        return result.latencies_at([percentile]).get(percentile)

    def outcome(self, result: CellResult) -> tuple[bool, str]:
        """Return a pair: whether a result keeps the requirement, and a line for the user."""
        figure = self.figure(result)
        kept = figure is not None and bool(_RELATIONS[self.relation](figure, self.limit))
        words = self._lack(result) if figure is None else self._text(result, figure)
        return kept, (
            f"{'kept' if kept else 'broken'}: {self.text}: {words} ({long_name(result.cell)})"
        )

    def _text(self, result: CellResult, figure: float) -> str:
        if cost := BY_NAME.get(self.metric):
            return cost_text(cost, figure)
        return METRICS.get(self.metric, PERCENTILES[0]).text(result, figure)

    def _lack(self, result: CellResult) -> str:
        if result.state is State.MEASURED and result.keeps_up:
            return f"no {self.metric} was recorded"
        return ": ".join(filter(None, [lack(result), result.reason]))


def status_of(
    requirements: Sequence[Requirement], results: Sequence[CellResult], streams: Streams
) -> int:
    """Print whether the results keep the requirements, and return the exit status."""
    status = ALL_MEASURED
    for requirement in requirements:
        limited = list(filter(requirement.is_about, results))
        nothing = [(False, f"broken: {requirement.text}: nothing that it limits was measured")]
        for kept, line in map(requirement.outcome, limited) if limited else nothing:
            if kept:
                streams.say(line)
            else:
                streams.complain(line)
                status = SLOWDOWN
    return status


def _percentile(metric: str) -> float | None:
    """Return the number in the name of a percentile, ``None`` for any other name."""
    match = _PERCENTILE.fullmatch(metric)
    percentile = float(match[1]) if match else 0.0
    return percentile if 0 < percentile <= MAX_PERCENTILE else None


def _limit(metric: str, text: str) -> float:
    """Return the value of a limit in the unit of its metric."""
    cost = BY_NAME.get(metric)
    if cost is not None and cost.unit != SECONDS:
        return size(text) if cost.unit == BYTES else _amount(text)
    return count_or_zero(text) if metric == OBJECTS.name else _time(text)
