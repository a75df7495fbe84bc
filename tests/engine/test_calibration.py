from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zodbshootout.engine.calibration import (
    AFFORDABLE,
    FEWEST_VALUES,
    MOST_LOOPS,
    MOST_VALUES,
    choose_loops,
    choose_values,
)


def test_contenders_of_like_speed_do_the_same_number_of_iterations() -> None:
    assert choose_loops({"a": 0.011, "b": 0.02, "c": 0.03}, 0.1) == {"a": 16, "b": 8, "c": 8}
    assert choose_loops({"a": 0.013, "b": 0.02, "c": 0.03}, 0.1) == {"a": 8, "b": 8, "c": 8}


def test_a_slow_contender_does_as_many_as_it_can_afford() -> None:
    assert choose_loops({"fast": 0.001, "slow": 0.05}, 0.1) == {"fast": 128, "slow": 4}


def test_beside_a_slow_contender_the_others_have_longer_slices() -> None:
    assert choose_loops({"fast": 0.001, "slow": 0.6}, 0.1) == {"fast": 256, "slow": 1}
    assert choose_loops({"fast": 0.001, "slow": 2.0}, 0.1) == {"fast": 512, "slow": 1}
    assert choose_loops({"fast": 0.001, "slow": 90.0}, 0.1) == {"fast": 512, "slow": 1}


def test_there_is_an_upper_limit() -> None:
    assert choose_loops({"a": 0.0, "b": 1e-9}, 0.1) == {"a": MOST_LOOPS, "b": MOST_LOOPS}


@given(
    st.dictionaries(st.integers(), st.floats(1e-8, 100), min_size=1),
    st.floats(0.001, 1),
)
def test_every_value_is_long_enough_and_none_is_longer_than_affordable(
    seconds: dict[int, float], min_time: float
) -> None:
    loops = choose_loops(seconds, min_time)
    for key, took in seconds.items():
        assert loops[key] * took >= min_time * 0.999 or loops[key] == MOST_LOOPS
        assert loops[key] == 1 or loops[key] * took <= AFFORDABLE**2 * min_time * 1.001


def test_none_does_less_than_a_benchmark_needs() -> None:
    assert choose_loops({"a": 0.011, "b": 9.0}, 0.1, fewest=32) == {"a": 32, "b": 32}
    assert choose_loops({"a": 0.001}, 0.1, fewest=32) == {"a": 128}


def test_whoever_comes_later_does_as_many_as_those_before_if_it_can_afford_that() -> None:
    assert choose_loops({"a": 0.02}, 0.1) == {"a": 8}
    assert choose_loops({"a": 0.02}, 0.1, before=[4, 16]) == {"a": 8}
    assert choose_loops({"a": 0.013}, 0.1, before=[4, 16]) == {"a": 16}
    assert choose_loops({"a": 0.001}, 0.1, before=[16]) == {"a": 128}


def test_nobody_is_given_loops_where_nobody_is_left() -> None:
    assert choose_loops({}, 0.1) == {}


@pytest.mark.parametrize(
    ("costs", "run_time", "values"),
    [
        ([0.1, 0.1], 2.5, 25),
        ([0.2, 0.3], 2.5, 10),
        ([0.1], 2.5, 25),
        ([10.0, 20.0], 2.5, FEWEST_VALUES),
        ([0.0, 0.0], 2.5, MOST_VALUES),
        ([0.001], 2.5, MOST_VALUES),
    ],
)
def test_there_are_as_many_values_as_fit_into_the_time_of_a_run(
    costs: list[float], run_time: float, values: int
) -> None:
    assert choose_values(costs, run_time) == values


@given(st.lists(st.floats(0.001, 10), min_size=1), st.floats(0.1, 10))
def test_the_contenders_together_take_no_more_time_than_they_have_together(
    costs: list[float], run_time: float
) -> None:
    values = choose_values(costs, run_time)
    assert FEWEST_VALUES <= values <= MOST_VALUES
    if values > FEWEST_VALUES:
        assert values * sum(costs) <= run_time * len(costs) * 1.001
    if values < MOST_VALUES:
        assert (values + 1) * sum(costs) > run_time * len(costs) * 0.999
