"""The report of a comparison: ratios, intervals and verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from zodbshootout.reports.figures import OBJECTS
from zodbshootout.reports.headings import Heading, description, group_of, heading_of, title_of
from zodbshootout.reports.report import Entry, Report, Row, Style, Table
from zodbshootout.results.comparison import FALSE_CALLS, Comparison, Pair, Verdict, compare
from zodbshootout.results.differences import Difference
from zodbshootout.results.ratio import Ratio
from zodbshootout.results.result import CellResult, long_name

VERDICT = "verdict"
MAX_SETTINGS = 4
"""Settings of the configuration that are named where they differ."""
_STYLES = {
    Verdict.FASTER: Style.GOOD,
    Verdict.SLOWER: Style.BAD,
    Verdict.NO_DIFFERENCE: Style.PLAIN,
    Verdict.TOO_FEW: Style.NOTABLE,
}


def compared(
    of_base: Sequence[CellResult],
    of_new: Sequence[CellResult],
    base: str,
    new: str,
    headings: Mapping[str, Heading],
) -> Report | None:
    """Return what is printed of a comparison of two contenders, ``None`` if they share no cell.

    Its title says how much faster *new* is on average.
    """
    comparison = compare(of_base, of_new, across=True)
    if not comparison.pairs:
        return None
    mean = f": {in_words(comparison.mean)} times as fast" if comparison.mean else ""
    made = comparison_report(comparison, base, new, headings)
    return replace(made, title=f"{new} against {base}{mean}", sides=(base, new))


def comparison_report(
    comparison: Comparison, base: str, new: str, headings: Mapping[str, Heading]
) -> Report:
    """Return what is printed of a comparison; *base* and *new* are what its sides are called.

    There is a table for each contender, crew and kind of objects.
    """
    groups: dict[tuple[object, ...], list[Pair]] = {}
    for pair in comparison.pairs:
        heading = heading_of(headings, pair.base)
        key = (pair.base.cell.contender, *group_of(pair.base, heading))
        groups.setdefault(key, []).append(pair)
    return Report(
        [_table(group, base, new, headings) for group in groups.values()],
        list(_notes(comparison, base, new)),
        [_record(pair) for pair in comparison.pairs],
    )


def in_words(ratio: Ratio) -> str:
    """Return a ratio and its interval, if that is known."""
    low, high = ratio.interval
    interval = "" if high == math.inf else f" ({low:.2f} to {high:.2f})"
    return f"{ratio.value:.2f}{interval}"


def _table(pairs: Sequence[Pair], base: str, new: str, headings: Mapping[str, Heading]) -> Table:
    first = pairs[0]
    heading = heading_of(headings, first.base)
    names = dict.fromkeys(each.cell.contender for each in (first.base, first.new))
    counted = f"{heading.counted} per second (more is better)"
    return Table(
        f"{' and '.join(names)}, {counted}: {description(first.base, heading)}",
        [base, new, "ratio", "95 % interval", VERDICT],
        [_row(pair, headings) for pair in pairs],
        words=frozenset({VERDICT}),
    )


def _row(pair: Pair, headings: Mapping[str, Heading]) -> Row:
    needed = f": needs about {pair.runs_needed} runs" if pair.runs_needed else ""
    return Row(
        title_of(pair.base, headings),
        [
            _figure(pair.base),
            _figure(pair.new),
            Entry(f"{pair.speed.value:.3f}", pair.speed.value),
            Entry(_precise(pair.speed)),
            Entry(f"{pair.verdict.value}{needed}", style=_STYLES[pair.verdict]),
        ],
    )


def _precise(ratio: Ratio) -> str:
    low, high = ratio.interval
    return "unknown" if high == math.inf else f"{low:.3f} to {high:.3f}"


def _figure(result: CellResult) -> Entry:
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
    settings = [each for each in comparison.differences if each.setting]
    yield from (f"differs: {each}" for each in comparison.differences if not each.setting)
    if settings:
        yield f"differs: configuration: {_some(settings)}"
    yield from _alone(base, comparison.only_base)
    yield from _alone(new, comparison.only_new)


def _method(pairs: Sequence[Pair]) -> str:
    paired = sum(pair.speed.paired for pair in pairs)
    if paired == len(pairs):
        return "values taken in turn are compared as pairs, run by run"
    if not paired:
        return "the runs were made at different times, so that there are no pairs"
    return f"values taken in turn are compared as pairs, in {paired} of {len(pairs)} cells"


def _some(settings: Sequence[Difference]) -> str:
    told = "; ".join(map(str, settings[:MAX_SETTINGS]))
    more = len(settings) - MAX_SETTINGS
    return f"{told}; and {more} more" if more > 0 else told


def _alone(side: str, results: Iterable[CellResult]) -> Iterator[str]:
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
