from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zodbshootout.perf.calibration import AFFORDABLE, MOST_LOOPS, choose_loops


def test_contenders_of_like_speed_do_the_same_number_of_iterations() -> None:
    assert choose_loops({"a": 0.011, "b": 0.02, "c": 0.03}, 0.1) == {"a": 16, "b": 8, "c": 8}
    assert choose_loops({"a": 0.013, "b": 0.02, "c": 0.03}, 0.1) == {"a": 8, "b": 8, "c": 8}


def test_a_slow_contender_does_as_many_as_it_can_afford() -> None:
    assert choose_loops({"fast": 0.001, "slow": 0.05}, 0.1) == {"fast": 128, "slow": 4}
    assert choose_loops({"fast": 0.001, "slow": 2.0}, 0.1) == {"fast": 128, "slow": 1}


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
        assert loops[key] == 1 or loops[key] * took <= AFFORDABLE * min_time * 1.001
