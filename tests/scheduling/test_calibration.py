from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zodbshootout.model.specification import CrewShape, Parameters
from zodbshootout.scheduling.calibration import (
    AFFORDABLE,
    EQUAL_WITHIN,
    MAX_LOOPS,
    MAX_STRIDE,
    MAX_TURNS,
    MIN_VALUES,
    choose_loops,
    choose_turns,
    loops_at_rate,
    turn_strides,
)


def test_contenders_of_similar_speed_do_the_same_number_of_iterations() -> None:
    assert choose_loops({"a": 0.011, "b": 0.02, "c": 0.025}, 0.1) == {"a": 16, "b": 8, "c": 8}
    assert choose_loops({"a": 0.013, "b": 0.02, "c": 0.03}, 0.1) == {"a": 8, "b": 8, "c": 8}


def test_a_slow_contender_does_as_many_iterations_as_it_can_afford() -> None:
    assert choose_loops({"fast": 0.001, "slow": 0.05}, 0.1) == {"fast": 128, "slow": 4}


def test_a_nearly_as_fast_contender_does_as_many_iterations_as_the_faster_one() -> None:
    assert choose_loops({"a": 0.0124, "b": 0.0126}, 0.1) == {"a": 16, "b": 16}
    assert choose_loops({"a": 0.034, "b": 0.0499, "c": 0.0511}, 0.1) == {"a": 4, "b": 4, "c": 4}
    # From a to c each is nearly as fast as the one before, but c is not nearly as fast as a.
    assert choose_loops({"a": 0.1, "b": 0.14, "c": 0.19}, 0.25) == {"a": 4, "b": 4, "c": 2}


def test_the_first_iteration_does_not_count_if_there_are_several_clients() -> None:
    assert choose_loops({"a": 0.05}, 0.1, fewest=2) == {"a": 4}
    assert choose_loops({"a": 0.09}, 0.1, fewest=2) == {"a": 4}
    assert choose_loops({"a": 0.11}, 0.1, fewest=2) == {"a": 2}


@pytest.mark.parametrize(("clients", "loops"), [(1, 300), (150, 2), (300, 2), (1000, 2)])
def test_every_client_has_at_least_two_iterations_at_a_rate(clients: int, loops: int) -> None:
    assert loops_at_rate(Parameters(CrewShape(clients), rate=100.0)) == loops


def test_loops_have_an_upper_limit() -> None:
    assert choose_loops({"a": 0.0, "b": 1e-9}, 0.1) == {"a": MAX_LOOPS, "b": MAX_LOOPS}


@pytest.mark.slow
@given(
    st.dictionaries(st.integers(), st.floats(1e-8, 100), min_size=1),
    st.floats(0.001, 1),
)
def test_every_value_is_long_enough_and_none_is_longer_than_affordable(
    seconds: dict[int, float], min_time: float
) -> None:
    loops = choose_loops(seconds, min_time)
    for key, took in seconds.items():
        assert loops[key] * took >= min_time * 0.999 or loops[key] == MAX_LOOPS
        assert loops[key] == 1 or loops[key] * took <= AFFORDABLE * EQUAL_WITHIN * min_time * 1.001


def test_every_contender_does_at_least_the_iterations_a_benchmark_needs() -> None:
    assert choose_loops({"a": 0.011, "b": 9.0}, 0.1, fewest=32) == {"a": 32, "b": 32}
    assert choose_loops({"a": 0.001}, 0.1, fewest=32) == {"a": 128}


def test_a_later_contender_reuses_earlier_loops_if_long_enough_and_affordable() -> None:
    assert choose_loops({"a": 0.02}, 0.1) == {"a": 8}
    assert choose_loops({"a": 0.02}, 0.1, before=[4, 16]) == {"a": 8}
    assert choose_loops({"a": 0.013}, 0.1, before=[4, 16]) == {"a": 16}
    assert choose_loops({"a": 0.001}, 0.1, before=[16]) == {"a": 128}


def test_no_loops_are_chosen_if_no_contender_is_left() -> None:
    assert choose_loops({}, 0.1) == {}


def test_turn_strides_are_powers_of_two_up_to_a_maximum() -> None:
    costs = {"a": 0.1, "b": 0.199, "c": 0.2, "d": 0.31, "e": 0.9, "f": 90.0}
    stride = {"a": 1, "b": 1, "c": 1, "d": 2, "e": MAX_STRIDE, "f": MAX_STRIDE}
    assert turn_strides(costs, 0.1) == stride
    assert turn_strides({"a": 0.0, "b": 0.0}, 0.0) == {"a": 1, "b": 1}
    assert turn_strides({"a": 0.1}, 0.2) == {"a": 1}


@pytest.mark.parametrize(
    ("costs", "stride", "run_time", "turns"),
    [
        ([0.1, 0.1], [1, 1], 2.5, 25),
        ([0.2, 0.3], [1, 1], 2.5, 10),
        ([0.1], [1], 2.5, 25),
        ([0.1, 0.4], [1, 4], 2.5, 25),
        ([10.0, 20.0], [1, 1], 2.5, MIN_VALUES),
        ([1.0, 20.0], [1, 8], 2.5, 17),
        ([0.0, 0.0], [1, 1], 2.5, MAX_TURNS),
        ([0.001], [1], 2.5, MAX_TURNS),
    ],
)
def test_a_run_has_as_many_turns_as_fit_into_its_time(
    costs: list[float], stride: list[int], run_time: float, turns: int
) -> None:
    assert choose_turns(dict(enumerate(costs)), dict(enumerate(stride)), run_time) == turns


@pytest.mark.slow
@given(st.dictionaries(st.integers(), st.floats(0.001, 10), min_size=1), st.floats(0.1, 10))
def test_turns_use_up_but_do_not_exceed_the_total_time_of_all_contenders(
    costs: dict[int, float], run_time: float
) -> None:
    stride = turn_strides(costs, min(costs.values()))
    turns = choose_turns(costs, stride, run_time)
    fewest = (MIN_VALUES - 1) * max(stride.values()) + 1
    assert fewest <= turns <= MAX_TURNS
    turn = sum(cost / stride[key] for key, cost in costs.items())
    if turns > fewest:
        assert turns * turn <= run_time * len(costs) * 1.001
    if turns < MAX_TURNS:
        assert (turns + 1) * turn > run_time * len(costs) * 0.999
