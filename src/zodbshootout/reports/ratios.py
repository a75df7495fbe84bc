"""Ratios in words: multiples with their intervals, and the sentence that names the winner."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from zodbshootout.model.grouping import grouped
from zodbshootout.model.quantities import Sense
from zodbshootout.model.specification import exactly
from zodbshootout.reports.headings import distance_of, figure_name
from zodbshootout.results.changes import (
    SIGNIFICANT,
    Change,
    Comparison,
    Ratio,
    Verdict,
    mean_ratio,
    verdicts,
)
from zodbshootout.results.result import CellResult

MANY = 7
"""If a sentence is on more benchmarks than this, it groups them by topic, such as writing."""
FEW = 3
"""The maximum number of benchmarks that the summary of a topic names for each verdict."""


@dataclass(frozen=True)
class _Words:
    """The words for differences in quantities of one sense."""

    worse: str
    better: str
    statement: str
    """A statement about two sides; ``{times}`` stands for the ratio."""
    than: str


_WORDS = {
    Sense.SPEED: _Words("slower", "faster", "is {times} times as fast", "as"),
    Sense.LATENCY: _Words(
        "higher latency", "lower latency", "has {times} times lower latency", "than"
    ),
    Sense.AMOUNT: _Words("more", "less", "takes {times} times as much", "as"),
}
_ALIKE = {Verdict.NO_DIFFERENCE: "no difference seen", Verdict.UNDECIDED: "undecided"}


def by_distance(comparison: Comparison) -> list[Comparison]:
    """Divide a comparison into one for each round-trip time."""
    groups = grouped((change.base.cell.parameters.rtt, change) for change in comparison.changes)
    return [replace(comparison, changes=changes) for changes in groups.values()]


def sentence(comparison: Comparison, base: str, new: str) -> str:
    """Compare *new* with *base* at one distance; the sentence is empty if no ratio is known.

    Benchmarks that ask nothing of the storage come last.  The geometric mean of the others is given
    only if all of them differ significantly in the same direction, so that the mean hides nothing.
    """
    changes = [change for change in comparison.changes if change.ratio.is_known]
    if not changes:
        return ""
    distance = f" {distance_of(changes[0].base.result)}".rstrip()
    asking = [change for change in changes if change.base.cell.words.topic]
    if len(comparison.changes) == 1:
        (change,) = changes
        is_significant = change.verdict in SIGNIFICANT
        words = (
            winner(change, base, new) if is_significant else f"{new} and {base}: {alike(change)}"
        )
        clauses = [f"{words}{distance}"]
    elif len(set(map(_name, asking))) > MANY:
        topics = grouped((change.base.cell.words.topic, change) for change in asking)
        clauses = [
            f"{topic}: {', '.join(_texts(_clauses(own, FEW)))}" for topic, own in topics.items()
        ]
    else:
        clauses = _texts(_clauses(asking))
    mean = list(_mean(asking))
    if len(comparison.changes) > 1:
        others = [change for change in changes if not change.base.cell.words.topic]
        if mean or len(set(map(_name, asking))) > MANY:
            # Benchmarks that ask nothing of the storage come after the mean, which leaves them out.
            clauses = [*clauses, *mean, *_texts(_clauses(others))]
        else:
            clauses = _texts([*_clauses(asking), *_clauses(others)])
        clauses[0] = f"{new} against {base}{distance}: {clauses[0]}"
    return "; ".join([*clauses, *_overloaded(comparison.overloaded)])


@dataclass(frozen=True)
class _Clause:
    """The benchmarks with one verdict."""

    verdict: str
    benchmarks: str


def _texts(clauses: Iterable[_Clause]) -> list[str]:
    """Return clauses as text; those on the same verdict become one."""
    by_verdict = grouped((clause.verdict, clause.benchmarks) for clause in clauses)
    return [f"{verdict} at {', '.join(listed)}" for verdict, listed in by_verdict.items()]


def winner(change: Change, base: str, new: str, *, brief: bool = False) -> str:
    """Return the words for a significant difference of two results, called *base* and *new*.

    The words name the faster side or, for costs, the side that takes more.  *brief* words leave out
    the name of the other side.
    """
    first, second = new, base
    ratio, words = shown_ratio(change), _words(change)
    if ratio.value < 1:
        first, second, ratio = base, new, ratio.inverse
    if math.isinf(ratio.value):
        return f"{first} takes some" if brief else f"{first} takes some, and {second} none"
    compared = "" if brief else f" {words.than} {second}"
    return f"{first} {words.statement.format(times=times(ratio))}{compared} {interval(ratio)}"


def shown_ratio(change: Change) -> Ratio:
    """Return the ratio in the direction in which words give it: for amounts, new amount / base."""
    return change.ratio.inverse if _is_amount(change) else change.ratio


def _is_amount(change: Change) -> bool:
    """Return whether a change's figures are amounts of which less is better."""
    return _sense(change) is Sense.AMOUNT and change.base.quantity.better != "more"


def _words(change: Change) -> _Words:
    words = _WORDS[_sense(change)]
    if _sense(change) is not Sense.AMOUNT or _is_amount(change):
        return words
    return replace(words, worse=words.better, better=words.worse)


def _sense(change: Change) -> Sense:
    return change.base.quantity.sense


