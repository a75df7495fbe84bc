"""The gate, which is the check of ``--fail-above``: its findings, messages and exit status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from zodbshootout.cli.output import Streams
from zodbshootout.errors import ALL_MEASURED, SLOWDOWN
from zodbshootout.model.outcome import State
from zodbshootout.model.quantities import Quantity, Sense
from zodbshootout.reports.comparison import remedy
from zodbshootout.results.cell import Cell
from zodbshootout.results.changes import Change, Comparison, Verdict
from zodbshootout.results.names import long_name
from zodbshootout.results.result import CellResult


def findings(comparison: Comparison, limit: float) -> list[Cell]:
    """Return the cells of the new side that fail the gate.

    Such a cell is significantly slower, by more than the fraction *limit*, or it lacks a figure
    that the base has.
    """
    slower = [change.new.cell for change in comparison.changes if change.slower_than(limit)]
    return [*slower, *(result.cell for result in comparison.lost)]


def status_of(
    comparison: Comparison, limit: float | None, streams: Streams, again: Comparison | None = None
) -> int:
    """Print the findings of the gate, and return the exit status, which is 0 without a *limit*.

    *again* is the comparison of a second run, if there was one.  A slow cell then counts if the
    second run, too, finds it significantly slower by more than *limit*.  It also counts if the
    second run has no figure for it.  A cell that lacks a figure counts only if it lacks the figure
    again.
    """
    if limit is None:
        return ALL_MEASURED
    slower = [change for change in comparison.changes if change.slower_than(limit)]
    undecided = [
        change
        for change in comparison.changes
        if change.may_be_slower_than(limit) and change not in slower
    ]
    lost, confirmed = list(comparison.lost), list[Change]()
    if again is not None:
        repeated = {_key(change): change for change in again.changes if change.ratio.is_known}
        confirmed = [change for change in slower if _is_slower(repeated.get(_key(change)), limit)]
        slower = [change for change in slower if _key(change) not in repeated]
        worked = {change.new.cell for change in again.changes}
        lost = [result for result in lost if result.cell not in worked]
        left = {change.new.cell for change in (*confirmed, *slower)} | {one.cell for one in lost}
        names = [long_name(cell) for cell in findings(comparison, limit) if cell not in left]
        if names:
            streams.complain(f"not confirmed by a second run: {', '.join(dict.fromkeys(names))}")
    amounts = [change.new.quantity for change in comparison.changes if _is_amount(change)]
    words = "significantly slower"
    if amounts:
        worse = "less" if amounts[0].better == "more" else "more"
        words = f"significantly {worse} {amounts[0].name}"
    no_second = "" if again is None else ", and the second run has no figure"
    for line in (
        *_lines(confirmed, words, limit, ", confirmed by a second run"),
        *_lines(slower, words, limit, no_second),
        *map(_loss, lost),
        *_lines(undecided, "too few runs to exclude a slowdown", limit),
    ):
        streams.complain(line)
    return SLOWDOWN if confirmed or slower or lost else ALL_MEASURED


def _is_amount(change: Change) -> bool:
    return change.new.quantity.sense is Sense.AMOUNT


def _key(change: Change) -> tuple[Cell, Quantity]:
    return change.new.cell, change.new.quantity


def _is_slower(change: Change | None, limit: float) -> bool:
    return (
        change is not None
        and change.verdict is Verdict.SLOWER
        and change.ratio.value < 1 / (1 + limit)
    )


def _lines(
    changes: Iterable[Change], finding: str, limit: float, remark: str = ""
) -> Iterator[str]:
    changes = list(changes)
    if changes:
        cells = ", ".join(dict.fromkeys(long_name(change.new.cell) for change in changes))
        advice = f"; {needed}" if (needed := remedy(changes)) else ""
        yield f"{finding} by more than {100 * limit:g} %{remark}: {cells}{advice}"


def lack(result: CellResult) -> str:
    """Return why a cell has no figure, in words."""
    if not result.keeps_up:
        return "cannot keep up"
    if result.state is State.MEASURED:
        return "not recorded"
    return "not measured" if result.state is State.NOT_RUN else result.state.value


def _loss(result: CellResult) -> str:
    """Describe a cell that failed on the new side, or has no figure there."""
    return f"{lack(result)}, but the base has a figure: {long_name(result.cell)}" + (
        f": {result.reason}" if result.reason else ""
    )
