"""Sentences about several changes: at which benchmarks a side is better, and by how much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from zodbshootout.model.grouping import grouped
from zodbshootout.model.quantities import Sense
from zodbshootout.model.specification import exactly
from zodbshootout.reports.headings import distance_of
from zodbshootout.results.changes import Change, mean_ratio
from zodbshootout.results.ratios import SIGNIFICANT, Verdict, multiple, verdicts
from zodbshootout.results.result import CellResult
from zodbshootout.results.sides import Comparison

MANY = 7
"""If a sentence is on more benchmarks than this, it groups them by topic, such as writing."""
FEW = 3
"""The maximum number of benchmarks that the summary of a topic names for each verdict."""
_ALIKE = {Verdict.NO_DIFFERENCE: "no difference seen", Verdict.UNDECIDED: "undecided"}


def sentence(comparison: Comparison) -> str:
    """Compare two sides at one distance; the sentence is empty if no ratio is known.

    Benchmarks that ask nothing of the storage come last.  The geometric mean of the others is given
    only if all of them differ significantly in the same direction, so that the mean hides nothing.
    """
    base, new = comparison.base, comparison.new
    changes = [change for change in comparison.changes if change.ratio.is_known]
    if not changes:
        return ""
    distance = f" {distance_of(changes[0].base.result)}".rstrip()
    if len(comparison.changes) == 1:
        clauses = [f"{changes[0].sentence(base, new)}{distance}"]
    else:
        first, *others = _summary(changes)
        clauses = [f"{new} against {base}{distance}: {first}", *others]
    return "; ".join([*clauses, *_overloaded(comparison.overloaded)])


def _summary(changes: Sequence[Change]) -> list[str]:
    """Return clauses on several changes."""
    asking, others = (
        [change for change in changes if bool(change.base.cell.words.topic) == is_asking]
        for is_asking in (True, False)
    )
    mean = list(_mean(asking))
    clauses = _texts(_clauses(asking))
    if len({change.name for change in asking}) > MANY:
        topics = grouped((change.base.cell.words.topic, change) for change in asking)
        clauses = [
            f"{topic}: {', '.join(_texts(_clauses(own, FEW)))}" for topic, own in topics.items()
        ]
    elif not mean:
        return _texts([*_clauses(asking), *_clauses(others)])
    return [*clauses, *mean, *_texts(_clauses(others))]


def _texts(clauses: Iterable[tuple[str, str]]) -> list[str]:
    """Return a text for each verdict; a clause is the word for a verdict, and benchmarks."""
    return [f"{verdict} at {', '.join(listed)}" for verdict, listed in grouped(clauses).items()]


def speed(changes: Iterable[Change]) -> str:
    """Return the word ``speed``; if latencies are compared, explain that it is 1 / latency."""
    of_latency = any(change.base.quantity.sense is Sense.LATENCY for change in changes)
    return "speed (1 / latency at a rate)" if of_latency else "speed"


def _clauses(changes: Sequence[Change], most: int = MANY) -> Iterator[tuple[str, str]]:
    """Yield a clause for each verdict; *most* is the maximum number of benchmarks to name."""
    names = Counter(change.name for change in changes)
    by_verdict = grouped((change.verdict, change) for change in changes)
    for verdict in Verdict:
        if verdict not in by_verdict:
            continue
        of_verdict = by_verdict[verdict]
        words = of_verdict[0].words
        word = {Verdict.SLOWER: words.worse, Verdict.FASTER: words.better, **_ALIKE}[verdict]
        own = grouped((change.name, change) for change in of_verdict)
        is_all = len(of_verdict) == len(changes)
        ratios = _ratios(of_verdict, verdict)
        if len(own) > most:
            number = f"all {len(own)}" if is_all else f"{len(own)} of {len(names)}"
            yield word, f"{number} benchmarks{f' ({ratios})' if ratios else ''}"
        elif is_all and len(own) > FEW and ratios:
            yield word, f"{', '.join(own)} ({ratios})"
        else:
            listed = [_listed(name, part, names[name], verdict) for name, part in own.items()]
            yield word, ", ".join(listed)


def _listed(name: str, changes: Sequence[Change], of: int, verdict: Verdict) -> str:
    part = f"{len(changes)} of {of} cells" if len(changes) < of else ""
    inner = ", ".join(filter(None, [_ratios(changes, verdict), part]))
    return f"{name} ({inner})" if inner else name


def _ratios(changes: Sequence[Change], verdict: Verdict) -> str:
    """Return the smallest and the greatest ratio of significant differences."""
    if verdict not in SIGNIFICANT:
        return ""
    values = sorted(change.shown.value for change in changes)
    if changes[0].base.quantity.sense is not Sense.LATENCY:
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
    mean = (
        None if changes and changes[0].base.quantity.sense is Sense.AMOUNT else mean_ratio(changes)
    )
    directions = {change.verdict for change in changes}
    if len(cells) == 1 or mean is None or set(verdicts([mean])) & SIGNIFICANT != directions:
        return
    several = len({change.base.cell.benchmark for change in changes}) == len(cells)
    noun = "benchmarks" if several else "cells"
    title = f"geometric mean of these {len(cells)} {noun}"
    if changes[0].base.quantity.sense is Sense.LATENCY:
        word, mean = ("lower", mean) if mean.value > 1 else ("higher", mean.inverse)
        yield f"{title}: {mean.times} times {word} {mean.within}"
    else:
        yield f"{title}: {mean.times}× {mean.within}"
