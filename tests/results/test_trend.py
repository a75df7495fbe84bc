"""Cells that get slower with time, and cells that do not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.results.over_time import RUNS, SLOWING, course, for_a_time, values
from tests.runs import cell, measured, run, unpaired
from zodbshootout.model.specification import LatencyLimit, ReplayedWorkload
from zodbshootout.results.figures import time_of
from zodbshootout.results.result import CellResult, Trend
from zodbshootout.results.trend import FEWEST_RUNS, with_trends


def row(**runs: Sequence[Sequence[float]]) -> list[CellResult]:
    """Return the results of contenders that were measured in turn."""
    return [measured(cell("add", contender), *values) for contender, values in runs.items()]


def trends(results: Sequence[CellResult]) -> dict[str, Trend]:
    """Return the trends that were found, by contender."""
    return {
        result.cell.contender: result.trend
        for result in with_trends(results)
        if result.trend and result.gets_slower
    }


def test_times_that_rise_from_run_to_run_are_a_trend() -> None:
    judged = trends(row(fs=values([1.0] * 7), slow=values(SLOWING, 2)))
    assert judged.keys() == {"slow"}
    assert judged["slow"].times == pytest.approx(6.0, rel=0.15)
    assert judged["slow"].p_value < 0.002
    low, high = judged["slow"].interval
    assert low < 6.0 < high
    assert not judged["slow"].alone


def test_a_trend_is_not_found_among_fewer_runs_than_four() -> None:
    def slowing(runs: int) -> CellResult:
        doubling = [2.0**number for number in range(runs)]
        _, slow = with_trends(
            row(fs=values([1.0] * runs, noise=0.01), slow=values(doubling, 2, 0.01))
        )
        return slow

    assert slowing(FEWEST_RUNS).gets_slower
    assert slowing(FEWEST_RUNS - 1).trend is None


def test_trap_38_drift_that_all_contenders_share_is_not_a_trend() -> None:
    machine = [1.0, 1.3, 1.6, 1.9, 2.2, 2.5, 2.8]
    assert trends(row(fs=values(machine), zeo=values(machine, 2), pg=values(machine, 3))) == {}


def test_the_trend_is_of_the_contender_whose_own_times_have_changed() -> None:
    slower, steady = values([1, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2]), values([1.0] * 7, 2)
    faster = values([2.2, 2.0, 1.8, 1.6, 1.4, 1.2, 1])
    assert trends(row(a=slower, b=steady)).keys() == {"a"}
    assert trends(row(a=steady, b=faster)) == {}
    assert trends(row(a=steady, b=steady, c=faster)) == {}


def test_a_contender_by_itself_may_have_its_trend_from_the_machine() -> None:
    judged = trends(row(slow=values(SLOWING)))
    assert judged["slow"].alone
    assert judged["slow"].times == pytest.approx(6.0, rel=0.1)


def test_others_that_end_early_do_not_make_drift_of_the_machine_a_trend() -> None:
    machine = [1.0] * 4 + [1.3] * 6
    steady = values(machine, 3)
    failed = values(machine, 2)[:4]
    assert trends(row(a=values(machine), failed=failed, b=steady)) == {}
    # Nor do they hide a trend.
    slow = values([mean * (1 + 0.1 * n) for n, mean in enumerate(machine)])
    judged = trends(row(slow=slow, failed=failed, b=steady))
    assert judged.keys() == {"slow"}
    assert judged["slow"].times == pytest.approx(1.9, rel=0.05)


def test_contenders_that_get_slower_do_not_hide_each_other_among_steady_ones() -> None:
    contenders = row(
        fs=values([1.0] * 7),
        slow=values(SLOWING, 2),
        growing=values(SLOWING, 3),
        pg=values([100.0] * 7, 4),
    )
    assert trends(contenders).keys() == {"slow", "growing"}


def test_a_run_that_was_repeated_later_has_no_pairs_and_is_left_out() -> None:
    fs, slow = row(fs=values([1.0] * 7), slow=values([*SLOWING[:6], 500.0], 2))
    *others, last = slow.runs
    repeated = run(*last.values, round="r-6", slices="6 7 8 9 10 11")
    slow = replace(slow, runs=tuple(others)).with_run(repeated)
    assert trends([fs, slow])["slow"].times == pytest.approx(17.0 / 3.3, rel=0.1)


def test_a_trend_that_is_too_small_to_matter_is_not_reported() -> None:
    def slower(part: float) -> list[CellResult]:
        slow = [1 + part * number / 19 for number in range(20)]
        return row(fs=values([1.0] * 20, noise=0.002), slow=values(slow, 2, 0.002))

    assert trends(slower(0.04)) == {}
    assert trends(slower(0.08)).keys() == {"slow"}


def test_a_trend_that_is_significant_alone_may_not_be_among_many() -> None:
    slow = row(fs=values([1.0] * 7), slow=values([1, 1.1, 1.2, 1.15, 1.3, 1.35, 1.4], 2))
    assert trends(slow).keys() == {"slow"}
    others = [
        replace(result, cell=replace(result.cell, benchmark=f"other{number}"))
        for number in range(50)
        for result in row(fs=values([1.0] * 7, number), zeo=values([1.0] * 7, number + 50))
    ]
    assert trends([*slow, *others]) == {}


def test_only_independent_times_in_known_rounds_are_tested() -> None:
    assert trends([unpaired(cell("add", "slow"), *values(SLOWING))]) == {}
    in_bytes = [measured(cell("add", "slow"), *values(SLOWING), unit="byte")]
    assert trends(in_bytes) == {}
    (slow,) = row(slow=values(SLOWING))
    for more in ({"limit": LatencyLimit(99.0, 0.1)}, {"workload": ReplayedWorkload("plone")}):
        parameters = replace(slow.cell.parameters, **more)
        assert trends([replace(slow, cell=replace(slow.cell, parameters=parameters))]) == {}


def test_values_without_noise_have_a_trend_or_none() -> None:
    assert trends(row(fs=[[1.0] * 3] * 7, zeo=[[0.1] * 3] * 7)) == {}
    rising = [[1.2**number] * 3 for number in range(7)]
    assert trends(row(fs=[[1.0] * 3] * 7, slow=rising))["slow"].times == pytest.approx(1.2**6)


@dataclass(frozen=True)
class Machine:
    """The machine's part in each slice, as logarithms that are added for all contenders."""

    drift: Sequence[float]

    def slow_down(self, result: CellResult) -> CellResult:
        rounds = {
            name: [math.exp(self.drift[6 * number + turn]) * slices[turn] for turn in slices]
            for number, (name, slices) in enumerate(time_of(result).by_round.items())
        }
        return measured(cell("add", result.cell.contender), *list(rounds.values()))


