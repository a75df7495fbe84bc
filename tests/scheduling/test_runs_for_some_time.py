"""Runs that go on for a given time with the same clients."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.runs import plan_of
from tests.scheduling.faked_shootout import (
    BROKE,
    FakedShootout,
    Site,
    failing,
    interrupting,
    run_shootout,
    shootout_of,
)
from zodbshootout.model.outcome import State


def run_for(duration: float, site: Site) -> FakedShootout:
    """Make runs of a second for some time."""
    site.costs = {"done": 0.5, **site.costs}
    return run_shootout(plan_of("ab", processes=1, values=2, duration=duration), site, retries=3)


def test_the_time_begins_with_the_first_run() -> None:
    site = Site(costs={"set up": 5.0, "attempt": 2.0})
    run_for(20.0, site)
    assert site.now == pytest.approx(10.0 + 4.0 + 20.0, abs=1.0)


def test_runs_for_some_time_share_their_workers_and_pair_up() -> None:
    outcome = run_for(20.0, Site())
    runs = [len(result.runs) for result in outcome.results]
    assert runs[0] == runs[1] > 4
    assert len(outcome.site.did("set up")) == len(outcome.site.did("end")) == 2
    slices = [event.detail for event in outcome.site.did("slice")]
    assert slices == [number for number in range(2 * runs[0]) for _ in "ab"]
    a, b = ([run.get_metadata()["round"] for run in result.runs] for result in outcome.results)
    assert a == b
    assert len(set(a)) == runs[0]
    assert [event.detail for event in outcome.site.did("finish")] == (
        [False] * (2 * runs[0] - 2) + [True] * 2
    )
    assert len(outcome.site.did("attempt")) == 2


def test_a_crash_ends_a_cell_that_is_measured_for_some_time_with_what_it_has() -> None:
    crash = replace(BROKE, crashed=True)
    site = Site(fails=failing("slice", "a", nth=5, failure=crash))
    a, b = run_for(20.0, site).results
    assert (a.state, len(a.runs), a.reason) == (State.FAILED, 2, "it broke")
    assert (b.state, len(b.runs) > 4) == (State.MEASURED, True)
    assert len(site.did("set up")) == 2


def test_an_interrupt_after_some_runs_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(fails=interrupting("slice", "b", 6))
    outcome = shootout_of(plan_of("ab", processes=1, values=2, duration=60.0), site)
    with pytest.raises(KeyboardInterrupt):
        outcome.run()
    assert [len(result.runs) for result in outcome.results] == [3, 3]


def test_the_estimate_counts_the_time_for_each_row() -> None:
    plan = plan_of("ab", ["add", "update"], processes=1, duration=90.0)
    assert plan.estimated_seconds() == 180.0


@pytest.mark.parametrize(("seconds", "runs"), [(15.0, 20), (1800.0, 40), (7200.0, 120)])
def test_runs_for_some_time_take_a_second_or_so_to_a_minute(seconds: float, runs: int) -> None:
    effort = plan_of("ab", processes=1, duration=seconds).effort.lasting(2)
    assert seconds / (2 * effort.run_time) == pytest.approx(runs)
    assert 0.05 <= effort.min_time <= 1.0
