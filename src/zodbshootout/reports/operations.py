"""Notes about operations, such as packing, that ran while cells were measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from zodbshootout.model.parameters import RATE
from zodbshootout.model.specification import AFTER, DURING, exactly
from zodbshootout.model.wording import counted
from zodbshootout.reports.cells import Cells
from zodbshootout.reports.over_time import duration
from zodbshootout.results.names import short_name, varied_parameters
from zodbshootout.results.result import CellResult

_TRANSACTIONS = {"first_transaction_s": "first", "hundredth_transaction_s": "hundredth"}
NOTEWORTHY = 0.05
"""If at least this fraction of the time passed unobserved between slices, a note says so."""


def operation_notes(cells: Cells) -> Iterator[str]:
    """Yield a line about each contender's operation: its duration and its effects."""
    varied = varied_parameters(result.cell for result in cells.results)
    phases: dict[tuple[str, str], dict[str, CellResult]] = {}
    for column, result in cells:
        parameters = result.cell.parameters
        if parameters.during and result.measured:
            name = short_name(result.cell.without_operation, varied - {RATE})
            place = f"{name} at {exactly(parameters.rate)}/s"
            own = phases.setdefault((column, f"{parameters.during} during {place}"), {})
            own[parameters.phase] = result
    for (column, name), results in phases.items():
        if DURING in results and AFTER in results:
            clauses = _clauses(name, results[DURING], results[AFTER])
            yield f"{column}: {'; '.join(clauses)}"


def _clauses(name: str, during: CellResult, after: CellResult) -> Iterator[str]:
    seconds = _numbers(during, "operation_s")
    yield f"{name} took {_spread(seconds)}"
    late = _numbers(after, "not_recovered_s")
    if late:
        runs = counted(len(after.runs), "run")
        yield f"p99 was not back within {duration(min(late))}, in {len(late)} of {runs}"
    elif back := statistics.median(_numbers(after, "recovered_s")):
        yield f"p99 was back after {duration(back)}"
    else:
        yield "p99 was back at once"
    yield from _restarted(after)
    if repeated := sum(_numbers(during, "retries")):
        done = sum(_numbers(during, "iterations"))
        yield f"{repeated:,.0f} of {done:,.0f} iterations were repeated meanwhile"
    unobserved = [*_numbers(during, "unobserved_s"), *_numbers(after, "unobserved_s")]
    observed = [*_numbers(during, "on_clock_s"), *_numbers(after, "on_clock_s")]
    part = sum(unobserved) / max(sum(unobserved) + sum(observed), 1e-9)
    if part >= NOTEWORTHY:
        yield f"{part:.0%} of the time, between slices, was not observed"


def _restarted(after: CellResult) -> Iterator[str]:
    """Yield clauses about servers that have restarted, and what their clients noticed."""
    acknowledged = _numbers(after, "acknowledged_commits")
    if not acknowledged:
        return
    for key, words in _TRANSACTIONS.items():
        if seconds := _numbers(after, key):
            yield f"the {words} transaction after {duration(statistics.median(seconds))}"
    failed, lost = _numbers(after, "failed_iterations"), _numbers(after, "lost_commits")
    if reconnections := _numbers(after, "reconnections"):
        yield counted(round(sum(reconnections)), "reconnection")
    yield f"{counted(round(sum(failed)), 'error')} reached the application"
    if commits := sum(acknowledged):
        yield f"{sum(lost):,.0f} of {commits:,.0f} commits lost"


def _numbers(result: CellResult, key: str) -> list[float]:
    return [float(facts[key]) for facts in result.facts if key in facts]


def _spread(seconds: Sequence[float]) -> str:
    middle = duration(statistics.median(seconds))
    if len(seconds) == 1:
        return middle
    low, high = min(seconds), max(seconds)
    return f"{middle} ({low:.3g} to {high:.3g} s in {len(seconds)} runs)"
