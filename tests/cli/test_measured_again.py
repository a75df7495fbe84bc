"""The second run of what ``--fail-above`` has found: which rows it has, and when there is none."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from tests.runs import cell as cell_of
from tests.runs import contender, noisy, plan_of, run, unsupported
from tests.runs import measured as result
from zodbshootout.cli.gate import status_of
from zodbshootout.cli.measurement import Measured, judgements, measure
from zodbshootout.cli.output import Streams, console_on
from zodbshootout.errors import ALL_MEASURED, INTERRUPTED, SLOWDOWN
from zodbshootout.model.outcome import Failure
from zodbshootout.model.titles import Release
from zodbshootout.results.result import CellResult
from zodbshootout.scheduling.orders import Tasks
from zodbshootout.scheduling.plan import Plan
from zodbshootout.scheduling.result_store import Observer, ResultStore
from zodbshootout.scheduling.shootout import Shootout

BENCHMARKS = ("add", "update", "hot")


def plan() -> Plan:
    variant = replace(contender("fs"), variant={"environment": "new"})
    return plan_of([contender("fs"), variant], BENCHMARKS)


def measured(plan: Plan, slower: Mapping[str, float]) -> Shootout:
    """Return a measurement in which benchmarks of the variant are *slower*."""
    tasks = Tasks(plan)
    store = ResultStore(plan, Observer(), lambda _: None)
    for seed, cell in enumerate(plan.cells):
        times = slower.get(cell.benchmark, 1.0) if cell.title == "fs@new" else 1.0
        for number, values in enumerate(noisy(seed, times)):
            slices = " ".join(map(str, range(len(values))))
            store.add_run(cell, run(*values, round=f"r-{number}", slices=slices))
    nothing: Any = mock.MagicMock()
    return Shootout(tasks, store, nothing, nothing)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Measure nothing; return the plans."""
    plans: list[Plan] = []
    monkeypatch.setattr(Shootout, "run", lambda shootout: plans.append(shootout.store.plan))
    return plans


def options(**how: Any) -> Any:
    return mock.Mock(**{"fail_above": 0.05, "no_confirm": False, **how})


def test_only_rows_with_findings_are_measured_again(plans: list[Plan]) -> None:
    result = measure(measured(plan(), {"update": 1.2}), options())
    (_, again) = plans
    assert [cell.benchmark for cell in again.cells] == ["update", "update"]
    assert [result.cell for result in result.second] == again.cells
    assert (result.status, len(result.results)) == (ALL_MEASURED, 6)


@pytest.mark.parametrize(
    ("slower", "how"),
    [({}, {}), ({"update": 1.2}, {"no_confirm": True}), ({"update": 1.2}, {"fail_above": None})],
)
def test_there_is_no_second_run_if_nothing_is_found_or_wanted(
    slower: dict[str, float], how: dict[str, Any], plans: list[Plan]
) -> None:
    assert measure(measured(plan(), slower), options(**how)).second == ()
    assert len(plans) == 1


def test_what_cannot_be_opened_is_not_tried_again(plans: list[Plan]) -> None:
    closed = replace(plan(), unavailable={"fs@new": Failure("no such release")})
    shootout = measured(closed, {})
    for cell in closed.cells:
        if cell.title == "fs@new":
            shootout.store.fail(cell, Failure("no such release"))
    assert measure(shootout, options()).second == ()
    assert len(plans) == 1


@pytest.mark.parametrize("interrupted", [1, 2])
def test_an_interrupt_of_either_run_is_one_of_the_command(
    interrupted: int, plans: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(shootout: Shootout) -> None:
        plans.append(shootout.store.plan)
        if len(plans) == interrupted:
            raise KeyboardInterrupt

    monkeypatch.setattr(Shootout, "run", run)
    result = measure(measured(plan(), {"update": 1.2}), options())
    assert (result.status, len(result.results), result.second) == (INTERRUPTED, 6, ())
    assert result.message.startswith("interrupted; ")
    assert len(plans) == interrupted


def status(results: Sequence[CellResult]) -> tuple[int, str]:
    lines = console_on(out := io.StringIO())
    measured = Measured(ALL_MEASURED, "", results)
    return status_of(
        judgements(measured, options(requirements=())), Streams(lines, lines, None)
    ), out.getvalue()


OLD, NEW = ({"release": Release("zodb", commit=commit)} for commit in ("aaa", "bbb"))


def test_a_gate_that_compares_nothing_does_not_pass() -> None:
    base = [result(cell_of(name, "fs"), *noisy(1)) for name in ("add", "hot")]
    broken = [
        unsupported(cell_of(name, "fs", variant), "cannot be built")
        for variant in (OLD, NEW)
        for name in ("add", "hot")
    ]
    found, line = status([*base, *broken])
    assert found == SLOWDOWN
    assert line == (
        "zodbshootout: fs was compared with nothing: no variant of --against works here: "
        "cannot be built\n"
    )
    works = [result(cell_of(name, "fs", NEW), *noisy(1)) for name in ("add", "hot")]
    assert status([*base, *broken[:2], *works])[0] == ALL_MEASURED
    other = [
        result(cell_of("add", "pg"), *noisy(1)),
        unsupported(cell_of("add", "pg", NEW), "too old"),
    ]
    assert status([*base, *works, *other])[0] == SLOWDOWN


@pytest.mark.parametrize(("more", "rtt"), [({"cache": "10MB"}, None), ({}, 0.002)])
def test_a_variant_is_compared_with_the_same_values_and_distance_in_the_base_environment(
    more: dict[str, str], rtt: float | None
) -> None:
    base = result(cell_of("add", "zeo", more, rtt=rtt), *noisy(1))
    slower, equal = (
        result(cell_of("add", "zeo", {**more, "environment": "new"}, rtt=rtt), *noisy(2, times))
        for times in (1.2, 1.0)
    )
    found, line = status([base, slower])
    assert (found, "worse by more than 5 %" in line) == (SLOWDOWN, True)
    assert status([base, equal]) == (ALL_MEASURED, "")
