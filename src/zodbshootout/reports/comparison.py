"""The report of a comparison: ratios, intervals and verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from zodbshootout.reports.headings import (
    ResultSet,
    counted,
    description,
    group_of,
    in_columns,
    title_of,
)
from zodbshootout.reports.metrics import OBJECTS
from zodbshootout.reports.report import Entry, Report, Row, Style, Table
from zodbshootout.results.comparison import (
    FALSE_CALLS,
    Comparison,
    Difference,
    Pair,
    Ratio,
    Verdict,
    compare,
    pairs_to_compare,
)
from zodbshootout.results.result import CellResult, long_name

VERDICT = "verdict"
MAX_SETTINGS = 4
"""The most differing settings of the configuration that are listed."""
_STYLES = {
    Verdict.FASTER: Style.GOOD,
    Verdict.SLOWER: Style.BAD,
    Verdict.NO_DIFFERENCE: Style.PLAIN,
    Verdict.TOO_FEW: Style.NOTABLE,
}


class Column(NamedTuple):
    """The timed results of one contender."""

    title: str
    results: list[CellResult]


def columns_to_compare(
    result_sets: Sequence[ResultSet], baseline: str | None = None
) -> Iterator[tuple[Column, Column]]:
    """Return pairs of columns, the base of each comparison first.

    *baseline* is the title of the column to compare the others with; see
    :func:`~zodbshootout.results.comparison.pairs_to_compare`.
    """
    timed: dict[str, list[CellResult]] = {}
    originals: dict[str, str] = {}
    for results in result_sets:
        for result in results.results:
            if result.timed:
                title = results.column(result.cell.contender)
                timed.setdefault(title, []).append(result)
                originals[title] = results.column(result.variant_of) if result.variant_of else ""
    titles = dict.fromkeys(title for title, _ in in_columns(result_sets) if title in timed)
    ordered = {title: originals[title] for title in titles}
    for base, new in pairs_to_compare(ordered, baseline):
        yield Column(base, timed[base]), Column(new, timed[new])


def column_report(base: Column, new: Column) -> Report | None:
    """Return the report of a comparison of two columns, ``None`` if they share no cell.

    Its title says how many times as fast *new* is on average.
    """
    comparison = compare(base.results, new.results, across=True)
    if comparison.mean is None:
        return None
    return replace(
        comparison_report(comparison, base.title, new.title),
        title=f"{new.title} against {base.title}: {in_words(comparison.mean)} times as fast",
        sides=(base.title, new.title),
    )


def comparison_report(comparison: Comparison, base: str, new: str) -> Report:
    """Return the report of a comparison whose sides have the titles *base* and *new*.

    There is a table for each contender, crew and kind of objects.
    """
    groups: dict[tuple[object, ...], list[Pair]] = {}
    for pair in comparison.pairs:
        key = (pair.base.cell.contender, *group_of(pair.base))
        groups.setdefault(key, []).append(pair)
    return Report(
        [_table(group, base, new) for group in groups.values()],
        list(_notes(comparison, base, new)),
        [_record(pair) for pair in comparison.pairs],
    )


def in_words(ratio: Ratio) -> str:
    """Return a ratio, and its interval if that is known."""
    low, high = ratio.interval
    interval = "" if high == math.inf else f" ({low:.2f} to {high:.2f})"
    return f"{ratio.value:.2f}{interval}"


def _table(pairs: Sequence[Pair], base: str, new: str) -> Table:
    first = pairs[0]
    names = dict.fromkeys(result.cell.contender for result in (first.base, first.new))
    rate = f"{counted(first.base)} per second (more is better)"
    return Table(
        f"{' and '.join(names)}, {rate}: {description(first.base)}",
        [base, new, "ratio", "95 % interval", VERDICT],
        [_row(pair) for pair in pairs],
        words=frozenset({VERDICT}),
    )


def _row(pair: Pair) -> Row:
    needed = f": needs about {pair.runs_needed} runs" if pair.runs_needed else ""
    return Row(
        title_of(pair.base),
        [
            _rate(pair.base),
            _rate(pair.new),
            Entry(f"{pair.speed.value:.3f}", pair.speed.value),
            Entry(_interval(pair.speed)),
            Entry(f"{pair.verdict.value}{needed}", style=_STYLES[pair.verdict]),
        ],
    )


def _interval(ratio: Ratio) -> str:
    low, high = ratio.interval
    return "unknown" if high == math.inf else f"{low:.3f} to {high:.3f}"


def _rate(result: CellResult) -> Entry:
    value = result.objects_per_second
    return Entry(OBJECTS.text(result, value), value)


def _notes(comparison: Comparison, base: str, new: str) -> Iterator[str]:
    mean = comparison.mean
    if mean is not None and len(comparison.pairs) > 1:
        yield f"Geometric mean of {len(comparison.pairs)} ratios: {in_words(mean)}"
    if comparison.pairs:
        yield f"ratio: {new} / {base}, above 1 where {new} is faster; {_method(comparison.pairs)}"
        yield (
            f"{VERDICT}: at most {FALSE_CALLS:.0%} of those that are called faster or slower are "
            "so by chance (Benjamini-Hochberg)"
        )
    settings = [difference for difference in comparison.differences if difference.setting]
    for difference in comparison.differences:
        if not difference.setting:
            yield f"differs: {difference}"
    if settings:
        yield f"differs: configuration: {_some(settings)}"
    yield from _only(base, comparison.only_base)
    yield from _only(new, comparison.only_new)


def _method(pairs: Sequence[Pair]) -> str:
    paired = sum(pair.speed.paired for pair in pairs)
    if paired == len(pairs):
        return "values taken in turn are compared as pairs, run by run"
    if not paired:
        return "the runs were made at different times, so that there are no pairs"
    return f"values taken in turn are compared as pairs, in {paired} of {len(pairs)} cells"


def _some(settings: Sequence[Difference]) -> str:
    listed = "; ".join(map(str, settings[:MAX_SETTINGS]))
    more = len(settings) - MAX_SETTINGS
    return f"{listed}; and {more} more" if more > 0 else listed


def _only(side: str, results: Iterable[CellResult]) -> Iterator[str]:
    names = ", ".join(long_name(result.cell) for result in results)
    if names:
        yield f"only in {side}: {names}"


def _record(pair: Pair) -> dict[str, Any]:
    low, high = pair.speed.interval
    cell = pair.base.cell
    return {
        "benchmark": cell.benchmark,
        "base_contender": cell.contender,
        "new_contender": pair.new.cell.contender,
        "crew": cell.parameters.crew.code,
        "objects": cell.parameters.objects,
        "object_size_bytes": cell.parameters.object_size,
        "base_per_second": pair.base.objects_per_second,
        "new_per_second": pair.new.objects_per_second,
        "ratio": pair.speed.value,
        "interval_low": low if high < math.inf else None,
        "interval_high": high if high < math.inf else None,
        "verdict": pair.verdict.value,
        "runs_needed": pair.runs_needed,
        "paired": pair.speed.paired,
        "base_runs": len(pair.base.runs),
        "new_runs": len(pair.new.runs),
    }
