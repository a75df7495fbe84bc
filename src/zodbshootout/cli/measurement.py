"""Measure a plan, and what a limit for changes finds a second time; judge the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from zodbshootout.cli.gate import FAILURES, Judgement, Outcome, judged
from zodbshootout.cli.options import Options
from zodbshootout.errors import ALL_MEASURED, INTERRUPTED, SOME_FAILED, UserError
from zodbshootout.guardian import GuardianLost
from zodbshootout.model.grouping import grouped
from zodbshootout.model.outcome import State
from zodbshootout.model.titles import environment_of
from zodbshootout.model.wording import counted
from zodbshootout.results.result import CellResult
from zodbshootout.results.sides import Comparison, compare
from zodbshootout.scheduling.result_store import ResultStore
from zodbshootout.scheduling.shootout import Shootout


@dataclass(frozen=True)
class Measured:
    """What a measurement has come to."""

    status: int
    """The exit status, as far as it depends on the measurement."""
    message: str
    """Why it ended early or without figures; empty if it did not."""
    results: Sequence[CellResult]
    second: Sequence[CellResult] = ()
    """The results of the second run of the findings of ``--fail-above``."""


def measure(shootout: Shootout, options: Options) -> Measured:
    """Measure a plan and, unless the options or the user forbid it, its findings again."""
    measured = _measured(shootout)
    again = _again(shootout, options) if measured.status != INTERRUPTED else None
    if again is not None:
        second = _measured(again)
        if second.status == INTERRUPTED:
            measured = replace(second, results=measured.results)
        else:
            measured = replace(measured, second=second.results)
    if options.log and shootout.tasks.cluster is not None:
        for line in shootout.tasks.cluster.logged():
            shootout.store.observer.relay(line)
    return measured


def _measured(shootout: Shootout) -> Measured:
    """Measure until the plan is done or an error occurs."""
    store = shootout.store
    try:
        shootout.run()
        status, message = _status_and_reason(store.results)
    except UserError as error:
        status, message = error.status, str(error)
    except (KeyboardInterrupt, GuardianLost) as error:
        with suppress(UserError):
            store.save()
        kept = any(result.measured for result in store.results)
        outcome = "results so far were saved" if kept else "nothing was measured"
        status, message = INTERRUPTED, f"interrupted; {outcome}"
        if isinstance(error, GuardianLost):
            status, message = SOME_FAILED, f"stopped: {error}"
    return Measured(status, message, store.results)


def _status_and_reason(results: Sequence[CellResult]) -> tuple[int, str]:
    states = {result.state for result in results}
    if State.FAILED in states:
        return SOME_FAILED, ""
    if State.NOT_RUN in states:
        return SOME_FAILED, "not everything was measured: there was no time left (--at-most)"
    if not any(result.measured for result in results):
        return SOME_FAILED, "nothing was measured: no contender supports any of the benchmarks"
    return ALL_MEASURED, ""


def _again(shootout: Shootout, options: Options) -> Shootout | None:
    """Return the measurement of the rows with findings, ``None`` if there are none."""
    plan, store = shootout.tasks.plan, shootout.store
    if options.fail_above is None or options.no_confirm or plan.effort.duration:
        return None
    again = {
        cell
        for sides in _comparisons(store.results).values()
        for one in judged(sides, options.fail_above)
        if one.outcome in FAILURES
        for cell in one.cells
        if plan.failure(cell) is None  # a contender that cannot be opened would fail again
    }
    rows = [row for row in plan.rows if again.intersection(row)]
    if not rows:
        return None
    limit = plan.effort.limit * len(rows) / len(plan.rows)
    smaller = replace(plan, rows=rows, effort=replace(plan.effort, limit=limit))
    repeated = ResultStore(smaller, store.observer, lambda _: None)
    cells = counted(len(again), "cell")
    store.observer.relay(f"measuring the findings of --fail-above again: {cells}")
    return replace(shootout, tasks=replace(shootout.tasks, plan=smaller), store=repeated)


def judgements(measured: Measured, options: Options) -> list[Judgement]:
    """Apply ``--require`` to the first of two runs, and ``--fail-above`` to both."""
    found = [one for limit in options.requirements for one in limit.judged(measured.results)]
    if options.fail_above is not None:
        second = _comparisons(measured.second) if measured.second else {}
        for name, sides in _comparisons(measured.results).items():
            found += judged(sides, options.fail_above, second.get(name))
        found += _uncompared(measured.results)
    return found


def _uncompared(results: Sequence[CellResult]) -> Iterator[Judgement]:
    """Yield a judgement on each contender with figures of which no variant works here."""
    for name, ours in grouped((one.cell.original, one) for one in results).items():
        others = [one for one in ours if environment_of(one.cell.variant)]
        if any(one.measured for one in ours) and not any(map(_works, others)):
            reason = next((one.reason for one in others), "")
            words = f"{name} was compared with nothing: no variant of --against works here"
            yield Judgement(Outcome.MISSING, ": ".join(filter(None, [words, reason])))


def _works(result: CellResult) -> bool:
    return result.state is not State.UNSUPPORTED


def _comparisons(results: Sequence[CellResult]) -> dict[str, Comparison]:
    """Return the comparison of each variant of ``--against`` with its original, by its title.

    A release that does not work here is no variant to judge.
    """
    by_title = grouped((result.cell.title, result) for result in results)
    return {
        title: compare(by_title.get(name, []), new, across=True).named(name, title)
        for title, new in by_title.items()
        for name in [new[0].cell.original]
        if name != title and any(map(_works, new))
    }
