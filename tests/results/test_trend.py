"""Cells that take longer with time, and cells that do not."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.results.over_time import RUNS, SLOWING, for_a_time, values
from tests.runs import cell, in_rounds, measured, measured_for, run
from zodbshootout.model.specification import LatencyLimit, ReplayedWorkload
from zodbshootout.results.figures import time_of
from zodbshootout.results.result import CellResult, OverTime, Stall, Trend
from zodbshootout.results.trend import FEWEST_RUNS, with_trends


def row(**runs: Sequence[Sequence[float]]) -> list[CellResult]:
    """Return the results of contenders that were measured in turn."""
    return [in_rounds(contender, values) for contender, values in runs.items()]


def trends(results: Sequence[CellResult]) -> dict[str, Trend]:
    """Return the trends that were found, by contender."""
    return {result.cell.contender: result.trend for result in with_trends(results) if result.trend}


def test_a_straight_line_through_the_means_of_runs_is_a_trend() -> None:
    judged = trends(row(fs=values([1.0] * 7), slow=values(SLOWING, 2)))
    assert judged.keys() == {"slow"}
    assert judged["slow"].times == pytest.approx(6.0, rel=0.05)
    assert judged["slow"].p_value < 0.001
    assert not judged["slow"].within_runs
    assert not judged["slow"].alone


def test_a_trend_is_not_found_among_fewer_runs_than_four() -> None:
    def slowing(runs: int) -> list[CellResult]:
        return row(fs=values([1.0] * runs, noise=0.01), slow=values(SLOWING[:runs], 2, 0.01))

    assert trends(slowing(FEWEST_RUNS)).keys() == {"slow"}
    assert trends(slowing(FEWEST_RUNS - 1)) == {}


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
    walk = [1.0, 1.02, 1.06, 1.05, 1.10, 1.12, 1.11]
    assert trends(row(slow=values(walk, noise=0.001))) == {}
    assert trends(row(fs=values([1.0] * 7), slow=values(walk, noise=0.001))).keys() == {"slow"}


def test_what_begins_anew_in_each_run_is_a_trend_within_runs() -> None:
    judged = trends(row(fs=values([1.0] * 7), tired=values([1.0] * 7, 2, within=1.8)))
    assert judged.keys() == {"tired"}
    assert judged["tired"].within_runs
    # The first value of a run is not counted: it may be longer for other reasons.
    assert judged["tired"].times == pytest.approx(1.8**0.8, rel=0.1)
    assert trends(row(tired=values([1.0] * 7, 2, within=1.8)))["tired"].alone


def test_a_contender_is_not_blamed_for_others_that_become_faster_in_each_run() -> None:
    assert trends(row(fs=values([1.0] * 7), pypy=values([1.0] * 7, 2, within=0.5))) == {}


def test_drift_within_all_runs_that_contenders_share_is_not_a_trend() -> None:
    assert trends(row(a=values([1.0] * 7, within=1.8), b=values([1.0] * 7, 2, within=1.8))) == {}


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


def test_contenders_that_take_longer_do_not_hide_each_other_among_steady_ones() -> None:
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


def test_a_p_value_is_corrected_for_both_tests_of_a_cell() -> None:
    means = [1.0, 1.3, 1.55, 1.85, 2.1]
    across = row(fs=[[1.0]] * 5, slow=[[mean] for mean in means])
    both = row(fs=[[1.0] * 3] * 5, slow=[[mean] * 3 for mean in means])
    assert trends(both)["slow"].p_value == pytest.approx(2 * trends(across)["slow"].p_value)


def test_only_independent_times_in_known_rounds_are_tested() -> None:
    assert trends([measured(cell("add", "slow"), *values(SLOWING))]) == {}
    in_bytes = [in_rounds("slow", values(SLOWING), unit="byte")]
    assert trends(in_bytes) == {}
    (slow,) = row(slow=values(SLOWING))
    for more in ({"limit": LatencyLimit(99.0, 0.1)}, {"workload": ReplayedWorkload("plone")}):
        parameters = replace(slow.cell.parameters, **more)
        assert trends([replace(slow, cell=replace(slow.cell, parameters=parameters))]) == {}


def test_values_without_noise_have_a_trend_or_none() -> None:
    assert trends(row(fs=[[1.0] * 3] * 7, zeo=[[0.1] * 3] * 7)) == {}
    rising = [[1.0 + number] * 3 for number in range(7)]
    assert trends(row(fs=[[1.0] * 3] * 7, slow=rising))["slow"].times == pytest.approx(7.0)


@dataclass(frozen=True)
class Machine:
    """The machine's part in each slice, as logarithms that are added for all contenders."""

    drift: Sequence[float]

    def slow_down(self, result: CellResult) -> CellResult:
        rounds = {
            name: [math.exp(self.drift[6 * number + turn]) * slices[turn] for turn in slices]
            for number, (name, slices) in enumerate(time_of(result).by_round.items())
        }
        return in_rounds(result.cell.contender, list(rounds.values()))


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