def machines(most: float) -> st.SearchStrategy[Machine]:
    """Return machines of any drift up to a logarithm."""
    slices = st.lists(st.floats(-most, most), min_size=42, max_size=42)
    return st.builds(Machine, slices)


@pytest.mark.slow
@given(machines(2.0), st.integers(0, 1000))
def test_no_drift_that_all_contenders_share_makes_a_trend(machine: Machine, seed: int) -> None:
    steady = row(fs=values([1.0] * 7, seed), zeo=values([3.0] * 7, seed + 1001))
    assume(not trends(steady))
    assert trends(list(map(machine.slow_down, steady))) == {}


@pytest.mark.slow
@given(machines(0.3), st.integers(0, 1000), st.floats(3.0, 9.0), st.booleans())
def test_a_drift_that_all_contenders_share_changes_no_trend(
    machine: Machine, seed: int, times: float, others: bool
) -> None:
    rising = [1 + (times - 1) * number / 6 for number in range(7)]
    steady = {"fs": values([1.0] * 7, seed + 2002), "pg": values([2.0] * 7, seed + 3003)}
    contenders = row(slow=values(rising, seed), **(steady if others else {"fs": steady["fs"]}))
    before, after = trends(contenders), trends(list(map(machine.slow_down, contenders)))
    assert before.keys() == after.keys() == {"slow"}
    assert after["slow"].times == pytest.approx(before["slow"].times)
    assert after["slow"].p_value == pytest.approx(before["slow"].p_value)


def judged(*results: CellResult) -> dict[str, CellResult]:
    return {result.cell.contender: result for result in with_trends(results)}


