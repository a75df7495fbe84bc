"""Means and their intervals, compared with those of scipy for the same numbers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri, stdtrit

from zodbshootout.results.estimate import (
    Estimate,
    mean_of,
    mean_of_estimates,
    mean_of_runs,
    runs_needed,
)

NUMBERS = st.lists(
    st.integers(-1000, 1000).map(lambda number: number / 64), min_size=3, max_size=12, unique=True
)


@pytest.mark.slow
@given(NUMBERS)
def test_a_mean_has_the_p_value_and_the_interval_of_the_t_test(numbers: list[float]) -> None:
    from scipy import stats

    expected = stats.ttest_1samp(numbers, 0)
    estimate = mean_of(numbers)
    assert estimate.p_value == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval(0.95)
    assert estimate.interval == pytest.approx((low, high))


@pytest.mark.slow
@given(NUMBERS, NUMBERS)
def test_a_difference_has_the_p_value_and_the_interval_of_welchs_t_test(
    first: list[float], second: list[float]
) -> None:
    from scipy import stats

    expected = stats.ttest_ind(first, second, equal_var=False)
    difference = mean_of(first) - mean_of(second)
    assert difference.p_value == pytest.approx(expected.pvalue)
    assert difference.df == pytest.approx(expected.df)
    low, high = expected.confidence_interval(0.95)
    assert difference.interval == pytest.approx((low, high))


def test_a_difference_has_the_degrees_of_freedom_of_welch_and_satterthwaite() -> None:
    difference = mean_of([1.0, 2.0, 4.0]) - mean_of([2.0, 4.5, 3.0, 8.0, 6.0])
    # As scipy.stats.ttest_ind calculates them.
    assert difference.df == pytest.approx(5.8623725571611)
    assert difference.p_value == pytest.approx(0.1394751626070)
    assert difference.interval == pytest.approx((-5.7746217616352, 1.0412884283018))


@pytest.mark.parametrize("numbers", [[3.0], [3.0, 3.0], [2.0, 4.0]])
def test_fewer_than_three_numbers_have_an_infinite_interval(numbers: list[float]) -> None:
    few, three = mean_of(numbers), mean_of([1.0, 2.0, 4.0])
    assert (few.mean, few.half_width, few.p_value) == (3.0, math.inf, 1.0)
    assert (few - three).half_width == math.inf
    assert mean_of_estimates([few, three]).half_width == math.inf
    assert mean_of_runs([[number] * 5 for number in numbers]).half_width == math.inf


def test_identical_numbers_have_no_uncertainty() -> None:
    alike = mean_of([2.0, 2.0, 2.0])
    assert (alike.half_width, alike.p_value) == (0.0, 0.0)
    assert (alike - alike).p_value == 1.0


def test_runs_alike_by_chance_are_no_more_certain_than_independent_values() -> None:
    runs = [[1.0, 5.0], [2.0, 4.1], [0.5, 5.7]]
    estimate, of_means = mean_of_runs(runs), mean_of([3.0, 3.05, 3.1])
    # As if all six were independent: their pooled variance in each run is (8 + 2.205 + 13.52) / 3.
    independent = -stdtrit(5, 0.025) * math.sqrt((8 + 2.205 + 13.52) / 3 / 6)
    assert estimate.half_width == pytest.approx(independent)
    assert (estimate.mean, estimate.df) == (of_means.mean, 2)
    assert estimate.p_value > 2 * of_means.p_value
    assert estimate.half_width > 10 * of_means.half_width
    assert runs_needed(estimate, 3, 0.1) > 10 * runs_needed(of_means, 3, 0.1)


def test_only_the_means_of_runs_count_if_runs_differ_more_than_their_values() -> None:
    estimate, of_means = mean_of_runs([[1.0, 1.1], [2.0, 2.1]]), mean_of([1.05, 2.05])
    assert estimate == of_means
    assert mean_of_runs([[1.0], [2.0]]) == mean_of([1.0, 2.0])


def test_a_mean_of_estimates_has_less_variance_than_each_of_them() -> None:
    estimate = mean_of_estimates([Estimate(1.0, 0.04, 4), Estimate(3.0, 0.04, 4)])
    assert (estimate.mean, estimate.variance, estimate.df) == pytest.approx((2.0, 0.02, 8))


@pytest.mark.slow
@given(NUMBERS, st.floats(0.5, 20))
def test_the_runs_needed_are_about_the_fewest_that_reach_the_half_width(
    numbers: list[float], half_width: float
) -> None:
    from scipy import stats

    estimate = mean_of(numbers)
    needed = runs_needed(estimate, len(numbers), half_width)
    assert needed >= len(numbers)
    spread = stats.tstd(numbers)
    reached = stats.t.ppf(0.975, needed - 1) * spread / math.sqrt(needed)
    assert reached <= half_width * 1.000001
    if needed > len(numbers):
        fewer = max(3, math.floor(needed * 0.97) - 1)
        assert stats.t.ppf(0.975, fewer - 1) * spread / math.sqrt(fewer) > half_width


def test_the_runs_needed_for_a_difference_are_the_runs_of_each_side() -> None:
    numbers = [1.0, 1.2, 0.9, 1.1]
    difference = mean_of(numbers) - mean_of([2 * number for number in numbers])
    needed = runs_needed(difference, 4, difference.half_width / 2)
    assert 10 < needed < 16
    assert runs_needed(difference, 4, difference.half_width) == 4
    assert runs_needed(mean_of([1.0]), 1, 0.1) == 3


@pytest.mark.parametrize("half_width", [1e-3, 1e-5, 1e-9, 1e-15])
def test_the_runs_needed_for_a_tiny_half_width_follow_from_the_normal_distribution(
    half_width: float,
) -> None:
    estimate = Estimate(1.0, 0.04, 2)
    needed = 3 * 0.04 * (ndtri(0.975) / half_width) ** 2
    assert runs_needed(estimate, 3, half_width) == pytest.approx(needed, rel=0.02)