def over_time(result: CellResult) -> OverTime:
    assert result.over_time is not None
    return result.over_time


def test_a_contender_that_gets_slower_while_its_clients_stay_has_a_trend_with_an_interval() -> None:
    results = judged(for_a_time("fs", seed=2), for_a_time("slow", 1.5))
    assert results["fs"].trend is None
    trend = results["slow"].trend
    assert trend is not None
    assert trend.interval is not None
    # The first run is left aside, because caches are empty.
    assert trend.interval[0] <= 1.48 <= trend.interval[1]
    assert trend.times == pytest.approx(1.48, rel=0.05)
    assert not trend.alone
    assert over_time(results["slow"]).seconds == pytest.approx(45 * 39.75)
    smallest = over_time(results["fs"]).smallest
    assert smallest is not None
    assert 1.02 <= smallest < 1.3


def test_one_that_gets_slower_in_a_single_step_has_a_trend_and_one_slow_run_is_none() -> None:
    step = [[1.0 if number < 20 else 1.4] * 4 for number in range(RUNS)]
    once = [[3.0 if number == 37 else 1.0] * 4 for number in range(RUNS)]
    steady = for_a_time("fs", noise=0.002)
    slow = measured_for(cell("update", "slow"), step)
    assert judged(steady, slow)["slow"].trend is not None
    results = judged(steady, measured_for(cell("update", "slow"), once))
    assert (results["slow"].trend, over_time(results["slow"]).faster) == (None, False)


def test_trap_38_a_machine_that_gets_slower_is_no_trend_of_a_contender() -> None:
    results = judged(for_a_time("a", 1.5, seed=2), for_a_time("b", 1.5))
    assert [result.trend for result in results.values()] == [None, None]
    (alone,) = judged(for_a_time("a", 3.0)).values()
    assert alone.trend is not None
    assert alone.trend.alone


def test_a_contender_that_gets_faster_is_not_called_steady() -> None:
    results = judged(for_a_time("fs", seed=2), for_a_time("warming", 0.5))
    assert over_time(results["warming"]).faster
    assert not over_time(results["fs"]).faster
    assert results["fs"].trend is None


def drifting(seed: int) -> list[float]:
    """Return the factors of a machine whose load changes by a third within the runs."""
    chance, logs = random.Random(seed), [0.0]
    while len(logs) < RUNS:
        logs.append(logs[-1] + chance.gauss(0, 0.05))
    return [math.exp(log) for log in logs]


def on_a_machine(factors: Sequence[float], result: CellResult) -> CellResult:
    runs = zip(factors, result.runs, strict=True)
    values = [[factor * value for value in run.values] for factor, run in runs]
    return measured_for(result.cell, values)


def test_a_small_trend_is_found_and_ascribed_rightly_on_a_machine_whose_load_changes() -> None:
    for seed in range(10):
        machine = drifting(seed)
        pair = for_a_time("fs", seed=100 + seed, noise=0.005), for_a_time("slow", 1.2, seed, 0.005)
        results = judged(*(on_a_machine(machine, result) for result in pair))
        assert results["slow"].trend is not None
        assert results["fs"].trend is None
        assert not over_time(results["fs"]).faster


def test_a_machine_whose_load_falls_does_not_make_one_slow_that_it_does_not_concern() -> None:
    falls = [1.0 if number < 24 else 0.2 for number in range(RUNS)]
    computing = on_a_machine(falls, for_a_time("zeo", seed=5, noise=0.2))
    waiting = on_a_machine([0.7 + 0.3 * factor for factor in falls], for_a_time("fs", seed=6))
    growing = on_a_machine([0.7 + 0.3 * factor for factor in falls], for_a_time("slow", 2.0, 7))
    results = judged(computing, waiting, growing)
    assert {name for name, result in results.items() if result.trend} == {"slow"}
    assert [name for name, result in results.items() if over_time(result).faster] == []


