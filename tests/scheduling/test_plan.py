"""The cells of a plan, and the number of their runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.runs import cell, contender, plan_of, sweep_of
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.model.outcome import Failure, State
from zodbshootout.model.specification import CrewShape, Parameters
from zodbshootout.model.storage_facts import Sharing, StorageInfo
from zodbshootout.results.estimate import MIN_RUNS
from zodbshootout.scheduling.plan import LENGTHY_RATE, make_plan


def test_a_plan_is_limited_to_the_time_of_its_cells_unless_a_limit_is_given() -> None:
    plan = plan_of("ab", ["add", "cold"], precision=0.05, cell_limit=8.0)
    assert plan.limit == plan.estimated_seconds() == 4 * 8.0
    assert plan_of("ab", precision=0.05, cell_limit=8.0, limit=60.0).limit == 60.0
    # The storage in memory is refused: no other DB could read warm the data of its one process.
    assert plan_of(["memory", "a"], ["warm"], precision=0.05, cell_limit=8.0).limit == 8.0


@pytest.mark.parametrize("values", [0, 5])
def test_more_cells_and_longer_runs_are_estimated_to_take_longer(values: int) -> None:
    once = plan_of("a", values=values).estimated_seconds()
    assert once > 0
    assert plan_of("ab", values=values).estimated_seconds() == 2 * once
    longer = plan_of("a", values=values, run_time=25.0, min_time=5.0)
    assert longer.estimated_seconds() > once


def test_a_benchmark_is_measured_once_for_all_parameters_that_it_ignores() -> None:
    sweep = sweep_of(Parameters(CrewShape(1)), [1, 2], [10, 20], [128, 300])
    plan = make_plan([contender("a")], ["tpc", "new_oid"], sweep, plan_of("a").effort)
    rows = [(row[0].benchmark, row[0].parameters.crew.size) for row in plan.rows]
    assert rows.count(("tpc", 1)) == rows.count(("tpc", 2)) == 1
    assert rows.count(("new_oid", 1)) == rows.count(("new_oid", 2)) == 2


def test_a_row_has_a_cell_of_every_contender() -> None:
    plan = plan_of("ab", ["cold", "add"])
    assert [[(cell.benchmark, cell.contender) for cell in row] for row in plan.rows] == [
        [("cold", "a"), ("cold", "b")],
        [("add", "a"), ("add", "b")],
    ]


def test_a_cell_names_its_contender() -> None:
    plan = plan_of("ab", concurrency=[2])
    of = replace(cell("add", "b"), parameters=plan.cells[0].parameters)
    assert plan.contender(of).name == "b"
    assert of.parameters.crew == CrewShape(2)


def test_a_cell_fails_if_its_storage_refuses_it_or_could_not_be_opened() -> None:
    a, b, c = map(contender, "abc")
    opened = b.opened(StorageInfo("FileStorage", Sharing.EXCLUSIVE))
    plan = plan_of([a, opened, c], concurrency=[2], precision=0.05, cell_limit=8.0)
    missing = Failure("no server")
    plan = replace(plan, unavailable={"c": missing})
    failures = {cell.contender: plan.failure(cell) for cell in plan.cells}
    assert (failures["a"], failures["c"]) == (None, missing)
    assert failures["b"] == Failure(
        "FileStorage: only one DB at a time can open it; use --threads shared, or -c 1",
        state=State.UNSUPPORTED,
    )
    assert plan.limit == 8.0


def test_a_sweep_has_the_ends_of_its_ranges_before_the_values_in_between() -> None:
    sweep = sweep_of(Parameters(CrewShape(1)), [1, 2, 4, 8, 16], [100, 10])
    points = [(parameters.crew.size, parameters.objects) for parameters in sweep.parameters()]
    assert points == [
        (1, 100), (1, 10), (16, 100), (16, 10),
        (4, 100), (4, 10),
        (2, 100), (2, 10), (8, 100), (8, 10),
    ]  # fmt: skip


@pytest.mark.parametrize("most", range(1, 34))
def test_a_sweep_leaves_out_no_number(most: int) -> None:
    sweep = sweep_of(Parameters(CrewShape(1)), range(1, most + 1))
    sizes = [parameters.crew.size for parameters in sweep.parameters()]
    assert sorted(sizes) == list(range(1, most + 1))
    assert sizes[-1] not in {1, most} or most < 3


def test_runs_that_are_made_whatever_the_limit_is_are_estimated_by_their_work() -> None:
    plan = plan_of("a", ["pack"], precision=0.05)
    (cell,) = plan.cells
    work = benchmarks()["pack"].shape(cell.parameters).work
    assert plan.estimated_seconds() == plan.limit + MIN_RUNS * (1 + work / LENGTHY_RATE)
    assert plan_of("a", ["pack"], precision=0.05, limit=60.0).estimated_seconds() == 60.0


def test_the_estimate_includes_all_runs_that_are_made_whatever_the_limit_is() -> None:
    plan = plan_of("a", ["add", "open"], precision=0.05, values=0)
    assert list(map(plan.assured_runs, plan.rows)) == [0, MIN_RUNS]
    assert plan.assured_seconds == MIN_RUNS * (1 + plan.effort.run_time)
    assert plan.estimated_seconds() == plan.limit + plan.assured_seconds
    assert plan_of("a", ["open"], precision=0.05, limit=60.0).assured_seconds == 0