def slower(*results: CellResult) -> set[str]:
    return {result.cell.contender for result in with_trends(results) if result.gets_slower}


def known(result: CellResult) -> Trend:
    assert result.trend is not None
    return result.trend


def test_a_contender_that_gets_slower_while_its_clients_stay_has_a_trend_with_an_interval() -> None:
    results = judged(for_a_time("fs", seed=2), for_a_time("slow", 1.5))
    assert not results["fs"].gets_slower
    assert known(results["fs"]).p_value == 1.0
    assert results["slow"].gets_slower
    trend = known(results["slow"])
    # The first run is left aside, because caches are empty.
    assert trend.interval[0] <= 1.48 <= trend.interval[1]
    assert trend.times == pytest.approx(1.48, rel=0.05)
    assert not trend.alone


def test_a_step_is_a_trend_and_one_slow_run_is_none() -> None:
    steady = for_a_time("fs", noise=0.002)
    step = [[1.0 if number < 20 else 1.4] * 4 for number in range(RUNS)]
    once = [[3.0 if number == 37 else 1.0] * 4 for number in range(RUNS)]
    assert slower(steady, course(cell("update", "slow"), step)) == {"slow"}
    assert slower(steady, course(cell("update", "slow"), once)) == set()


def test_trap_38_a_machine_that_gets_slower_is_no_trend_of_a_contender() -> None:
    assert slower(for_a_time("a", 1.5, seed=2), for_a_time("b", 1.5)) == set()
    (alone,) = judged(for_a_time("a", 3.0)).values()
    assert alone.gets_slower
    assert known(alone).alone


def test_the_trend_is_not_of_the_one_that_stays_while_another_gets_faster() -> None:
    assert slower(for_a_time("fs", seed=2), for_a_time("warming", 0.5)) == set()


def test_the_first_run_is_left_aside() -> None:
    def after(first: float, *others: CellResult) -> Trend:
        runs = [list(run.values) for run in for_a_time("slow", 1.5).runs]
        slow = course(cell("update", "slow"), [[first] * 4, *runs[1:]])
        return known(judged(slow, *others)["slow"])

    for others in ((), (for_a_time("fs", seed=2),)):
        assert after(1.0, *others).interval == pytest.approx(after(100.0, *others).interval)


def test_too_few_runs_that_share_their_clients_have_no_trend() -> None:
    few = [[1.1**number] * 3 for number in range(17)]
    assert slower(course(cell("update", "slow"), few)) == {"slow"}
    for number in (1, 16):
        assert judged(course(cell("update", "slow"), few[:number]))["slow"].trend is None


def test_others_that_end_early_do_not_keep_a_trend_from_being_found() -> None:
    slow, steady = for_a_time("slow", 1.5), for_a_time("fs", seed=2)
    early = replace(for_a_time("failed", seed=3), runs=for_a_time("failed", seed=3).runs[:10])
    trend = known(judged(slow, steady, early)["slow"])
    assert (trend.found, trend.alone) == (True, False)
    assert trend.times == pytest.approx(1.48, rel=0.05)
    assert known(judged(for_a_time("slow", 3.0), early)["slow"]).alone


def test_latencies_of_one_that_cannot_keep_up_are_not_tested() -> None:
    def at_a_rate(contender: str, rise: float, part: float) -> CellResult:
        result = for_a_time(contender, rise, part_of_schedule=part)
        parameters = replace(result.cell.parameters, rate=20.0)
        return replace(result, cell=replace(result.cell, parameters=parameters))

    steady = at_a_rate("fs", 1.0, 1.0)
    assert slower(at_a_rate("slow", 3.0, 1.0), steady) == {"slow"}
    assert slower(at_a_rate("slow", 3.0, 0.5), steady) == set()


def test_runs_that_share_clients_are_no_independent_ones_in_the_interval() -> None:
    waves = [[1.0 + 0.1 * math.sin(number / 3)] for number in range(RUNS)]
    shared = time_of(course(cell("update", "a"), waves))
    alone = time_of(course(cell("update", "a"), waves, for_s=0))
    assert shared.estimate.half_width > 1.3 * alone.estimate.half_width
    assert shared.value == alone.value
