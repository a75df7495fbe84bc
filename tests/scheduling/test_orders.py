"""Databases are prepared before a cell is measured, and not twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tests.runs import plan_of
from zodbshootout.client.preparation import Preparation
from zodbshootout.model.specification import Specification, Storage
from zodbshootout.results.cell import Cell
from zodbshootout.scheduling.orders import Tasks
from zodbshootout.scheduling.plan import Plan, RunOptions


class Step(NamedTuple):
    """The preparation of a database before a cell is measured."""

    benchmark: str
    contender: str
    zap: bool = False
    pack: bool = False
    may_write: bool = False


def all_steps(plan: Plan, runs: int = 1, *, pack: bool = False, **named: Any) -> list[Step]:
    """Prepare the runs of all rows; return the preparations."""
    tasks = Tasks(replace(plan, **named), RunOptions(pack=pack))
    steps = []
    for row in plan.rows:
        for cell in row * runs:
            task = tasks.preparation(cell)
            if task is not None:
                assert task.specification.parameters.owner == cell.contender
                steps.append(
                    Step(cell.benchmark, cell.contender, task.zap, task.pack, task.may_write)
                )
                tasks.prepared(cell, task)
    return steps


def steps_of(contenders: str, benchmarks: Sequence[str], runs: int = 1, **how: Any) -> list[Step]:
    return all_steps(plan_of(contenders, benchmarks), runs, **how)


def test_objects_that_several_benchmarks_read_are_written_once() -> None:
    steps = steps_of("ab", ["cold", "hot", "steamin"], runs=3)
    assert steps == [Step("cold", "a"), Step("cold", "b")]


def test_each_crew_size_has_objects_of_its_own() -> None:
    plan = plan_of("a", ["cold"], concurrency=[1, 2, 4])
    assert [step.benchmark for step in all_steps(plan, runs=2)] == ["cold"] * 3


def test_a_benchmark_without_objects_and_writes_needs_no_preparation() -> None:
    assert steps_of("a", ["ex_commit", "im_commit"]) == []


def test_a_writing_benchmark_is_prepared_even_if_others_read_the_same_objects() -> None:
    steps = steps_of("a", ["cold", "hot", "readCurrent"])
    assert [step.benchmark for step in steps] == ["cold", "readCurrent"]


def test_a_writing_contender_is_inspected_first() -> None:
    assert steps_of("a", ["tpc"]) == [Step("tpc", "a")]


def test_a_database_is_filled_once_if_it_must_hold_a_minimum_of_objects() -> None:
    plan = plan_of("a", ["tpc"], {"min_objects": 5})
    assert all_steps(plan, runs=2) == [Step("tpc", "a")]


def test_a_database_in_memory_is_not_prepared_by_another_process() -> None:
    plan = plan_of(["memory", "a"], ["add", "cold"], {"min_objects": 5})
    steps = all_steps(plan, zapped={"memory"}, pack=True)
    assert {step.contender for step in steps} == {"a"}


def test_a_database_is_packed_only_before_its_first_benchmark() -> None:
    steps = steps_of("ab", ["tpc", "new_oid", "cold"], runs=2, pack=True)
    packing = [step for step in steps if step.pack]
    assert packing == [Step("tpc", "a", pack=True), Step("tpc", "b", pack=True)]


def test_only_chosen_contenders_are_zapped_and_only_before_each_run_of_add() -> None:
    steps = steps_of("ab", ["add", "update"], runs=3, zapped={"b"})
    zapping = [step for step in steps if step.zap]
    assert zapping == [Step("add", "b", zap=True, may_write=True)] * 3
    assert [step.contender for step in steps if step.benchmark == "update"] == ["a", "b"]


def test_copy_needs_an_empty_database_and_the_permission_to_destroy_what_others_wrote() -> None:
    emptied = steps_of("abc", ["copy"], runs=1, zapped={"a"}, may_write={"b"})
    assert emptied == [
        Step("copy", "a", zap=True, may_write=True), Step("copy", "b", zap=True),
        Step("copy", "c", zap=True),
    ]  # fmt: skip


def test_objects_written_before_a_zap_are_written_again() -> None:
    plan = replace(plan_of("ab", ["add", "cold"]), zapped={"b"})
    tasks = Tasks(plan)
    add, cold = plan.rows

    def preparation(cell: Cell, *, zap: bool = False) -> Preparation:
        return Preparation(Specification(Storage(""), cell.benchmark, cell.parameters), zap)

    def to_prepare(row: int) -> list[str]:
        return [cell.contender for cell in (add, cold)[row] if tasks.preparation(cell) is not None]

    for row in (add, cold):
        for cell in row:
            tasks.prepared(cell, preparation(cell))
    assert to_prepare(1) == []
    # Another contender may be the same database, so its objects may be gone, too.
    tasks.prepared(add[1], preparation(add[1], zap=True))
    assert to_prepare(1) == ["a", "b"]


def test_a_database_listed_twice_is_zapped_before_each_run_of_add() -> None:
    steps = steps_of("ab", ["add"], runs=2, zapped={"a", "b"})
    assert steps == [Step("add", name, zap=True, may_write=True) for name in "abab"]
