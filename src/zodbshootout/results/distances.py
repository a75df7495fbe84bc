"""Results at several round-trip times; the times become parameters of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from zodbshootout.model.specification import without_rtt
from zodbshootout.results.result import CellResult


def at_distances(results: Sequence[CellResult]) -> list[CellResult]:
    """Move round-trip times from contenders' names to the parameters of their cells.

    A contender without a server is measured once.  Its result does not depend on round-trip times,
    so it is repeated for each of them.  If no names contain times, the results are unchanged.
    """
    split = [(result, *without_rtt(result.cell.contender)) for result in results]
    rtts: list[float | None] = [*sorted({rtt for _, _, rtt in split if rtt is not None})]
    return [
        at_distance(result, at, name) if rtts else result
        for result, name, rtt in split
        for at in (rtts or [None] if rtt is None else [rtt])
    ]


def at_distance(result: CellResult, rtt: float | None, contender: str = "") -> CellResult:
    """Return *result* with a round-trip time of *rtt* seconds, or without one if ``None``.

    *contender* is the contender's name without the time.
    """
    cell = result.cell
    parameters = replace(cell.parameters, rtt=rtt)
    named = contender or cell.contender
    return replace(result, cell=replace(cell, contender=named, parameters=parameters))
