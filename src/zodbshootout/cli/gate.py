"""The gate: limits for figures (``--require``) and for changes (``--fail-above``), and judgements.

A :class:`Requirement` and :func:`judged` return judgements; :func:`status_of` prints them and
returns the exit status.
"""

from __future__ import annotations

import argparse
import operator
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from zodbshootout.cli.output import Streams
from zodbshootout.cli.values import quantity
from zodbshootout.errors import ALL_MEASURED, SLOWDOWN
from zodbshootout.model.outcome import State
from zodbshootout.model.quantities import Quantity, Sense
from zodbshootout.reports.comparison import remedy
from zodbshootout.results.cell import Cell
from zodbshootout.results.changes import Change
from zodbshootout.results.figures import Figure
from zodbshootout.results.names import long_name
from zodbshootout.results.result import CellResult
from zodbshootout.results.sides import Comparison


class Outcome(Enum):
    """What becomes of a limit."""

    KEPT = "kept"
    BROKEN = "broken"
    MISSING = "missing"
    """There is no figure to judge."""
    UNDECIDED = "undecided"


FAILURES = frozenset({Outcome.BROKEN, Outcome.MISSING})
"""The outcomes with which a run, or a comparison, fails."""


@dataclass(frozen=True)
class Judgement:
    """The outcome of a limit for some cells."""

    outcome: Outcome
    sentence: str
    cells: Sequence[Cell] = ()


def status_of(judgements: Iterable[Judgement], streams: Streams) -> int:
    """Print judgements, and return the exit status."""
    status = ALL_MEASURED
    for one in judgements:
        (streams.say if one.outcome is Outcome.KEPT else streams.complain)(one.sentence)
        if one.outcome in FAILURES:
            status = SLOWDOWN
    return status


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

    def judged(self, results: Iterable[CellResult]) -> Iterator[Judgement]:
        """Yield a judgement on each result that the requirement limits."""
        limited = list(filter(self._is_about, results))
        yield from map(self._judgement, limited)
        if not limited:
            words = f"broken: {self.text}: nothing that it limits was measured"
            yield Judgement(Outcome.MISSING, words)

    def _is_about(self, result: CellResult) -> bool:
        cell = result.cell
        return cell.benchmark == self.benchmark and self.contender in {"", cell.title.lower()}

    def figure(self, result: CellResult) -> Figure | None:
        """Return the figure that the requirement limits, ``None`` if the result lacks it."""
        is_valid = result.state is State.MEASURED and result.keeps_up
        return result.figures[self.quantity] if is_valid else None

    def _judgement(self, result: CellResult) -> Judgement:
        figure = self.figure(result)
        outcome = Outcome.MISSING
        words = ": ".join(filter(None, [_lack(result), result.reason]))
        if figure is not None:
            is_kept = _RELATIONS[self.relation](figure.value, self.limit)
            outcome, words = Outcome.KEPT if is_kept else Outcome.BROKEN, figure.text()
        verb = "broken" if outcome in FAILURES else "kept"
        sentence = f"{verb}: {self.text}: {words} ({long_name(result.cell)})"
        return Judgement(outcome, sentence, [result.cell])


def judged(
    sides: Comparison, limit: float | None, again: Comparison | None = None
) -> Iterator[Judgement]:
    """Yield judgements on the new side: changes worse by more than *limit*, and missing figures.

    The fraction *limit* is that of ``--fail-above``; without it, there are no judgements.  *again*
    is the comparison of a second run, if there was one.  A worse change then counts only if the
    second run, too, finds it significantly worse, with a ratio beyond *limit*, or has no figure.  A
    cell without a figure counts only if it lacks the figure again.
    """
    if limit is None:
        return
    changes, percent = sides.changes, f"{100 * limit:g} %"
    for change in filter(lambda change: change.beyond(limit), changes):
        name = _name(change)
        confirmed = _confirmation(change, limit, again)
        sentence = f"not confirmed by a second run: {name}"
        if confirmed is not None:
            words = change.sentence(sides.base, sides.new)
            sentence = f"worse by more than {percent}{confirmed}: {name}: {words}"
        outcome = Outcome.UNDECIDED if confirmed is None else Outcome.BROKEN
        yield Judgement(outcome, sentence, [change.new.cell])
    worked = {change.new.cell for change in again.changes} if again else set()
    for result in sides.lost:
        name, has_worked = long_name(result.cell), result.cell in worked
        words = f"{_lack(result)}, but the base has a figure: {name}"
        sentence = ": ".join(filter(None, [words, result.reason]))
        if has_worked:
            sentence = f"not confirmed by a second run: {name}"
        outcome = Outcome.UNDECIDED if has_worked else Outcome.MISSING
        yield Judgement(outcome, sentence, [result.cell])
    if undecided := [change for change in changes if change.beyond(limit) is None]:
        cells = list(dict.fromkeys(change.new.cell for change in undecided))
        words = f"too few runs to exclude a slowdown by more than {percent}"
        sentence = f"{words}: {', '.join(map(long_name, cells))}"
        advice = remedy(undecided)
        yield Judgement(Outcome.UNDECIDED, "; ".join(filter(None, [sentence, advice])), cells)


def _confirmation(change: Change, limit: float, again: Comparison | None) -> str | None:
    """Return what a second run says of a finding, ``None`` if it does not confirm the finding."""
    if again is None:
        return ""
    there = [one for one in again.changes if one.new.key == change.new.key]
    if not any(one.ratio.is_known for one in there):
        return ", and the second run has no figure"
    return ", confirmed by a second run" if any(one.is_worse(limit) for one in there) else None


def _name(change: Change) -> str:
    quantity = change.new.quantity
    name = "" if quantity.sense is Sense.SPEED else quantity.name
    return ", ".join(filter(None, [long_name(change.new.cell), name]))


def _lack(result: CellResult) -> str:
    """Return why a result has no figure, in words."""
    if not result.keeps_up:
        return "cannot keep up"
    if result.state is State.MEASURED:
        return "not recorded"
    return "not measured" if result.state is State.NOT_RUN else result.state.value
