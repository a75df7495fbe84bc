"""Storages that slow down, leak or stall while clients stay, on the fake clock."""

from __future__ import annotations

import gc
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from tests.fakes import FakeClock, FakeStorage, exactly_started, parameters, plan
from tests.runs import cell, run
from tests.truth.expected import EXPECTED
from zodbshootout.client import session
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.model.quantities import LONGEST, QUANTITIES
from zodbshootout.results.figures import Figure
from zodbshootout.results.result import CellResult
from zodbshootout.results.trend import with_trends
from zodbshootout.workers.summary import storable, summarize

pytestmark = pytest.mark.slow

RUNS, SLICES, LOOPS = 40, 2, 5
COMMITS_OF_A_RUN = SLICES * LOOPS
MEMORY = 20_000_000
COMMIT = EXPECTED["update"]
"""Seconds of an iteration, which is one commit."""


class ChangingStorage(FakeStorage):
    """A FakeStorage whose commits take longer and longer, or one of which stalls."""

    def __init__(self, clock: FakeClock, slower: float = 0.0, stalls_at: int = 0) -> None:
        super().__init__(clock)
        self.slower = slower
        """The part of the first commit's time that each takes longer than the one before."""
        self.stalls_at = stalls_at
        self.commits = 0

    def tpc_vote(self, transaction: Any) -> Any:
        self.commits += 1
        self.clock.spend(COMMIT * self.slower * self.commits)
        if self.commits == self.stalls_at:
            self.clock.spend(63 * COMMIT)
        return super().tpc_vote(transaction)


def course(contender: str, leak: int = 0, **how: Any) -> tuple[CellResult, ChangingStorage]:
    """Measure a storage in runs that share their client, and *leak* so many bytes a commit."""
    clock = FakeClock()
    storage = ChangingStorage(clock, **how)
    wanted = parameters(shared=True)
    made = plan(benchmarks()["update"], storage, wanted, clock)
    result = CellResult(replace(cell("update", contender), parameters=made.parameters))
    with made.started() as crew, pytest.MonkeyPatch.context() as patched:
        patched.setattr(gc, "collect", lambda: 0)
        patched.setattr(session, "memory_now", lambda: MEMORY + leak * storage.commits)
        exactly_started(crew)
        for number in range(RUNS):
            turns = [number * SLICES + turn for turn in range(SLICES)]
            samples = [crew.measure(LOOPS, turn * LOOPS) for turn in turns]
            metadata: dict[str, Any] = {
                **storable(summarize(samples, turns)),
                "client_memory_now_bytes": max(crew.call("memory")),
                "round": f"x-{number}",
                "for_s": 1.0,
            }
            result = result.with_run(run(*(sample.value for sample in samples), **metadata))
    return result, storage


@cache
def steady_course() -> tuple[CellResult, ChangingStorage]:
    return course("steady")


def beside_a_steady_one(result: CellResult) -> CellResult:
    """Return a result with its trend relative to that of a steady contender."""
    steady, _ = steady_course()
    result, other = with_trends([result, steady])
    assert not other.gets_slower
    return result


def test_commits_that_each_take_0_2_percent_longer_have_that_slope() -> None:
    result, storage = course("slowing", slower=0.002)
    result = beside_a_steady_one(result)
    before = storage.commits - RUNS * COMMITS_OF_A_RUN
    # The first run is left aside.
    first, last = (
        1 + 0.002 * (before + number * COMMITS_OF_A_RUN + (COMMITS_OF_A_RUN + 1) / 2)
        for number in (1, RUNS - 1)
    )
    assert result.gets_slower
    assert result.trend is not None
    assert result.trend.times - 1 == pytest.approx(last / first - 1, rel=0.1)


def test_a_leak_of_a_kilobyte_a_commit_shows_in_the_memory_of_the_runs() -> None:
    result, _ = course("leaking", leak=1000)
    (first,), *_, (last,) = Figure(result, QUANTITIES["memory_now"]).runs
    assert last - first == 1000 * COMMITS_OF_A_RUN * (RUNS - 1)
    assert not beside_a_steady_one(result).gets_slower


def test_the_longest_iteration_is_known_and_is_no_trend() -> None:
    result, _ = course("stalling", stalls_at=7 * COMMITS_OF_A_RUN)
    assert Figure(result, LONGEST).value == pytest.approx(64 * COMMIT, rel=1e-3)
    assert not beside_a_steady_one(result).gets_slower


def test_a_steady_storage_is_steady() -> None:
    result, _ = steady_course()
    fs = replace(result, cell=replace(result.cell, contender="fs"))
    trend = beside_a_steady_one(fs).trend
    assert trend is not None
    assert not trend.found
    assert trend.times == pytest.approx(1.0, abs=0.001)
