"""The limits of ``--require``, and whether a run keeps them."""

from __future__ import annotations

import argparse
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass

from zodbshootout.cli.gate import lack
from zodbshootout.cli.output import Streams
from zodbshootout.cli.values import quantity
from zodbshootout.errors import ALL_MEASURED, SLOWDOWN
from zodbshootout.model.outcome import State
from zodbshootout.model.quantities import Quantity
from zodbshootout.results.figures import Figure, figure_of
from zodbshootout.results.names import long_name
from zodbshootout.results.result import CellResult

_FORM = re.compile(
    r"\s*(?:(?P<contender>.+):\s+)?(?P<benchmark>\S+)\s+(?P<metric>[\w.]+)"
    r"\s*(?P<relation>[<>]=?)\s*(?P<value>\S+)\s*"
)
_RELATIONS = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt}


@dataclass(frozen=True)
class Requirement:
    """A limit for a quantity of a benchmark."""

    text: str
    contender: str
    """The contender that the requirement limits; empty for all contenders."""
    benchmark: str
    quantity: Quantity
    relation: str
    limit: float
    """The limit in the quantity's unit."""

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
        try:
            limited = quantity(metric)
            limit = limited.unit.parsed(value)
        except (argparse.ArgumentTypeError, ValueError) as error:
            raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None
        return cls(text.strip(), (contender or "").lower(), benchmark, limited, relation, limit)

    def is_about(self, result: CellResult) -> bool:
        """Return whether the requirement applies to a result."""
        cell = result.cell
        return cell.benchmark == self.benchmark and self.contender in {"", cell.title.lower()}

    def figure(self, result: CellResult) -> Figure | None:
        """Return the figure that the requirement limits, ``None`` if the result lacks it."""
        is_valid = result.state is State.MEASURED and result.keeps_up
        return figure_of(result, self.quantity) if is_valid else None

    def outcome(self, result: CellResult) -> tuple[bool, str]:
        """Return a pair: whether a result keeps the requirement, and a line for the user."""
        figure = self.figure(result)
        kept = figure is not None and bool(_RELATIONS[self.relation](figure.value, self.limit))
        words = self._lack(result) if figure is None else figure.text()
        return kept, (
            f"{'kept' if kept else 'broken'}: {self.text}: {words} ({long_name(result.cell)})"
        )

    def _lack(self, result: CellResult) -> str:
        if result.state is State.MEASURED and result.keeps_up:
            return f"no {self.quantity.name} was recorded"
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
