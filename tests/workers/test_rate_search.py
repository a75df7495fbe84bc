"""The search for the highest rate, on a threshold that is known."""

from __future__ import annotations

import random
import statistics

import pytest

from zodbshootout.workers.rate_search import MAX_STEPS, RateSearch


def finish(search: RateSearch, threshold: float, stalls: float = 0.0, seed: int = 1) -> RateSearch:
    """Search for *threshold* on a storage that stalls with a probability in each slice."""
    chance = random.Random(seed)
    while rate := search.rate:
        search.note(rate, holds=rate <= threshold and chance.random() >= stalls)
    return search


@pytest.mark.parametrize("threshold", [2.5, 10.0, 31.4, 63.0, 99.0, 150.0])
def test_the_result_is_within_three_percent_of_the_threshold(threshold: float) -> None:
    search = finish(RateSearch(100.0), threshold)
    assert search.highest == pytest.approx(threshold, rel=0.03)
    assert search.steps < MAX_STEPS


@pytest.mark.parametrize("expected", [15.0, 30.0, 38.5, 40.0, 41.5, 60.0, 120.0])
def test_the_search_begins_at_the_expected_rate(expected: float) -> None:
    search = RateSearch(expected=expected)
    assert search.rate == pytest.approx(expected, rel=0.01)
    assert finish(search, 40.0).highest == pytest.approx(40, rel=0.03)
    assert search.steps < MAX_STEPS


@pytest.mark.slow
@pytest.mark.parametrize("begin", [{"throughput": 100.0}, {"expected": 45.0}])
def test_stalls_in_a_fifth_of_the_slices_hardly_change_the_result(begin: dict[str, float]) -> None:
    results = [finish(RateSearch(**begin), 40.0, 0.2, seed).highest for seed in range(50)]
    assert statistics.mean(results) == pytest.approx(40, rel=0.02)
    assert statistics.stdev(results) < 0.05 * 40


def test_a_stall_in_the_first_slice_does_not_change_the_result() -> None:
    search = RateSearch(100.0)
    search.note(search.rate, holds=False)
    assert finish(search, 80.0).highest == pytest.approx(80, rel=0.03)


def test_a_search_ends_if_no_rate_holds() -> None:
    search = finish(RateSearch(100.0), 0.0)
    assert (search.rate, search.highest) == (0.0, 0.0)


def test_a_search_ends_if_slices_contradict_each_other() -> None:
    assert finish(RateSearch(100.0), 50.0, stalls=0.5).steps <= MAX_STEPS


def test_a_search_is_coarse_until_the_rate_is_roughly_known() -> None:
    search = RateSearch(100.0)
    assert search.is_coarse
    assert not finish(search, 40.0).is_coarse
    assert not RateSearch(expected=40.0).is_coarse
