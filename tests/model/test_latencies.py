"""Latencies in buckets that can be merged."""

from __future__ import annotations

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from zodbshootout.model.latencies import NANOSECONDS, Latencies
from zodbshootout.workers.histograms import LONGEST_LATENCY, SIGNIFICANT_DIGITS, histogram

NS = st.integers(1, LONGEST_LATENCY)


@given(NS)
def test_the_buckets_are_those_of_hdrhistogram(nanoseconds: int) -> None:
    latencies = Latencies()
    latencies.record([nanoseconds / NANOSECONDS])
    (bucket,) = latencies.counts
    theirs = HdrHistogram(1, LONGEST_LATENCY, SIGNIFICANT_DIGITS)
    recorded = max(1, int(nanoseconds / NANOSECONDS * NANOSECONDS))
    assert bucket == theirs.get_lowest_equivalent_value(recorded)
    assert recorded - bucket <= recorded / 1000


@pytest.mark.slow
@given(st.lists(st.floats(0, 10), max_size=50), st.lists(st.floats(0, 10), max_size=50))
def test_merged_latencies_equal_latencies_recorded_at_once(
    some: list[float], others: list[float]
) -> None:
    first, second, both = Latencies(), Latencies(), Latencies()
    first.record(some)
    second.record(others)
    both.record([*some, *others])
    first.merge(second)
    assert first == both
    assert histogram(first).get_total_count() == len(some) + len(others)


@pytest.mark.slow
@given(st.lists(st.floats(0, 10), min_size=1, max_size=50), st.floats(0.1, 100))
def test_percentiles_are_those_of_hdrhistogram(durations: list[float], percentile: float) -> None:
    latencies = Latencies()
    latencies.record(durations)
    theirs = histogram(latencies)
    assert latencies.at_percentile(percentile) == theirs.get_value_at_percentile(percentile)


def test_a_batch_counts_for_all_its_iterations() -> None:
    latencies = Latencies()
    latencies.record([1.0], size=500)
    assert sum(latencies.counts.values()) == 500
    assert latencies.longest == 0.002
    assert list(latencies.counts) == [1_999_872]


@pytest.mark.slow
def test_the_number_of_buckets_stays_bounded() -> None:
    latencies = Latencies()
    latencies.record(number * 1e-9 for number in range(1, 2_000_000, 7))
    assert len(latencies.counts) < 2048 + 10 * 1024
