"""The second run of what ``--fail-above`` has found: which rows it has, and when there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from tests.runs import contender, noisy, plan_of, run
from zodbshootout.cli.measurement import measure
from zodbshootout.errors import ALL_MEASURED, INTERRUPTED
from zodbshootout.model.outcome import Failure
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
