"""The gate of ``--fail-above``: what a comparison finds, in lines, and the exit status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from zodbshootout.cli.output import Streams
from zodbshootout.errors import ALL_MEASURED, SLOWDOWN
from zodbshootout.model.outcome import State
from zodbshootout.reports.comparison import remedy
from zodbshootout.results.names import long_name
from zodbshootout.results.result import CellResult
from zodbshootout.results.verdicts import Comparison, Pair


def status_of(comparison: Comparison, limit: float | None, streams: Streams) -> int:
    """Print what the gate finds, and return the exit status; 0 without a *limit*.

    It finds a cell that is significantly slower by more than *limit*, a fraction, and a cell of the
    base that the new side has no figure of, or that failed there.
    """
    if limit is None:
        return ALL_MEASURED
    slower = [pair for pair in comparison.pairs if pair.slower_than(limit)]
    undecided = [
        pair for pair in comparison.pairs if pair.may_be_slower_than(limit) and pair not in slower
    ]
    for line in (
        *_lines(slower, "significantly slower", limit),
        *map(_loss, comparison.lost),
        *_lines(undecided, "too few runs to exclude a slowdown", limit),
    ):
        streams.complain(line)
    return SLOWDOWN if slower or comparison.lost else ALL_MEASURED


def _lines(pairs: Iterable[Pair], finding: str, limit: float) -> Iterator[str]:
    pairs = list(pairs)
    if pairs:
        cells = ", ".join(dict.fromkeys(long_name(pair.new.cell) for pair in pairs))
        advice = f"; {needed}" if (needed := remedy(pairs)) else ""
        yield f"{finding} by more than {100 * limit:g} %: {cells}{advice}"


def _loss(result: CellResult) -> str:
    """Describe a cell that the new side has no figure of, or that failed there."""
    if not result.keeps_up:
        what = "cannot keep up"
    elif result.state is State.NOT_RUN:
        what = "not measured"
    else:
        what = result.state.value
    return f"{what}, but the base has a figure: {long_name(result.cell)}" + (
        f": {result.reason}" if result.reason else ""
    )
