"""Student's t distribution and the correction of p-values, compared with those of scipy."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtr, stdtrit

from zodbshootout.results.probabilities import corrected, t_quantile, t_tail

DF = st.one_of(
    st.integers(1, 2000).map(float), st.floats(1, 60), st.floats(1, 1e6), st.just(math.inf)
)
"""Degrees of freedom; Welch's test has fractions, and a known mean infinitely many."""
HUGE_DF = st.floats(6, 300).map(lambda power: 10.0**power)
"""Those of the runs that a tiny interval would need."""
TAILS = st.one_of(
    st.sampled_from([0.025, 0.05, 0.005]), st.floats(-12, -0.5).map(lambda power: 10.0**power)
)


@given(DF, st.one_of(st.floats(0.01, 5), st.floats(-4, 6).map(lambda power: 10.0**power)))
def test_a_tail_is_that_of_scipy(df: float, t: float) -> None:
    expected = float(stdtr(df, -t))
    if expected > 1e-300:
        assert t_tail(df, t) == pytest.approx(expected, rel=1e-9, abs=0)


@given(st.one_of(DF, HUGE_DF), TAILS)
def test_a_quantile_is_that_of_scipy(df: float, tail: float) -> None:
    assert t_quantile(df, tail) == pytest.approx(-float(stdtrit(df, tail)), rel=1e-9, abs=0)


@pytest.mark.parametrize("df", [1e7, 1e8, 1e9, 1e12, 1e15])
def test_a_quantile_of_many_degrees_of_freedom_is_nearly_that_of_infinitely_many(df: float) -> None:
    for tail in (1e-6, 0.001, 0.025, 0.3):
        assert t_quantile(df, tail) == pytest.approx(t_quantile(math.inf, tail), rel=1e-6)


@pytest.mark.parametrize("tail", [1e-12, 0.001, 0.025, 0.4999])
def test_the_tail_beyond_a_quantile_is_what_it_was_asked_for(tail: float) -> None:
    for df in (0.5, 1, 2, 2.5, 7.3, 40, 299.5, 300.5, 1e5):
        assert t_tail(df, t_quantile(df, tail)) == pytest.approx(tail, rel=1e-10, abs=0)


@pytest.mark.slow
@given(st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.01, 0.02, 1.0])), min_size=1))
def test_p_values_are_corrected_as_by_scipy(p_values: list[float]) -> None:
    from scipy.stats import false_discovery_control

    assert corrected(p_values, level=1.0) == pytest.approx(
        false_discovery_control(p_values).tolist(), rel=1e-9, abs=0
    )


def test_p_values_are_corrected_for_their_number_and_rank() -> None:
    corrections = corrected([0.04, 0.5, 0.01, 0.02, 0.03], level=1.0)
    assert corrections == pytest.approx([0.05, 0.5, 0.05, 0.05, 0.05])
    assert corrected([0.001, 0.5, 0.02], level=1.0) == pytest.approx([0.003, 0.5, 0.03])


def test_p_values_above_the_level_need_no_correction() -> None:
    assert corrected([0.2, 0.02, 0.5], level=0.01) == [0.2, 0.02, 0.5]
    assert corrected([], level=0.01) == []
