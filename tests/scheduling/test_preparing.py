"""What is done to databases before a cell is measured, and that it is not done twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.runs import plan_of
from zodbshootout.scheduling.plan import Plan
from zodbshootout.scheduling.preparing import Preparations, Step

Note = tuple[str, str, Step]


def all_steps(plan: Plan, preparations: Preparations, runs: int = 1) -> list[Note]:
    """Prepare for the runs of all rows; return benchmark, contender and what was done."""
    found = []
    for row in plan.rows:
        for cell in list(row.cells) * runs:
            step = preparations.due(cell, plan.contender(cell))
            if step is not None:
                found.append((cell.benchmark, cell.contender, step))
                preparations.done(cell, step)
    return found


def steps(contenders: str, benchmarks: Sequence[str], runs: int = 1, **how: Any) -> list[Note]:
    return all_steps(plan_of(contenders, benchmarks), Preparations(**how), runs)


def test_objects_that_several_benchmarks_read_are_written_once() -> None:
    found = steps("ab", ["cold", "hot", "steamin"], runs=3)
    assert found == [("cold", "a", Step()), ("cold", "b", Step())]


def test_each_size_has_objects_of_its_own() -> None:
    plan = plan_of("a", ["cold"], concurrency=[1, 2, 4])
    assert [name for name, _, _ in all_steps(plan, Preparations(), runs=2)] == ["cold"] * 3


def test_a_benchmark_that_needs_no_objects_and_writes_nothing_needs_no_preparation() -> None:
    assert steps("a", ["ex_commit", "im_commit"]) == []


def test_whoever_writes_is_looked_at_even_if_somebody_may_read_the_same() -> None:
    found = steps("a", ["cold", "hot", "readCurrent"])
    assert [benchmark for benchmark, _, _ in found] == ["cold", "readCurrent"]


def test_whoever_writes_is_looked_at_before() -> None:
    assert steps("a", ["tpc"]) == [("tpc", "a", Step())]


def test_a_database_that_is_to_have_objects_is_filled_even_so() -> None:
    plan = plan_of("a", ["tpc"], {"min_objects": 5})
    assert all_steps(plan, Preparations(), runs=2) == [("tpc", "a", Step())]


def test_data_in_the_memory_of_one_process_is_made_by_the_one_that_measures() -> None:
    plan = plan_of(["memory", "a"], ["add", "cold"], {"min_objects": 5})
    found = all_steps(plan, Preparations(zapped={"memory"}, pack=True))
    assert {name for _, name, _ in found} == {"a"}


def test_a_database_is_packed_before_its_first_benchmark_and_once() -> None:
    found = steps("ab", ["tpc", "new_oid", "cold"], runs=2, pack=True)
    assert [note for note in found if note[2].pack] == [
        ("tpc", "a", Step(pack=True)),
        ("tpc", "b", Step(pack=True)),
    ]


def test_only_those_are_zapped_that_were_chosen_and_before_each_run_of_add_alone() -> None:
    found = steps("ab", ["add", "update"], runs=3, zapped={"b"})
    assert [note for note in found if note[2].zap] == [("add", "b", Step(zap=True))] * 3
    assert [note[1] for note in found if note[0] == "update"] == ["a", "b"]


def test_what_was_written_before_a_zap_is_written_again() -> None:
    plan = plan_of("ab", ["add", "cold"])
    preparations = Preparations(zapped={"b"})
    add, cold = plan.rows

    def due(row: int) -> list[str]:
        cells = (add, cold)[row].cells
        return [
            cell.contender
            for cell in cells
            if preparations.due(cell, plan.contender(cell)) is not None
        ]

    for row in (add, cold):
        for cell in row.cells:
            preparations.done(cell, Step())
    assert due(1) == []
    # Another contender may be the same database, so that its objects are gone, too.
    preparations.done(add.cells[1], Step(zap=True))
    assert due(1) == ["a", "b"]


def test_the_same_database_listed_twice_is_empty_before_each_run_of_add() -> None:
    found = steps("ab", ["add"], runs=2, zapped={"a", "b"})
    assert found == [("add", name, Step(zap=True)) for name in "abab"]