def alike(change: Change) -> str:
    """Return the words for a difference that is not significant, or for no difference at all."""
    ratio = shown_ratio(change)
    if ratio.is_exact:
        return change.verdict.value if ratio.log.mean else "equal"
    return f"{change.verdict.value} {interval(ratio)}".rstrip()


def speed(changes: Iterable[Change]) -> str:
    """Return the word ``speed``; if latencies are compared, explain that it is 1 / latency."""
    of_latency = any(_sense(change) is Sense.LATENCY for change in changes)
    return "speed (1 / latency at a rate)" if of_latency else "speed"


def times(ratio: Ratio) -> str:
    """Return the value of a ratio with as many decimals as its interval makes meaningful."""
    return f"{ratio.value:,.{_decimals(ratio)}f}"


def interval(ratio: Ratio) -> str:
    """Return the interval of a ratio in parentheses, empty if it is unknown."""
    if not ratio.is_known:
        return ""
    if ratio.is_exact:
        return "(exactly)"
    low, high = (f"{end:,.{_decimals(ratio)}f}" for end in ratio.interval)
    return f"({low} to {high})"


def multiple(value: float) -> str:
    """Return a ratio with two or three significant digits."""
    digits = next((d for d, limit in ((3, 0.0995), (2, 9.995), (1, 99.95)) if value < limit), 0)
    return f"{value:,.{digits}f}"


def _decimals(ratio: Ratio) -> int:
    low, high = ratio.interval
    half_width = (high - low) / 2
    return min(3, max(1, -math.floor(math.log10(half_width)))) if half_width > 0 else 2


def _clauses(changes: Sequence[Change], most: int = MANY) -> Iterator[_Clause]:
    """Yield a clause for each verdict; *most* is the maximum number of benchmarks to name."""
    names = Counter(map(_name, changes))
    by_verdict = grouped((change.verdict, change) for change in changes)
    words_of = _words(changes[0]) if changes else _WORDS[Sense.SPEED]
    worded = {Verdict.SLOWER: words_of.worse, Verdict.FASTER: words_of.better, **_ALIKE}
    for verdict, word in worded.items():
        of_verdict = by_verdict.get(verdict, [])
        own = grouped((_name(change), change) for change in of_verdict)
        is_all = len(of_verdict) == len(changes)
        ratios = _ratios(of_verdict, verdict) if own else ""
        if len(own) > most:
            number = f"all {len(own)}" if is_all else f"{len(own)} of {len(names)}"
            yield _Clause(word, f"{number} benchmarks{f' ({ratios})' if ratios else ''}")
        elif is_all and len(own) > FEW and ratios:
            yield _Clause(word, f"{', '.join(own)} ({ratios})")
        elif own:
            listed = [_listed(name, part, names[name], verdict) for name, part in own.items()]
            yield _Clause(word, ", ".join(listed))


def _listed(name: str, changes: Sequence[Change], of: int, verdict: Verdict) -> str:
    part = f"{len(changes)} of {of} cells" if len(changes) < of else ""
    inner = ", ".join(filter(None, [_ratios(changes, verdict), part]))
    return f"{name} ({inner})" if inner else name


def _ratios(changes: Sequence[Change], verdict: Verdict) -> str:
    """Return the smallest and the greatest ratio of significant differences."""
    if verdict not in SIGNIFICANT:
        return ""
    values = sorted(shown_ratio(change).value for change in changes)
    if _sense(changes[0]) is not Sense.LATENCY:
        return " to ".join(
            dict.fromkeys(f"{multiple(value)}×" for value in (values[0], values[-1]))
        )
    if verdict is Verdict.SLOWER:
        values = [1 / value for value in values[::-1]]
    ends = dict.fromkeys(multiple(value) for value in (values[0], values[-1]))
    return f"{' to '.join(ends)} times"


def _overloaded(results: Iterable[CellResult]) -> Iterator[str]:
    cells = (result.cell for result in results)
    by_contender = grouped((cell.column, f"{exactly(cell.parameters.rate)}/s") for cell in cells)
    for contender, listed in by_contender.items():
        rates = dict.fromkeys(listed)
        yield f"{contender} cannot keep up with {', '.join(rates)}"


def _mean(changes: Sequence[Change]) -> Iterator[str]:
    """Yield the geometric mean over cells if all differ significantly in the same direction."""
    cells = {(change.base.cell, change.new.cell) for change in changes}
    mean = None if changes and _sense(changes[0]) is Sense.AMOUNT else mean_ratio(changes)
    directions = {change.verdict for change in changes}
    if len(cells) == 1 or mean is None or set(verdicts([mean])) & SIGNIFICANT != directions:
        return
    several = len({change.base.cell.benchmark for change in changes}) == len(cells)
    noun = "benchmarks" if several else "cells"
    title = f"geometric mean of these {len(cells)} {noun}"
    if _sense(changes[0]) is Sense.LATENCY:
        word, mean = ("lower", mean) if mean.value > 1 else ("higher", mean.inverse)
        yield f"{title}: {times(mean)} times {word} {interval(mean)}"
    else:
        yield f"{title}: {times(mean)}× {interval(mean)}"


def _name(change: Change) -> str:
    return f"{change.base.cell.benchmark} {figure_name(change.base)}".rstrip()
