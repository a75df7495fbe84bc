"""The results of all cells, and the notification of observers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.runs import Counting, plan_of, run
from zodbshootout.errors import UserError
from zodbshootout.model.outcome import Failure, State
from zodbshootout.results.cell import Cell
from zodbshootout.results.result import CellResult
from zodbshootout.scheduling.plan import Plan
from zodbshootout.scheduling.result_store import ResultStore

BROKE = Failure("it broke", "Traceback")
SPOILT = Failure("it wrote something else", invalidates_results=True)
CANNOT = Failure("it cannot", state=State.UNSUPPORTED)


class Notes:
    """A result store, its observer, and the results that were kept each time."""

    def __init__(self, plan: Plan, *, fail_fast: bool = False) -> None:
        self.observer = Counting()
        self.kept: list[list[tuple[str, int]]] = []
        self.time, self.writing = 0.0, 0.0
        self.store = ResultStore(plan, self.observer, self._keep, fail_fast, now=lambda: self.time)

    def _keep(self, results: Sequence[CellResult]) -> None:
        self.time += self.writing
        self.kept.append([(result.state.value, len(result.runs)) for result in results])

    def cell(self, contender: str, benchmark: str = "add") -> Cell:
        cells = self.store.plan.cells
        (cell,) = [x for x in cells if (x.contender, x.benchmark) == (contender, benchmark)]
        return cell

    def result(self, contender: str) -> CellResult:
        (result,) = [x for x in self.store.results if x.cell == self.cell(contender)]
        return result


def test_a_cell_that_is_not_reached_is_stored_as_not_run() -> None:
    notes = Notes(plan_of("ab"))
    assert [result.state for result in notes.store.results] == [State.NOT_RUN, State.NOT_RUN]
    notes.store.fail_cells([])
    assert notes.kept == [[("not run", 0), ("not run", 0)]]


def test_runs_are_written_together_and_only_once() -> None:
    notes = Notes(plan_of("ab", processes=2))
    notes.store.fail_cells([])
    for contenders in ("ab", "b", "", "a"):
        for contender in contenders:
            notes.store.add_run(notes.cell(contender), run(0.1, 0.2))
        notes.store.save_new()
    kept = [[runs for _, runs in written] for written in notes.kept]
    assert kept == [[0, 0], [1, 1], [1, 2], [2, 2]]
    assert notes.result("a").benchmark().get_values() == (0.1, 0.2, 0.1, 0.2)


def test_a_result_that_lacks_runs_is_reported_as_incomplete() -> None:
    notes = Notes(plan_of("ab", processes=2))
    notes.store.fail_cells([])
    notes.store.add_run(notes.cell("a"), run(0.1))
    assert (notes.result("a").reason, notes.result("b").reason) == ("incomplete: 1 of 2 runs", "")
    notes.store.add_run(notes.cell("a"), run(0.1))
    assert notes.result("a").reason == ""


def test_a_result_stays_the_same_object_until_it_changes() -> None:
    notes = Notes(plan_of("ab", processes=2))
    notes.store.fail_cells([])
    for contender in "ab":
        notes.store.add_run(notes.cell(contender), run(0.1))
    before = notes.result("a")
    notes.store.add_run(notes.cell("b"), run(0.1))
    assert notes.result("a") is before
    assert notes.store.result(notes.cell("a")) is before


@pytest.mark.parametrize("failure", [SPOILT, CANNOT])
def test_a_failure_that_invalidates_earlier_runs_drops_them(failure: Failure) -> None:
    notes = Notes(plan_of("ab", processes=2))
    notes.store.fail_cells([])
    notes.store.add_run(notes.cell("a"), run(0.1))
    notes.store.fail(notes.cell("a"), failure)
    result = notes.result("a")
    assert (result.state, result.reason, result.detail, result.runs) == (
        failure.state, failure.cause, failure.detail, ()
    )  # fmt: skip
    assert notes.kept[-1] == [(failure.state.value, 0), ("not run", 0)]
    assert notes.store.unsettled(notes.store.plan.cells) == [notes.cell("b")]


def test_a_cell_that_fails_later_keeps_its_earlier_runs() -> None:
    notes = Notes(plan_of("ab", processes=2))
    notes.store.fail_cells([])
    notes.store.add_run(notes.cell("a"), run(0.1))
    notes.store.fail(notes.cell("a"), BROKE)
    result = notes.result("a")
    assert (result.state, result.reason, len(result.runs)) == (State.FAILED, BROKE.cause, 1)
    assert notes.kept[-1] == [("failed", 1), ("not run", 0)]
    assert notes.store.unsettled(notes.store.plan.cells) == [notes.cell("b")]


def test_repeated_runs_are_reported() -> None:
    notes = Notes(plan_of("ab", processes=2))
    notes.store.fail_cells([])
    crash = Failure("client 0 was killed by SIGSEGV", crashed=True)
    for _ in range(2):
        notes.store.note_crash(notes.cell("a"), crash)
        notes.store.add_run(notes.cell("a"), run(0.1))
    assert notes.result("a").reason == f"2 runs repeated after a crash: {crash.cause}"
    assert (notes.result("a").crashes, notes.result("b").crashes) == ((crash.cause,) * 2, ())


def test_a_measured_cell_can_still_have_more_runs() -> None:
    notes = Notes(plan_of("ab"))
    notes.store.fail_cells([])
    notes.store.add_run(notes.cell("a"), run(0.1))
    assert notes.store.unsettled(notes.store.plan.cells) == notes.store.plan.cells


def test_every_cell_is_settled_once_whether_it_is_measured_or_fails() -> None:
    notes = Notes(plan_of("abcd", processes=3))
    store = notes.store
    store.fail_cells([(notes.cell("d"), BROKE)])
    for contender in "abc":
        store.add_run(notes.cell(contender), run(0.1))
    store.fail(notes.cell("b"), BROKE)
    assert notes.observer.failed == ["d add", "b add"]
    store.close(store.plan.cells)
    assert notes.observer.settled == [
        "a add measured", "b add failed", "c add measured", "d add failed",
    ]  # fmt: skip


def test_missing_runs_are_reported_only_without_a_precision() -> None:
    for precision, reason in ((0.0, "incomplete: 1 of 3 runs"), (0.05, "")):
        notes = Notes(plan_of("a", processes=3, precision=precision))
        notes.store.add_run(notes.cell("a"), run(0.1))
        assert [result.reason for result in notes.store.results] == [reason]


def test_fail_fast_gives_up_at_a_failure_and_keeps_the_results_so_far() -> None:
    notes = Notes(plan_of("abc"), fail_fast=True)
    notes.store.fail_cells([(notes.cell("b"), CANNOT)])
    notes.store.add_run(notes.cell("a"), run(0.1))
    notes.store.fail(notes.cell("c"), CANNOT)
    with pytest.raises(UserError, match="--fail-fast"):
        notes.store.fail(notes.cell("a"), BROKE)
    assert notes.kept[-1] == [("failed", 1), ("not supported", 0), ("not supported", 0)]


def test_fail_fast_gives_up_at_a_failure_known_from_the_start() -> None:
    notes = Notes(plan_of("ab"), fail_fast=True)
    with pytest.raises(UserError, match="--fail-fast"):
        notes.store.fail_cells([(notes.cell("b"), BROKE)])
    assert notes.kept == [[("not run", 0), ("failed", 0)]]


def test_slow_writing_takes_only_a_small_share_of_the_time() -> None:
    notes = Notes(plan_of("ab", processes=100))
    notes.store.fail_cells([])
    notes.writing = 0.4
    for _ in range(100):
        notes.time += 2.0
        notes.store.add_run(notes.cell("a"), run(0.1))
        notes.store.save_new()
    spent = notes.writing * (len(notes.kept) - 1)
    assert 0.03 * notes.time < spent < 0.06 * notes.time


def test_a_settled_cell_is_written_at_once() -> None:
    notes = Notes(plan_of("ab", processes=2))
    notes.store.fail_cells([])
    notes.writing = 10.0
    for _ in range(2):
        notes.store.add_run(notes.cell("a"), run(0.1))
        notes.store.save_new()
    assert notes.kept[-1] == [("measured", 1), ("not run", 0)]
    notes.store.close([notes.cell("a")])
    assert notes.kept[-1] == [("measured", 2), ("not run", 0)]
    notes.store.fail(notes.cell("b"), BROKE)
    assert notes.kept[-1] == [("measured", 2), ("failed", 0)]
