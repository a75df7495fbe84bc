"""The number of runs that rows have until figures and ratios are precise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.runs import contender, plan_of, unpaired
from tests.scheduling.faked_shootout import (
    Site,
    failing,
    far,
    run_shootout,
)
from zodbshootout.contenders.contender import Contender
from zodbshootout.model.outcome import State
from zodbshootout.results.estimate import MIN_RUNS
from zodbshootout.results.figures import time_of
from zodbshootout.results.trend import FEWEST_RUNS
from zodbshootout.scheduling.calibration import MIN_VALUES
from zodbshootout.scheduling.plan import Plan


def precise(names: Sequence[str | Contender], **effort: Any) -> Plan:
    return plan_of(names, processes=3, precision=0.05, **{"cell_limit": 1e6, **effort})


def test_a_row_that_is_precise_enough_has_the_fewest_runs() -> None:
    outcome = run_shootout(precise("ab"))
    assert [len(result.runs) for result in outcome.results] == [3, 3]
    assert all(time_of(result).half_width == 0 for result in outcome.results)


def test_a_row_continues_until_every_contender_is_precise_enough() -> None:
    outcome = run_shootout(precise("ab"), Site(swings={"b": 0.1}))
    runs = {len(result.runs) for result in outcome.results}
    # Runs that are alternately 10 % slower and 10 % faster take 19 runs to be known within 5 %.
    assert runs == {19}
    widths = [time_of(result).half_width for result in outcome.results]
    assert widths == pytest.approx([0, 0.05], abs=0.002)


@pytest.mark.parametrize("names", ["ab", "b"])
def test_a_contender_that_gets_slower_with_time_does_not_prolong_its_row(names: str) -> None:
    plan = plan_of(names, processes=3, precision=0.2, cell_limit=1e6)
    outcome = run_shootout(plan, Site(rises={"b": 0.2}))
    assert {len(result.runs) for result in outcome.results} <= {FEWEST_RUNS + 1, FEWEST_RUNS + 2}
    # A rise that may be chance does.
    swinging = Site(rises={"b": 0.1}, swings={"b": 0.3})
    assert len(run_shootout(plan, swinging).results[-1].runs) > FEWEST_RUNS + 2


def test_a_ratio_must_be_as_precise_as_the_figures() -> None:
    # Both swing by the same amount, in opposite directions.
    outcome = run_shootout(precise("ab"), Site(swings={"a": 0.08, "b": -0.08}))
    alone = run_shootout(precise("a"), Site(swings={"a": 0.08}))
    assert len(outcome.results[0].runs) > 1.5 * len(alone.results[0].runs)


ALL = ["add", "update", "warm", "cold", "prefetch_cold", "hot", "steamin"]


@pytest.mark.slow
@pytest.mark.parametrize("counting", [0.1, 0.7, 1.2])
@pytest.mark.parametrize("set_up", [0.05, 0.3])
def test_every_cell_has_three_runs_within_the_limit_also_if_counting_trips_takes_long(
    counting: float, set_up: float
) -> None:
    site = Site(
        costs={"count": counting, "prepare": 0.3, "set up": set_up},
        seconds={"a": 0.0004, "b": 0.001, "c": 0.0001},
        swings=dict.fromkeys("abc", 0.5),
    )
    contenders: list[str | Contender] = [far("a", 0.0), far("b", 0.0), "c"]
    effort: dict[str, Any] = {
        "precision": 0.001, "limit": 60.0, "min_time": 0.05, "run_time": 1.8,
    }  # fmt: skip
    results = run_shootout(plan_of(contenders, ALL, values=0, loops=0, **effort), site).results
    runs, seconds = min(len(result.runs) for result in results), site.now
    assert runs >= 3
    # Nor is much of the time left over.
    assert 50.0 <= seconds <= 61.0


def test_a_cell_without_time_left_is_not_run_and_says_why() -> None:
    outcome = run_shootout(precise("ab", limit=1e-9), Site())
    reason = "no time was left of the 1.67e-11 minutes (--at-most)"
    assert [(result.state, result.reason) for result in outcome.results] == [
        (State.NOT_RUN, reason)
    ] * 2
    assert outcome.site.events == []


@pytest.mark.parametrize("runs", [(1, 6), (2, 6), (6, 1)])
def test_a_resumed_run_with_a_precision_evens_out_the_runs_of_its_cells(
    runs: tuple[int, int],
) -> None:
    plan = precise("ab")
    begun = [
        unpaired(result.cell, *([time_of(result).value * (1 + 0.001 * at)] for at in range(number)))
        for result, number in zip(run_shootout(plan).results, runs, strict=True)
    ]
    outcome = run_shootout(plan, begun=begun)
    assert [len(result.runs) for result in outcome.results] == [6, 6]


def test_a_failed_contender_does_not_prolong_its_row() -> None:
    outcome = run_shootout(precise("ab"), Site(fails=failing("slice", "b"), swings={"b": 0.5}))
    assert [(result.state, len(result.runs)) for result in outcome.results] == [
        (State.MEASURED, 3),
        (State.FAILED, 0),
    ]


def test_all_runs_that_zap_are_made_before_other_benchmarks_fill_the_database() -> None:
    plan = plan_of("a", ["add", "update", "cold"], processes=2, precision=0.05, cell_limit=1e6)
    outcome = run_shootout(plan, zapped=["a"])
    assert outcome.site.measured() == ["add a"] * 3 + ["update a"] * 3 + ["cold a"] * 3


def test_a_larger_database_is_measured_after_all_runs_of_a_smaller_one() -> None:
    small = plan_of("a", ["update", "hot"], processes=2)
    large = plan_of("a", ["add", "cold"], {"min_objects": 5}, processes=2)
    outcome = run_shootout(replace(small, rows=[*large.rows, *small.rows]))
    assert outcome.site.measured() == [
        *["update a"] * 2, *["hot a"] * 2, *["add a"] * 2, *["cold a"] * 2
    ]  # fmt: skip


def test_ratios_are_relative_to_the_baseline() -> None:
    # The first and the last contender swing against each other, and the second does not swing.
    swings = {"a": 0.08, "b": 0.0, "c": -0.08}
    to_first = run_shootout(precise("abc"), Site(swings=swings))
    to_second = run_shootout(precise("abc"), Site(swings=swings), baseline="b")
    assert len(to_second.results[0].runs) < len(to_first.results[0].runs)


@pytest.mark.slow
def test_a_variant_must_be_precise_relative_to_its_original() -> None:
    # The variant and its original swing against each other, the first contender does not swing.
    variant = replace(contender("b"), variant={"environment": "new"})
    swings = {"b": 0.08, "b@new": -0.08}
    variants = run_shootout(precise(["a", "b", variant]), Site(swings=swings))
    strangers = run_shootout(precise(["a", "b", "b@new"]), Site(swings=swings))
    only_two = run_shootout(precise(["b", "b@new"]), Site(swings=swings))
    named = run_shootout(precise(["a", "b", variant]), Site(swings=swings), baseline="a")
    runs = [len(outcome.results[0].runs) for outcome in (variants, only_two, strangers, named)]
    assert runs[0] == runs[1] > 1.5 * runs[2]
    assert runs[2] == runs[3]


def test_a_run_of_a_lengthy_benchmark_is_one_iteration_and_there_are_three(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("zodbshootout.scheduling.shootout.calibrations_for", lambda *_: {})
    plan = plan_of(
        [far("a", 0.0)], ["pack"], processes=4, values=0, loops=0,
        precision=0.01, cell_limit=1e-9,
    )  # fmt: skip
    outcome = run_shootout(plan, Site(swings={"a": 0.5}))
    assert Counter(event.call for event in outcome.site.did("attempt", "slice", "count")) == {
        "slice": MIN_RUNS
    }
    (result,) = outcome.results
    assert [len(run.values) for run in result.runs] == [1] * MIN_RUNS


def test_upkeep_has_three_runs_whatever_the_limit_is() -> None:
    outcome = run_shootout(plan_of("a", ["add", "open"], precision=0.01, cell_limit=1e-9))
    runs = {result.cell.benchmark: len(result.runs) for result in outcome.results}
    assert runs == {"add": 0, "open": MIN_RUNS}


def test_rows_whose_slices_were_not_chosen_leave_them_to_the_others() -> None:
    class SlowPack(Site):
        def note(self, call: str, benchmark: str, name: str, detail: Any = None) -> None:
            self.now += 30.0 if (call, benchmark) == ("slice", "pack") else 0.0
            super().note(call, benchmark, name, detail)

    plan = plan_of(
        "a", ["pack", "cold"], {"min_objects": 10},
        values=0, loops=0, min_time=0.1, precision=0.05, cell_limit=10.0,
    )  # fmt: skip
    site = SlowPack()
    run_shootout(plan, site)
    slices = Counter(event.benchmark for event in site.did("slice"))
    assert slices["pack"] == 3
    assert slices["cold"] > 3 * MIN_VALUES


def test_a_limit_of_the_users_holds_for_a_lengthy_benchmark() -> None:
    outcome = run_shootout(plan_of("a", ["pack"], processes=4, precision=0.01, limit=1e-9))
    assert [result.state for result in outcome.results] == [State.NOT_RUN]
