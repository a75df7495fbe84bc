"""The search for the highest rate, with a known threshold."""

from __future__ import annotations

import random

import pytest

from zodbshootout.workers.rate_search import MAX_STEPS, RateSearch


def finished_search(threshold: float, throughput: float = 100.0, errors: float = 0.0) -> RateSearch:
    """Return a search for *threshold* whose slices are wrong with probability *errors*."""
    search, chance = RateSearch(throughput), random.Random(1)
    while rate := search.rate:
        search.note(rate, holds=(rate <= threshold) is (chance.random() >= errors))
    return search


@pytest.mark.parametrize("threshold", [2.5, 10.0, 31.4, 63.0, 99.0, 150.0])
def test_a_search_ends_less_than_three_percent_below_the_threshold(threshold: float) -> None:
    search = finished_search(threshold)
    assert threshold / 1.03 < search.held <= threshold
    assert search.steps <= MAX_STEPS


@pytest.mark.parametrize("threshold", [10.0, 31.4, 63.0])
def test_a_search_comes_close_to_the_threshold_despite_wrong_slices(threshold: float) -> None:
    search = finished_search(threshold, errors=0.05)
    assert search.held == pytest.approx(threshold, rel=0.1)


@pytest.mark.parametrize("expected", [30.0, 38.5, 40.0, 41.5, 60.0])
def test_a_search_takes_few_steps_if_it_begins_near_the_threshold(expected: float) -> None:
    search = RateSearch(expected=expected)
    while rate := search.rate:
        search.note(rate, holds=rate <= 40)
    assert 40 / 1.03 < search.held <= 40
    assert search.steps <= (4 if expected == 40 else 12)


def test_a_search_confirms_the_rates_on_both_sides_of_the_threshold() -> None:
    tried: list[float] = []
    search = RateSearch(100.0)
    while rate := search.rate:
        tried.append(rate)
        search.note(rate, holds=rate <= 40)
    below = max(rate for rate in tried if rate <= 40)
    above = min(rate for rate in tried if rate > 40)
    assert tried.count(below) == tried.count(above) == 2
    assert above / below <= 1.03


def test_one_stall_at_a_low_rate_costs_one_more_slice() -> None:
    search, tried = RateSearch(100.0), list[float]()
    while rate := search.rate:
        search.note(rate, holds=bool(tried) and rate <= 80)
        tried.append(rate)
    assert tried[:3] == [50.0, 50.0, 50.0]
    assert min(tried) == 50.0
    assert 80 / 1.03 < search.held <= 80


def test_a_search_ends_if_no_rate_holds() -> None:
    search = finished_search(0.0)
    assert (search.rate, search.held) == (0.0, 0.0)


def test_a_search_ends_if_slices_contradict_each_other() -> None:
    assert finished_search(50.0, errors=0.5).steps <= MAX_STEPS


def test_a_search_is_coarse_until_it_has_narrowed_the_rate() -> None:
    search = RateSearch(100.0)
    assert search.is_coarse
    search.note(50.0, holds=True)
    search.note(60.0, holds=False)
    assert not search.is_coarse