def test_a_disturbance_in_the_first_or_the_last_tenth_of_the_time_is_no_trend() -> None:
    first, last = range(1, 5), range(RUNS - 4, RUNS)
    for disturbed, factor in ((last, 3.0), (last, 0.3), (first, 0.3), (first, 3.0)):
        factors = [factor if number in disturbed else 1.0 for number in range(RUNS)]
        results = judged(for_a_time("fs"), on_a_machine(factors, for_a_time("slow", seed=2)))
        assert [result.trend for result in results.values()] == [None, None]
        assert not any(over_time(result).faster for result in results.values())
        # It would hide a trend, so it is not called steady either.
        assert (over_time(results["slow"]).smallest or 0.0) > 2.0


def test_a_slowdown_that_lasts_for_two_tenths_is_a_trend() -> None:
    factors = [1.0] * (RUNS - 8) + [3.0] * 8
    results = judged(for_a_time("fs"), on_a_machine(factors, for_a_time("slow", seed=2)))
    assert [name for name, result in results.items() if result.trend] == ["slow"]


def under_load(contender: str, factors: Sequence[float], loads: Sequence[float]) -> CellResult:
    """Return a result whose times are multiplied, while other programs used the processors."""
    exact = on_a_machine(factors, for_a_time(contender, seed=len(contender)))
    runs = [list(run.values) for run in exact.runs]
    return measured_for(
        exact.cell,
        runs,
        more=lambda number: {"other_load": loads[number] / 2, "steal": loads[number] / 2},
    )


