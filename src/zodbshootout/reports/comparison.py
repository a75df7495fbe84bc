"""The report of a comparison: ratios, intervals and verdicts, in words that name the winner."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from zodbshootout.model.grouping import grouped
from zodbshootout.model.quantities import Sense
from zodbshootout.model.settings import SECTION
from zodbshootout.model.wording import counted
from zodbshootout.reports.cells import Cells
from zodbshootout.reports.elements import Entry, Listing, Note, Report, Row, Style, Table
from zodbshootout.reports.headings import (
    data_axis,
    description,
    figure_titles,
    group_of,
    pace_of,
    title_of,
)
from zodbshootout.reports.sentences import sentence
from zodbshootout.results.changes import Change
from zodbshootout.results.figures import Figure
from zodbshootout.results.names import long_name
from zodbshootout.results.ratios import FALSE_CALLS, Verdict, multiple
from zodbshootout.results.result import CellResult
from zodbshootout.results.sides import (
    Comparison,
    Difference,
    compare,
    originals_of,
    pairs_to_compare,
)

VERDICT = "verdict"
NOT_SIGNIFICANT = "?"
"""The mark, instead of ×, after a ratio that may differ from 1 by chance."""
MAX_DIFFERENCES = 4
"""The maximum number of different facts and settings that a note lists without ``--verbose``."""
SCRATCH = "$scratch"
"""In settings, the placeholder for the directory in which the harness makes databases."""
STYLES = {
    Verdict.FASTER: Style.GOOD,
    Verdict.SLOWER: Style.BAD,
    Verdict.NO_DIFFERENCE: Style.PLAIN,
    Verdict.UNDECIDED: Style.DIM,
}


def comparisons_of_columns(cells: Cells, baseline: str | None = None) -> list[Comparison]:
    """Compare columns that share cells; *baseline* is the title of the column to compare with.

    See :func:`~zodbshootout.results.sides.pairs_to_compare`.
    """
    timed = grouped(cells.timed)
    originals = {
        file.column(name): original and file.column(original)
        for file in cells.files
        for name, original in originals_of([r for r in file.at_distances if r.timed]).items()
    }
    releases = {name for family in cells.families for name in family.values}
    ordered = {title: originals[title] for title in cells.columns if title in originals}
    comparisons = [
        replace(
            compare(timed[base], timed[new], across=True),
            base=base,
            new=new,
            is_variant=originals[new] == base and new not in releases,
            is_release=new in releases,
        )
        for base, new in pairs_to_compare(ordered, baseline)
    ]
    return [comparison for comparison in comparisons if comparison.changes]


def ratio_entry(change: Change | None) -> Entry | None:
    """Return the ratio of a change as an entry, ``None`` if it is unknown."""
    if change is None or not change.ratio.is_known:
        return None
    mark = "×" if change.is_significant else NOT_SIGNIFICANT
    value = change.ratio.value
    return Entry(f"{multiple(value)}{mark}", value, STYLES[change.verdict], change.ratio.within)


def comparison_report(sides: Comparison, title: str = "", *, verbose: bool = False) -> Report:
    """Return the report of a comparison.

    There is a table for each combination of contender, clients and kind of objects.  A *verbose*
    report lists all facts and settings that differ.
    """
    groups = grouped(
        ((change.base.cell.column, *group_of(change.base.result)), change)
        for change in sides.changes
    )
    others = _by_importance(sides.differences)[MAX_DIFFERENCES:] if verbose else []
    return Report(
        [_table(group, sides.base, sides.new) for group in groups.values()],
        list(map(Note, _notes(sides, verbose=verbose))),
        [_record(change) for change in sides.changes],
        title=title,
        listings=[Listing(f"Other differences ({len(others)})", "\n".join(map(str, others)))]
        * bool(others),
        sides=(sides.base, sides.new),
    )


def _table(changes: Sequence[Change], base: str, new: str) -> Table:
    first = changes[0].base.result
    names = dict.fromkeys(side.cell.column for side in (changes[0].base, changes[0].new))
    changes = sorted(changes, key=lambda change: change.base.cell.parameters.rate)
    quantities = list(dict.fromkeys(change.base.quantity for change in changes))
    axis = data_axis(change.base.result for change in changes)
    rows = [
        Row(
            title,
            [_entry(change.base), _entry(change.new), _verdict(change, base, new)],
            ", ".join(filter(None, [title_of(change.base.result), change.base.name])),
        )
        for title, change in zip(
            figure_titles([change.base for change in changes]), changes, strict=True
        )
    ]
    words = "latency"
    if len(quantities) == 1:
        words = quantities[0].caption.format(counted=first.cell.words.counted)
        if quantities[0].sense is Sense.SPEED:
            words = f"{words} {pace_of(first.cell.parameters)}".rstrip()
    return Table(
        f"{' and '.join(names)}, {words}: {description(first, axis)}",
        [base, new, VERDICT],
        rows,
        words=frozenset({VERDICT}),
    )


def _entry(figure: Figure) -> Entry:
    return Entry(figure.text(), figure.value)


def _verdict(change: Change, base: str, new: str) -> Entry:
    more = _obstacle(change, base, new) or remedy([change])
    words = ": ".join(filter(None, [change.sentence(base, new, brief=True), more]))
    return Entry(words, style=STYLES[change.verdict])


def _obstacle(change: Change, base: str, new: str) -> str:
    """Return the reason, if any, why more runs would not decide a change."""
    sides = ((base, change.base), (new, change.new))
    slower = [title for title, side in sides if side.result.gets_slower]
    if not (slower and change.runs_needed):
        return ""
    return "both get slower with time" if slower[1:] else f"{slower[0]} gets slower with time"


def remedy(changes: Iterable[Change]) -> str:
    """Describe the runs that would decide the undecided *changes*; empty if all are decided.

    Leave out changes with a side that gets slower with time: more runs would not help.  Leave out
    those whose runs share clients (``--for``), too: the clients have ended, so no run can be added.
    """
    needed = [
        change
        for change in changes
        if change.runs_needed
        and not any(
            side.result.gets_slower or side.result.wanted_seconds
            for side in (change.base, change.new)
        )
    ]
    if not needed:
        return ""
    runs = max(change.runs_needed or 0 for change in needed)
    minutes = sum(change.seconds_needed for change in needed) / 60
    return f"{in_minutes(minutes)} (-p {runs})" if minutes else f"needs -p {runs}"


def in_minutes(minutes: float) -> str:
    """Return words for additional *minutes*, rounded up."""
    return f"about {counted(max(1, math.ceil(minutes)), 'more minute')}"


def _notes(sides: Comparison, *, verbose: bool) -> Iterator[str]:
    if len(sides.changes) > 1:
        yield from filter(None, map(sentence, sides.by_distance))
    yield from _method(sides.changes)
    yield from _differences(sides, verbose=verbose)
    for side, results in ((sides.base, sides.only_base), (sides.new, sides.only_new)):
        if results:
            yield f"only in {side}: {_names(results)}"
    if sides.overloaded:
        yield f"cannot keep up, so not compared: {_names(sides.overloaded)}"


def _names(results: Iterable[CellResult]) -> str:
    return ", ".join(dict.fromkeys(long_name(result.cell) for result in results))


def _method(changes: Sequence[Change]) -> Iterator[str]:
    if not changes:
        return
    yield from exceptions(changes)
    paired = sum(change.ratio.paired for change in changes)
    how = (
        "the ratios are those of values that were taken in turn; " if paired == len(changes) else ""
    )
    yield (
        f"{how}at most {FALSE_CALLS:.0%} of the differences that are called significant are so "
        "by chance"
    )


def exceptions(changes: Sequence[Change]) -> Iterator[str]:
    """Yield a line about ratios that leave out runs, and one about ratios of unpaired values."""
    some = [change for change in changes if change.ratio.left_out]
    if some:
        left_out = sum(change.ratio.left_out for change in some)
        runs = sum(len(change.base.runs) + len(change.new.runs) for change in some)
        yield (
            f"{_places(some, changes)} leave out {left_out} of {runs} runs: no run of the other "
            "side was made in turn with them"
        )
    # Exact costs, such as numbers of round trips, need no pairs: they do not change with time.
    unpaired = [
        change
        for change in changes
        if 0 < change.ratio.log.df < math.inf and not change.ratio.paired
    ]
    if unpaired:
        yield (
            f"{_places(unpaired, changes)} are not from pairs of values: the runs were made at "
            "different times"
        )


def _places(changes: Sequence[Change], all_changes: Sequence[Change]) -> str:
    if len(changes) == len(all_changes):
        return "the ratios"
    benchmarks = grouped((change.new.cell.column, change.new.cell.benchmark) for change in changes)
    listed = (f"{name} ({', '.join(dict.fromkeys(own))})" for name, own in benchmarks.items())
    return f"the ratios of {', '.join(listed)}"


def _differences(comparison: Comparison, *, verbose: bool) -> Iterator[str]:
    differences = _by_importance(comparison.differences)
    first, more = differences[:MAX_DIFFERENCES], differences[MAX_DIFFERENCES:]
    if verbose:
        yield from (f"differs: {difference}" for difference in first)
    elif differences:
        rest = [f"and {len(more)} more (--verbose)"] if more else []
        yield f"differs: {'; '.join([*map(str, first), *rest])}"


def _by_importance(differences: Sequence[Difference]) -> list[Difference]:
    """Sort differences; minor ones, which hardly explain different figures, come last.

    Paths that the harness chose are minor.  If the storages differ in kind, section types are
    minor, too, and so is everything that only one side has.
    """
    differ_in_kind = any(one.path == ("storage_classes",) for one in differences)

    def is_minor(one: Difference) -> bool:
        follows = one.is_one_sided or one.path[-1] == SECTION
        is_chosen = any(SCRATCH in text for text in (*one.base, *one.new) if text)
        return is_chosen or (differ_in_kind and follows)

    return sorted(differences, key=is_minor)


def _record(change: Change) -> dict[str, Any]:
    low, high = change.ratio.interval
    cell, quantity = change.base.cell, change.base.quantity
    return {
        "benchmark": cell.benchmark,
        "base_contender": cell.column,
        "new_contender": change.new.cell.column,
        "crew": cell.parameters.crew.code,
        "objects": cell.parameters.objects,
        "object_size_bytes": cell.parameters.object_size,
        "rtt_s": cell.parameters.rtt,
        "metric": quantity.name,
        "base": change.base.value,
        "new": change.new.value,
        "ratio": change.ratio.value if change.ratio.is_known and high < math.inf else None,
        "interval_low": low if high < math.inf else None,
        "interval_high": high if high < math.inf else None,
        "verdict": change.verdict.value,
        "runs_needed": change.runs_needed,
        "paired": change.ratio.paired,
        "runs_compared": change.ratio.runs,
        "base_runs": len(change.base.runs),
        "new_runs": len(change.new.runs),
    }
