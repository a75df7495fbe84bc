"""Results at several round-trip times, with the time as a parameter of the cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from zodbshootout.model.specification import without_rtt
from zodbshootout.results.result import CellResult


def at_distances(results: Sequence[CellResult]) -> list[CellResult]:
    """Return results whose cells have their round-trip time as a parameter, not in the name.

    A contender without a server, which is measured once, is as fast at every distance, and has a
    result for each.  If no contender was measured at several, results are returned as they are.
    """
    split = [(result, *without_rtt(result.cell.contender)) for result in results]
    rtts: list[float | None] = [*sorted({rtt for _, _, rtt in split if rtt is not None})]
    return [
        at_distance(result, at, name) if rtts else result
        for result, name, rtt in split
        for at in (rtts or [None] if rtt is None else [rtt])
    ]


def at_distance(result: CellResult, rtt: float | None, contender: str = "") -> CellResult:
    """Return a result with a round-trip time in seconds as a parameter, or with none.

    *contender* is its name without the time, if that is in the name.
    """
    cell = result.cell
    parameters = replace(cell.parameters, rtt=rtt)
    named = contender or cell.contender
    return replace(result, cell=replace(cell, contender=named, parameters=parameters))
