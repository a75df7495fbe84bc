"""Contenders that share a database, servers that restart or end, and crews that are large."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.runs import contender, plan_of
from tests.scheduling.faked_shootout import (
    Site,
    failing,
    run_shootout,
)
from zodbshootout.model.outcome import Failure, State
from zodbshootout.model.storage_facts import Advice
from zodbshootout.scheduling.shootout import (
    MAX_CLIENTS,
)


def test_contenders_of_one_zapped_database_are_never_set_up_at_the_same_time() -> None:
    twins = [contender("a", "/var/x.fs"), contender("b"), contender("again", "/var/x.fs")]
    plan = plan_of(twins, ["add", "cold"], processes=2)
    outcome = run_shootout(plan, zapped={"a", "b", "again"})
    assert outcome.site.together[:3] == [["a"], ["a", "b"], ["again"]]
    # In each run the database is zapped right before the crew that finds it empty is set up.
    of_add = [event for event in outcome.site.did("prepare", "set up") if event.benchmark == "add"]
    assert [(event.call, event.contender) for event in of_add] == [
        ("prepare", "a"), ("prepare", "b"), ("set up", "a"), ("set up", "b"),
        ("prepare", "again"), ("set up", "again"),
    ] * 2  # fmt: skip
    assert all(event.detail == (True, False) for event in of_add if event.call == "prepare")
    # Benchmarks that only read may run at the same time.
    assert outcome.site.together[-1][-3:] == ["a", "b", "again"]


def test_contenders_of_one_database_take_turns_if_it_is_not_zapped() -> None:
    twins = [contender("a", "/var/x.fs"), contender("again", "/var/x.fs")]
    assert run_shootout(plan_of(twins, processes=1)).site.together == [["a"], ["a", "again"]]


def test_a_database_is_left_to_one_contender_while_that_packs_it() -> None:
    twins = [contender("a", "/var/x.fs"), contender("b"), contender("again", "/var/x.fs")]
    plan = plan_of(twins, ["pack"], processes=1)
    assert run_shootout(plan).site.together == [["a"], ["a", "b"], ["again"]]


def test_contenders_are_measured_in_groups_if_they_have_too_many_clients() -> None:
    size = MAX_CLIENTS // 2
    outcome = run_shootout(plan_of("abcde", ["tpc"], concurrency=[size], processes=1))
    assert [group for group in outcome.site.together if len(group) == 2] == [["a", "b"], ["c", "d"]]
    assert outcome.site.together[-1] == ["e"]
    assert set(outcome.states().values()) == {"measured"}


def test_a_crew_larger_than_the_maximum_is_measured_by_itself() -> None:
    outcome = run_shootout(plan_of("ab", ["tpc"], concurrency=[MAX_CLIENTS + 1], processes=1))
    assert outcome.site.together == [["a"], ["b"]]


ENDED = Failure("server pg was killed by SIGKILL: out  of memory", "out  of memory")


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (Failure("connection lost"), f"connection lost; {ENDED.cause}"),
        (
            Failure("server pg ended at once: out of memory"),
            "server pg ended at once: out of memory",
        ),
        (Failure("has no prefetch", state=State.UNSUPPORTED), "has no prefetch"),
    ],
)
def test_a_failure_reports_at_most_once_how_a_server_ended(failure: Failure, reason: str) -> None:
    site = Site(fails=failing("slice", "a", failure=failure))
    site.ended = lambda contender: ENDED if site.did("slice") else None
    (result,) = run_shootout(plan_of("a"), site).results
    assert (result.state, result.reason) == (failure.state, reason)


def test_a_contender_whose_server_ends_fails_and_its_later_cells_are_not_begun() -> None:
    site = Site()
    gone = Failure("server mc was killed by SIGKILL: it logged nothing", "it logged nothing")
    site.ended = lambda name: gone if name == "a" and "add a" in site.measured()[1:] else None
    outcome = run_shootout(plan_of("ab", ["add", "warm"]), site)
    assert outcome.states() == {
        "add a": "failed",
        "add b": "measured",
        "warm a": "failed",
        "warm b": "measured",
    }
    assert {result.reason for result in outcome.results if result.state is State.FAILED} == {
        gone.cause
    }
    assert site.measured().count("add a") == 2
    assert {event.benchmark for event in site.events if event.contender == "a"} == {"add"}


def test_the_reason_of_a_failure_ends_with_the_matching_advice() -> None:
    advised = replace(contender("a"), advice=(Advice("broke$", "write something else"),))
    outcome = run_shootout(plan_of([advised]), Site(fails=failing("begin", "a")))
    assert outcome.failure().reason == "it broke; write something else"


def test_nothing_is_advised_if_a_server_has_ended() -> None:
    gone = Failure("server mc was killed by SIGKILL: it logged nothing", "it logged nothing")
    advised = replace(contender("a"), advice=(Advice("broke", "write something else"),))
    site = Site(fails=failing("begin", "a"))
    site.ended = lambda _: gone if site.did("begin") else None
    outcome = run_shootout(plan_of([advised], ["add"]), site)
    assert outcome.failure().reason == f"it broke; {gone.cause}"


def test_every_run_is_profiled_under_the_name_of_its_cell(tmp_path: Path) -> None:
    plan = plan_of("a", ["add"], processes=2, concurrency=[1, 2])
    outcome = run_shootout(plan, profiles=tmp_path)
    profiles = [event.detail.profile for event in outcome.site.did("set up")]
    # No Path: one that Python 3.13 has pickled cannot be loaded by an older Python.
    assert profiles == [str(tmp_path / "a-add-c1")] * 2 + [str(tmp_path / "a-add-c2")] * 2


def test_a_database_is_packed_only_before_its_first_benchmark() -> None:
    outcome = run_shootout(plan_of("ab", ["tpc", "hot"]), pack=True)
    packed = [(event.benchmark, event.contender, event.detail[1]) for event in
              outcome.site.did("prepare")]  # fmt: skip
    assert packed == [
        ("tpc", "a", True), ("tpc", "b", True), ("hot", "a", False), ("hot", "b", False),
    ]  # fmt: skip


def test_contenders_of_one_database_have_separate_objects() -> None:
    twins = [contender("a", "/var/x.fs"), contender("again", "/var/x.fs")]
    outcome = run_shootout(plan_of(twins, ["update"], processes=1))
    owners = [event.detail.specification.parameters.owner for event in outcome.site.did("set up")]
    assert owners == ["a", "again"]
