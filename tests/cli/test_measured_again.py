"""The second run of what ``--fail-above`` has found: which rows it has, and when there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from tests.runs import contender, noisy, plan_of, run
from zodbshootout.cli import run as run_module
from zodbshootout.cli.run import _measured_again
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
def repeated(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    plans: list[Plan] = []

    def measure(shootout: Shootout) -> tuple[int, str]:
        plans.append(shootout.store.plan)
        return ALL_MEASURED, ""

    monkeypatch.setattr(run_module, "_measure", measure)
    return plans


def options(**how: Any) -> Any:
    return mock.Mock(**{"fail_above": 0.05, "confirm": None, **how})


def test_only_rows_with_findings_are_measured_again(repeated: list[Plan]) -> None:
    shootout = measured(plan(), {"update": 1.2})
    _, results = _measured_again(shootout, ALL_MEASURED, options())
    (again,) = repeated
    assert [cell.benchmark for cell in again.cells] == ["update", "update"]
    assert [result.cell for result in results] == again.cells
    assert len(shootout.store.results) == 6


@pytest.mark.parametrize(
    ("slower", "status", "how"),
    [({}, ALL_MEASURED, {}), ({"update": 1.2}, INTERRUPTED, {}),
     ({"update": 1.2}, ALL_MEASURED, {"confirm": False}),
     ({"update": 1.2}, ALL_MEASURED, {"fail_above": None})],
)  # fmt: skip
def test_there_is_no_second_run_if_nothing_is_found_or_wanted(
    slower: dict[str, float], status: int, how: dict[str, Any], repeated: list[Plan]
) -> None:
    assert _measured_again(measured(plan(), slower), status, options(**how)) == ("", [])
    assert repeated == []


def test_what_cannot_be_opened_is_not_tried_again(repeated: list[Plan]) -> None:
    closed = replace(plan(), unavailable={"fs@new": Failure("no such release")})
    shootout = measured(closed, {})
    for cell in closed.cells:
        if cell.title == "fs@new":
            shootout.store.fail(cell, Failure("no such release"))
    assert _measured_again(shootout, ALL_MEASURED, options()) == ("", [])
    assert repeated == []


def test_an_interrupt_of_the_second_run_is_one_of_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_module, "_measure", lambda _: (INTERRUPTED, "interrupted"))
    reason, _ = _measured_again(measured(plan(), {"update": 1.2}), ALL_MEASURED, options())
    assert reason == "interrupted"
