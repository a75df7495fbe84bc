"""Cells that fail, crash, are refused or interrupted, in a shootout of fakes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.runs import contender, measured, plan_of
from tests.scheduling.faked_shootout import (
    BROKE,
    Event,
    Site,
    failing,
    far,
    interrupting,
    run_shootout,
    shootout_of,
)
from zodbshootout.config.configuration import ServerSection
from zodbshootout.crews.traffic import Counts
from zodbshootout.errors import UserError
from zodbshootout.model.outcome import Failure, State
from zodbshootout.model.specification import (
    Interpreter,
)
from zodbshootout.model.storage_facts import Link
from zodbshootout.network.relays import Traffic

POINTS = [
    ("prepare", 0),
    *((call, nth) for call in ("attempt", "begin", "finish") for nth in range(3)),
    *(("slice", nth) for nth in range(6)),
]


@pytest.mark.parametrize("point", POINTS)
def test_trap_15_a_cell_that_fails_at_any_point_fails_alone(point: tuple[str, int]) -> None:
    call, nth = point
    site = Site(fails=failing(call, "b", nth=nth))
    outcome = run_shootout(plan_of("abc", ["add", "cold"]), site)
    assert outcome.states() == {
        "add a": "measured",
        "add b": "failed",
        "add c": "measured",
        "cold a": "measured",
        "cold b": "measured",
        "cold c": "measured",
    }
    failed = outcome.failure()
    assert (failed.reason, failed.detail) == ("it broke", "Traceback")
    assert len(failed.runs) == len(outcome.site.did("done")) - 15
    for result in outcome.results:
        if result is not failed:
            assert len(result.runs) == 3
            assert result.reason == ""
    abandoned = [(event.benchmark, event.contender) for event in site.did("abandon")]
    assert abandoned == ([] if call == "prepare" else [("add", "b")])


@pytest.mark.parametrize(
    ("call", "has_copied"), [("prepare", False), ("set up", False), ("slice", True)]
)
def test_what_a_failed_copy_has_left_is_removed_and_nothing_else(
    call: str, *, has_copied: bool
) -> None:
    site = Site(fails=lambda event, nth: BROKE if event[:3] == (call, "copy", "b") else None)
    outcome = run_shootout(plan_of("ab", ["copy"]), site)
    assert outcome.states() == {"copy a": "measured", "copy b": "failed"}
    *_, last = (event for event in site.did("prepare") if event.contender == "b")
    assert (last.detail, site.may_write) == ((True, False), {"a": False, "b": has_copied})


CRASH = Failure("client 0 was killed by SIGSEGV", crashed=True)


@pytest.mark.parametrize("point", POINTS)
def test_a_run_in_which_a_process_crashes_is_repeated(point: tuple[str, int]) -> None:
    call, nth = point
    site = Site(fails=failing(call, "b", nth=nth, failure=CRASH))
    outcome = run_shootout(plan_of("abc", ["add", "cold"]), site, retries=1)
    assert set(outcome.states().values()) == {"measured"}
    assert {len(result.runs) for result in outcome.results} == {3}
    reasons = {result.cell.contender: result.reason for result in outcome.results if result.reason}
    assert reasons == {"b": f"1 run repeated after a crash: {CRASH.cause}"}


def test_a_cell_that_keeps_crashing_fails_but_keeps_its_earlier_runs() -> None:
    def second_run(event: Event, nth: int) -> Failure | None:
        return CRASH if event[:3] == ("finish", "add", "b") and nth >= 1 else None

    outcome = run_shootout(plan_of("ab"), Site(fails=second_run), retries=2)
    assert outcome.states() == {"add a": "measured", "add b": "failed"}
    assert (outcome.failure().reason, len(outcome.failure().runs)) == (CRASH.cause, 1)
    assert outcome.failure().crashes == (CRASH.cause,) * 2


def test_a_fork_server_that_crashes_is_replaced() -> None:
    outcome = run_shootout(plan_of("ab"), Site(fails=failing("fork", "", "", 1, CRASH)), retries=1)
    assert set(outcome.states().values()) == {"measured"}
    assert {len(result.runs) for result in outcome.results} == {3}


def test_a_contender_that_cannot_be_set_up_with_others_is_tried_alone() -> None:
    def busy(event: Event, nth: int) -> Failure | None:
        with_others = event.call == "set up" and event.contender == "b" and len(site.at_work) > 1
        return Failure("the file is locked") if with_others else None

    site = Site(fails=busy)
    outcome = run_shootout(plan_of("abc", processes=2), site)
    assert set(outcome.states().values()) == {"measured"}
    assert site.measured() == ["add a", "add c", "add b"] * 2
    assert site.together == [["a"], ["a", "b"], ["a", "b", "c"], ["b"]] * 2
    loops = {event.detail[0] for event in site.did("begin")}
    assert len(loops) == 1


def test_a_contender_that_cannot_be_set_up_alone_either_fails() -> None:
    def broken(event: Event, nth: int) -> Failure | None:
        broken = event.call == "set up" and event.contender == "b"
        return Failure(f"try {nth}") if broken else None

    outcome = run_shootout(plan_of("ab"), Site(fails=broken))
    assert outcome.states() == {"add a": "measured", "add b": "failed"}
    assert outcome.failure().reason == "try 1"
    assert len([event for event in outcome.site.did("set up") if event.contender == "b"]) == 2


def test_a_lone_contender_that_cannot_be_set_up_is_tried_once() -> None:
    outcome = run_shootout(plan_of("a"), Site(fails=failing("set up", "a")))
    assert outcome.states() == {"add a": "failed"}
    assert len(outcome.site.did("set up")) == 1


def test_an_unsupported_cell_is_not_tried_again() -> None:
    refusal = Failure("it has none", state=State.UNSUPPORTED)
    outcome = run_shootout(plan_of("ab"), Site(fails=failing("set up", "b", failure=refusal)))
    assert outcome.states() == {"add a": "measured", "add b": "not supported"}
    assert len([event for event in outcome.site.did("set up") if event.contender == "b"]) == 1


def test_a_cell_that_is_refused_beforehand_is_never_begun() -> None:
    outcome = run_shootout(plan_of(["memory", "a"], ["warm"]))
    assert outcome.states() == {"warm memory": "not supported", "warm a": "measured"}
    assert {event.contender for event in outcome.site.did("prepare", "set up")} == {"a"}


def test_contenders_that_could_not_be_opened_fail_without_being_tried() -> None:
    unavailable = {"b": Failure("no server", "Traceback")}
    outcome = run_shootout(replace(plan_of("ab"), unavailable=unavailable))
    assert outcome.states() == {"add a": "measured", "add b": "failed"}
    assert (outcome.failure().reason, outcome.failure().detail) == ("no server", "Traceback")
    assert {event.contender for event in outcome.site.did("prepare", "set up")} == {"a"}


def test_a_resumed_shootout_makes_only_the_missing_runs() -> None:
    plan = plan_of("abc", ["add", "cold"])
    begun = [
        replace(measured(cell, *[[0.1, 0.1]] * runs), cell=cell, state=state)
        for cell, runs, state in zip(
            plan.cells,
            (3, 1, 0, 3, 3, 3),
            (State.MEASURED, State.FAILED, State.FAILED, *[State.MEASURED] * 3),
            strict=True,
        )
    ]
    outcome = run_shootout(plan, begun=begun)
    assert set(outcome.states().values()) == {"measured"}
    assert {len(result.runs) for result in outcome.results} == {3}
    assert Counter(outcome.site.measured()) == {"add b": 2, "add c": 3}


@pytest.mark.parametrize("how", [{"may_write": ["a"]}, {"zapped": {"a"}}, {}])
def test_only_expendable_databases_are_written_to_regardless_of_their_contents(
    how: dict[str, Any],
) -> None:
    outcome = run_shootout(plan_of("a", ["add", "tpc", "ex_commit"]), **how)
    assert outcome.site.may_write == {"a": bool(how)}
    # ex_commit writes nothing, so no database is prepared for it.
    assert [event.benchmark for event in outcome.site.did("prepare")][-1] == "tpc"


def test_a_fork_server_that_cannot_be_started_fails_only_the_cell_that_needs_it() -> None:
    site = Site(fails=lambda event, nth: BROKE if event.call == "fork" and nth == 0 else None)
    outcome = run_shootout(plan_of("ab", ["add", "cold"]), site)
    assert outcome.states() == {
        "add a": "failed", "add b": "measured", "cold a": "measured", "cold b": "measured",
    }  # fmt: skip


def test_an_environment_that_cannot_be_started_fails_only_its_own_cells() -> None:
    there = Interpreter("there", "python", "modules")
    site = Site(fails=lambda event, _: BROKE if event[:3] == ("fork", "", "there") else None)
    contenders = [contender("a"), contender("b", interpreter=there)]
    outcome = run_shootout(plan_of(contenders, ["add", "tpc"]), site)
    assert outcome.states() == {
        "add a": "measured", "add b": "failed", "tpc a": "measured", "tpc b": "failed",
    }  # fmt: skip


def test_a_row_whose_cells_have_all_failed_starts_no_more_fork_servers() -> None:
    site = Site(fails=lambda event, nth: BROKE if event.call == "attempt" else None)
    outcome = run_shootout(plan_of("ab"), site)
    assert set(outcome.states().values()) == {"failed"}
    assert len(site.did("fork")) == 1


def test_fail_fast_stops_at_the_first_failure_and_leaves_no_worker() -> None:
    site = Site(fails=failing("slice", "b", nth=1))
    outcome = shootout_of(plan_of("ab", ["add", "cold"]), site, fail_fast=True)
    with pytest.raises(UserError, match="--fail-fast"):
        outcome.run()
    assert list(outcome.states().values()) == ["not run", "failed", "not run", "not run"]
    assert (site.at_work, site.fork_servers) == ([], 0)


def test_fail_fast_stops_at_a_contender_that_could_not_be_opened() -> None:
    plan = replace(plan_of("ab"), unavailable={"b": BROKE})
    outcome = shootout_of(plan, Site(), fail_fast=True)
    with pytest.raises(UserError, match="--fail-fast"):
        outcome.run()
    assert outcome.site.events == []
    assert outcome.states() == {"add a": "not run", "add b": "failed"}


def test_fail_fast_does_not_stop_at_an_unsupported_cell() -> None:
    outcome = run_shootout(plan_of(["memory", "a"], ["warm"]), fail_fast=True)
    assert outcome.states() == {"warm memory": "not supported", "warm a": "measured"}


def test_the_runs_of_a_round_are_kept_before_the_next_round_is_measured() -> None:
    site = Site()
    outcome = run_shootout(plan_of("ab", processes=2), site)
    assert outcome.kept == [[0, 0], [1, 1], [2, 2]]

    kept: list[list[int]] = []

    def note(event: Event, nth: int) -> None:
        if event.call == "slice":
            kept.append(outcome.kept[-1])

    site = Site(fails=note)
    outcome = shootout_of(plan_of("ab", processes=2, values=1), site)
    outcome.run()
    assert kept == [[0, 0], [0, 0], [1, 1], [1, 1]]


def test_an_interrupt_keeps_the_finished_runs_and_leaves_no_worker() -> None:
    site = Site(fails=interrupting("slice", "b", 3))
    outcome = shootout_of(plan_of("ab", ["add", "cold"], values=2), site)
    with pytest.raises(KeyboardInterrupt):
        outcome.run()
    assert outcome.states() == {
        "add a": "measured",
        "add b": "measured",
        "cold a": "not run",
        "cold b": "not run",
    }
    assert [result.reason for result in outcome.results][:2] == ["incomplete: 1 of 3 runs"] * 2
    assert (outcome.site.at_work, outcome.site.fork_servers) == ([], 0)


def test_a_server_that_refuses_connections_is_named_with_the_number_that_is_needed() -> None:
    section = SimpleNamespace(
        getSectionName=lambda: "pg", getSectionType=lambda: "postgresqlserver"
    )
    a = far("a", 0.0)
    info = replace(a.info, link=Link(max_connections=20))
    a = replace(a, info=info, servers={"pg": ServerSection(section)})
    refusal = replace(BROKE, cause="FATAL: sorry, too many clients already")
    site = Site(
        fails=failing("set up", "a", failure=refusal),
        counts=Counts({False: [Traffic(2, 30, 4)] * 3}, connections=2),
    )
    plan = plan_of([a], ["add"], concurrency=[16])
    reason = run_shootout(plan, site).failure().reason
    assert reason == (
        "needs 32 connections at -c 16, the server allows 20 (max_connections): raise it in "
        "<settings>, or measure fewer clients at once; FATAL: sorry, too many clients already"
    )