@pytest.mark.parametrize("most", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("steps", [False, True])
def test_a_load_that_rises_may_be_why_one_contender_computes_more_slowly(
    steps: bool, most: float
) -> None:
    passed = [number / (RUNS - 1) for number in range(RUNS)]
    loads = [most * (part > 0.5 if steps else part) for part in passed]
    computing = under_load("zeo", [1 / (1 - load) for load in loads], loads)
    results = judged(computing, under_load("fs", [1.0] * RUNS, loads))
    assert [name for name, result in results.items() if result.trend] == ["zeo"]
    assert over_time(results["zeo"]).loaded
    assert over_time(results["zeo"]).load == pytest.approx(most, rel=0.1)


def test_a_load_explains_no_trend_that_it_is_too_small_for() -> None:
    rising = [0.3 * number / (RUNS - 1) for number in range(RUNS)]
    slower = [1 + 2 * number / (RUNS - 1) for number in range(RUNS)]
    for loads in ([0.9] * RUNS, rising):
        results = judged(under_load("slow", slower, loads), under_load("fs", [1.0] * RUNS, loads))
        assert results["slow"].trend is not None
        assert not any(over_time(result).loaded for result in results.values())


def test_few_runs_show_no_trend_and_say_so() -> None:
    few = [[1.0 + number] * 3 for number in range(20)]
    slow = judged(measured_for(cell("update", "slow"), few))["slow"]
    assert (slow.trend, over_time(slow).smallest) == (None, None)
    slow = judged(measured_for(cell("update", "slow"), few[:1]))["slow"]
    assert (slow.trend, over_time(slow).smallest) == (None, None)
    enough = [*few, few[-1]]
    slow = judged(measured_for(cell("update", "slow"), enough))["slow"]
    assert over_time(slow).smallest is not None


@pytest.mark.slow
def test_a_trend_that_is_found_in_95_of_100_cases_is_named_as_the_smallest() -> None:
    called = []
    for seed in range(40):
        steady = for_a_time("fs", seed=1000 + seed)
        smallest = over_time(judged(steady, for_a_time("slow", seed=seed))["slow"]).smallest
        assert smallest is not None
        called.append(judged(steady, for_a_time("slow", smallest, seed))["slow"].trend is not None)
    assert sum(called) / len(called) >= 0.85
    # It is not named larger than need be.
    tiny = [
        judged(for_a_time("fs", seed=1000 + seed), for_a_time("slow", 1.02, seed))["slow"].trend
        for seed in range(40)
    ]
    assert sum(map(bool, tiny)) < 20


def test_a_trend_below_two_percent_is_not_reported() -> None:
    def slower(part: float) -> Trend | None:
        steps = [[1 + part * number / (RUNS - 1)] * 4 for number in range(RUNS)]
        exact = measured_for(cell("update", "fs"), [[1.0] * 4] * RUNS)
        return judged(exact, measured_for(cell("update", "slow"), steps))["slow"].trend

    assert slower(0.015) is None
    assert slower(0.03) is not None


def test_a_contender_that_gets_faster_by_less_than_two_percent_is_steady() -> None:
    def faster(part: float) -> bool:
        steps = [[1 - part * number / (RUNS - 1)] * 4 for number in range(RUNS)]
        exact = measured_for(cell("update", "fs"), [[1.0] * 4] * RUNS)
        results = judged(exact, measured_for(cell("update", "warming"), steps))["warming"]
        return over_time(results).faster

    assert not faster(0.015)
    assert faster(0.03)


def test_the_first_run_is_left_aside() -> None:
    def after(first: float, *others: CellResult) -> CellResult:
        runs = [list(run.values) for run in for_a_time("slow", 1.5).runs]
        return judged(measured_for(cell("update", "slow"), [[first] * 4, *runs[1:]]), *others)[
            "slow"
        ]

    for others in ((), (for_a_time("fs", seed=2),)):
        short, long = after(1.0, *others), after(100.0, *others)
        assert short.trend is not None
        assert long.trend is not None
        assert short.trend.interval == pytest.approx(long.trend.interval)
        assert over_time(short).faster == over_time(long).faster is False


def test_others_that_end_early_do_not_keep_a_trend_from_being_found() -> None:
    slow, steady = for_a_time("slow", 1.5), for_a_time("fs", seed=2)
    early = replace(for_a_time("failed", seed=3), runs=for_a_time("failed", seed=3).runs[:10])
    exact = measured_for(cell("update", "failed"), [list(run.values) for run in slow.runs[:24]])
    for failed in (early, exact):
        trend = judged(slow, steady, failed)["slow"].trend
        assert trend is not None
        assert not trend.alone
        assert trend.times == pytest.approx(1.48, rel=0.05)
    alone = judged(for_a_time("slow", 3.0), early)["slow"].trend
    assert alone is not None
    assert alone.alone


def test_a_contender_whose_times_vary_does_not_hide_the_trend_of_another() -> None:
    noisy = for_a_time("zeo", seed=3, noise=0.5)
    results = judged(noisy, for_a_time("slow", 1.2), for_a_time("fs", seed=2))
    assert [name for name, result in results.items() if result.trend] == ["slow"]
    assert (over_time(results["fs"]).smallest or 2.0) < 1.2


@pytest.mark.slow
def test_a_contender_by_itself_seldom_has_a_trend_on_a_machine_whose_load_changes() -> None:
    alone = [
        judged(on_a_machine(drifting(seed), for_a_time("a", seed=seed)))["a"] for seed in range(60)
    ]
    assert sum(bool(one.trend) or over_time(one).faster for one in alone) <= 2


def test_a_replay_is_compared_with_that_of_another_contender_alone() -> None:
    def replayed(contender: str, rise: float) -> CellResult:
        result = for_a_time(contender, rise)
        parameters = replace(result.cell.parameters, workload=ReplayedWorkload("plone"))
        return replace(result, cell=replace(result.cell, parameters=parameters))

    assert judged(replayed("slow", 3.0))["slow"].trend is None
    compared = judged(replayed("slow", 3.0), replayed("fs", 1.0))
    assert [name for name, result in compared.items() if result.trend] == ["slow"]


def test_latencies_of_one_that_cannot_keep_up_are_not_tested() -> None:
    def at_a_rate(contender: str, rise: float, part: float) -> CellResult:
        result = for_a_time(contender, rise, more=lambda _: {"part_of_schedule": part})
        parameters = replace(result.cell.parameters, rate=20.0)
        return replace(result, cell=replace(result.cell, parameters=parameters))

    steady = at_a_rate("fs", 1.0, 1.0)
    assert judged(at_a_rate("slow", 3.0, 1.0), steady)["slow"].trend is not None
    assert judged(at_a_rate("slow", 3.0, 0.5), steady)["slow"].trend is None


@pytest.mark.slow
def test_at_most_one_of_a_hundred_equal_pairs_has_a_trend() -> None:
    pairs = [judged(for_a_time("a", seed=n), for_a_time("b", seed=n + 1000)) for n in range(100)]
    assert sum(any(one.trend for one in pair.values()) for pair in pairs) <= 1


def test_memory_that_grows_to_the_end_grows_and_caches_that_fill_do_not() -> None:
    chance = random.Random(1)
    noise = [chance.gauss(0, 2e4) for _ in range(RUNS)]
    leaking = {"client_memory_now_bytes": lambda n: 5e7 + 1e6 * n + noise[n]}
    filling = {"client_memory_now_bytes": lambda n: 9e7 - 4e7 * math.exp(-n / 8) + noise[n]}
    noisy = {"server_memory_bytes": lambda n: 9e7 + 10 * noise[n]}

    def growths(sizes: Mapping[str, Callable[[int], float]]) -> tuple[tuple[str, float], ...]:
        def more(number: int) -> dict[str, float]:
            return {key: size(number) for key, size in sizes.items()}

        return over_time(judged(for_a_time("a", more=more))["a"]).growths

    ((key, rate),) = growths(leaking)
    assert key == "client_memory_now_bytes"
    assert rate == pytest.approx(80e6, rel=0.01)  # 80 runs an hour
    assert growths({"server_memory_bytes": lambda n: 1e9 + 1e6 * n}) != ()
    assert growths({"server_memory_bytes": lambda n: 1e9 + 1e5 * n}) == ()  # less than 1 %
    assert growths(filling) == growths(noisy) == ()
    early = {"client_memory_now_bytes": lambda n: 5e7 + 4e6 * min(n, RUNS / 4) + noise[n]}
    ending = {"client_memory_now_bytes": lambda n: 5e7 + 1e6 * (n - 0.7 * max(0, n - 25))}
    assert growths(early) == growths(ending) == ()


@pytest.mark.slow
def test_memory_that_wanders_at_random_seldom_grows() -> None:
    def wandering(seed: int) -> CellResult:
        chance, sizes = random.Random(seed), [5e7]
        for _ in range(RUNS):
            sizes.append(sizes[-1] + chance.gauss(0, 1e6))
        return for_a_time("a", more=lambda n: {"server_memory_bytes": sizes[n]})

    grown = [over_time(judged(wandering(seed))["a"]).growths for seed in range(100)]
    assert sum(map(bool, grown)) <= 1


def test_an_iteration_far_beyond_the_others_is_a_stall_with_its_instant() -> None:
    def more(number: int) -> dict[str, str]:
        return {"slice_longest_s": "0.02 0.02 1.0 0.02"} if number == 8 else {}

    quick = [[0.01] * 4 for _ in range(RUNS)]
    result = judged(measured_for(cell("update", "fs"), quick, more=more))["fs"]
    assert over_time(result).stalls == (Stall(45 * 8.5, 1.0),)
    assert over_time(judged(measured_for(cell("update", "fs"), quick))["fs"]).stalls == ()
    unknown = measured_for(cell("update", "fs"), quick, more=lambda _: {"slice_longest_s": "9"})
    assert over_time(judged(unknown)["fs"]).stalls == ()


@pytest.mark.parametrize(
    ("usual", "longest", "stalls"),
    [(0.002, 0.09, 0), (0.002, 0.11, 1), (0.2, 1.9, 0), (0.2, 2.1, 1)],
)
def test_a_stall_takes_a_tenth_of_a_second_and_ten_times_what_is_usual(
    usual: float, longest: float, stalls: int
) -> None:
    def more(number: int) -> dict[str, str]:
        return {"slice_longest_s": f"{usual} {longest if number == 8 else usual} {usual} {usual}"}

    result = measured_for(cell("update", "fs"), [[usual] * 4] * RUNS, more=more)
    assert len(over_time(judged(result)["fs"]).stalls) == stalls


def test_runs_that_share_clients_are_no_independent_ones_in_the_interval() -> None:
    waves = [[1.0 + 0.1 * math.sin(number / 3)] for number in range(RUNS)]
    shared = measured_for(cell("update", "a"), waves)
    alone = measured_for(cell("update", "a"), waves, more=lambda _: {"for_s": 0})
    assert time_of(shared).estimate.half_width > 1.3 * time_of(alone).estimate.half_width
    assert time_of(shared).value == time_of(alone).value
