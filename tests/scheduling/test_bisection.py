"""A search for a commit, and the decision about one while it is measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from benchmarks.bisections import repository

from tests.runs import cell, plan_of, run
from tests.scheduling.faked_shootout import Site, failing, run_shootout
from zodbshootout.contenders.suspects import Suspects
from zodbshootout.model.costs import BY_NAME
from zodbshootout.results.bisection import Finding, Step, step_at
from zodbshootout.results.result import CellResult
from zodbshootout.results.sequential import LOOKS, Rule
from zodbshootout.scheduling.bisection import ERROR, Decision, Search

PLANTED = 11


class Searched:
    """A search in a repository of 17 empty commits, of which the first is the good one."""

    def __init__(self, place: Path) -> None:
        checkout = place / "checkout"
        checkout.mkdir()
        self.commits = repository(checkout)
        self.checkout = checkout
        self.place = place
        self.steps: list[Step] = []
        self.rules: list[Rule] = []
        self.skipped: Sequence[int] = ()
        self.planted = PLANTED
        self.interrupted_at = 99
        self.clones = 0

    def run(self) -> list[int]:
        """Search; return the numbers of the commits of which one is the first bad one."""
        self.clones += 1
        place = self.place / str(self.clones)
        place.mkdir()
        good, *_, bad = self.commits
        suspects = Suspects.of(self.checkout, good, bad, place)
        search = Search(suspects, self.measure, lambda _: None, LOOKS, self.steps)
        search.run()
        return [self.commits.index(commit) for commit in search.first_bad]

    def measure(self, commit: str, rule: Rule, first: Step | None) -> Step:
        if len(self.steps) == self.interrupted_at:
            raise KeyboardInterrupt
        assert first == (self.steps[0] if self.steps else None)
        self.rules.append(rule)
        number = self.commits.index(commit)
        if number in self.skipped:
            return Step(commit, Finding.SKIPPED, 0.0, "it cannot be built")
        finding = Finding.BAD if number >= self.planted else Finding.GOOD
        return Step(commit, finding, rule.error, "", "fs: add", boundary=-0.05)


@pytest.fixture
def searched(tmp_path: Path) -> Searched:
    return Searched(tmp_path)


@pytest.mark.slow
def test_the_planted_commit_is_named(searched: Searched) -> None:
    assert searched.run() == [PLANTED]
    assert [rule.boundary for rule in searched.rules] == [None, *[-0.05] * 4]


@pytest.mark.slow
def test_commits_that_are_skipped_cost_a_step(searched: Searched) -> None:
    searched.skipped = (8, 13)
    assert searched.run() == [PLANTED]


@pytest.mark.slow
def test_skipped_commits_beside_the_planted_one_are_named_with_it(searched: Searched) -> None:
    searched.skipped = (9, 10)
    assert searched.run() == [PLANTED, 10, 9]


@pytest.mark.slow
def test_nothing_is_searched_if_good_and_bad_do_not_differ(searched: Searched) -> None:
    searched.planted = 99
    assert searched.run() == []
    assert len(searched.steps) == 1


@pytest.mark.slow
def test_the_error_is_divided_over_all_steps(searched: Searched) -> None:
    searched.run()
    errors = [step.error for step in searched.steps]
    assert errors == pytest.approx([ERROR / 6] * 5)
    # Nor is it exceeded if commits are skipped, and there are more steps.
    searched.steps, searched.skipped = [], (4, 7, 8, 12, 13, 14, 15)
    searched.run()
    assert sum(step.error for step in searched.steps) < ERROR


@pytest.mark.slow
def test_a_search_goes_on_after_an_interrupt(searched: Searched) -> None:
    searched.interrupted_at = 3
    with pytest.raises(KeyboardInterrupt):
        searched.run()
    before = list(searched.steps)
    searched.interrupted_at = 99
    assert searched.run() == [PLANTED]
    assert searched.steps[:3] == before
    assert len({step.commit for step in searched.steps}) == len(searched.steps) == 5
    assert step_at(searched.steps, searched.commits[PLANTED])


def results(
    runs: int, slower: float = 1.0, benchmark: str = "add", **facts: Callable[[str], str]
) -> list[CellResult]:
    """Return the results of the good commit and of a candidate after a number of runs."""
    both = []
    for name, seconds in (("fs", 1.0), ("fs@shot@1a2b3c4", slower)):
        result = CellResult(cell(benchmark, name))
        for number in range(runs):
            noise = 1.01 if number % 2 and name == "fs" else 1.0
            own: dict[str, Any] = {key: of(name) for key, of in facts.items()}
            one = run(seconds * noise, round=f"r-{number}", slices="0", **own)
            result = result.with_run(one)
        both.append(result)
    return both


def decision(boundary: float | None = None, **how: Any) -> Decision:
    looks = (1, 8, 16, 32) if "cost" in how else (8, 16, 32)
    return Decision(Rule(0.01, boundary, looks), "@shot@1a2b3c4", **how)


def test_a_row_is_measured_until_it_is_decided() -> None:
    deciding = decision()
    assert [deciding.rounds(results(n, 1.2), 1) for n in (0, 1, 7, 8)] == [8, 8, 8, 0]
    assert (deciding.is_changed, deciding.pair and deciding.pair.speed.runs) == (True, 8)


def test_a_candidate_like_the_good_one_has_no_change() -> None:
    deciding = decision(boundary=-0.05)
    assert deciding.rounds(results(8, 1.0), 1) == 0
    assert deciding.is_changed is False


def test_a_row_has_its_last_round_at_the_last_look() -> None:
    deciding = decision(boundary=math.log(1.01) / 2)
    assert [deciding.rounds(results(n, 1.0), 1) for n in (8, 16, 32)] == [16, 32, 0]
    assert deciding.is_changed is None


def test_other_rows_end_when_one_is_decided() -> None:
    deciding = decision()
    assert deciding.rounds(results(8, 1.0, "cold"), 2) == 16
    assert deciding.rounds(results(8, 1.2), 2) == 0
    assert deciding.rounds(results(8, 1.0, "cold"), 2) == 0
    assert deciding.pair is not None
    assert deciding.pair.base.cell.benchmark == "add"


def test_several_figures_share_the_error() -> None:
    width = {
        rows: next(
            n for n in range(1, 99) if decision().rounds(results(8, 1 + n / 1000), rows) == 0
        )
        for rows in (1, 30)
    }
    assert width[1] < width[30]


def test_later_steps_follow_the_figure_of_the_first() -> None:
    deciding = decision(boundary=-0.05, figure="fs: cold 1000x300B threads-shared-2")
    assert deciding.rounds(results(8), 1) == 0
    assert (deciding.pair, deciding.is_changed) == (None, None)


def test_nothing_is_decided_between_two_looks() -> None:
    deciding = decision(boundary=-0.05)
    assert [deciding.rounds(results(n, 2.0), 1) for n in (7, 9, 15)] == [8, 16, 16]
    assert deciding.is_changed is None


def test_one_run_decides_about_trips() -> None:
    deciding = decision(cost=BY_NAME["trips"])
    counted = results(1, trips=lambda name: "11" if name == "fs" else "12")
    assert deciding.rounds(results(0), 1) == 1
    assert deciding.rounds(counted, 1) == 0
    assert deciding.is_changed is True


def test_bytes_that_differ_as_those_of_equals_can_are_no_change() -> None:
    deciding = decision(cost=BY_NAME["sent"])
    almost = results(8, sent_bytes=lambda name: "1000" if name == "fs" else "1010")
    assert deciding.rounds(almost, 1) == 16
    assert deciding.is_changed is None


def test_a_cost_that_was_not_recorded_is_not_waited_for() -> None:
    deciding = decision(cost=BY_NAME["trips"])
    assert deciding.rounds(results(1), 1) == 0
    assert (deciding.pair, deciding.is_changed) == (None, None)


def test_a_failure_of_one_side_ends_the_row() -> None:
    good, candidate = results(3)
    for left in ([good], [candidate], []):
        assert decision().rounds(left, 1) == 0


def test_a_shootout_makes_the_rounds_that_a_decision_needs() -> None:
    deciding = Decision(Rule(0.01), "b")
    plan = plan_of(["x", "xb"], processes=8, precision=0.05, limit=1e9)
    site = Site(swings={"xb": 0.02}, seconds={"xb": 1.2})
    outcome = run_shootout(plan, site, rounds=deciding.rounds)
    assert {len(result.runs) for result in outcome.results} == {8}
    assert deciding.is_changed is True


def test_a_shootout_ends_if_the_candidate_fails() -> None:
    deciding = Decision(Rule(0.01), "b")
    plan = plan_of(["x", "xb"], processes=8, precision=0.05, limit=1e9)
    site = Site(fails=failing("begin", "xb", nth=2))
    outcome = run_shootout(plan, site, rounds=deciding.rounds)
    assert (len(outcome.results[0].runs), deciding.is_changed) == (3, None)
