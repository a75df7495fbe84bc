from __future__ import annotations

from array import array
from dataclasses import replace

import pytest
from hdrh.histogram import HdrHistogram

from zodbshootout.engine.sample import ClientSample, CrewSample
from zodbshootout.engine.summary import summarize


def client(start: float, durations: list[float], sizes: list[int] | None = None) -> ClientSample:
    starts = array("d")
    for duration in durations:
        starts.append(start)
        start += duration
    return ClientSample(
        starts, array("d", durations), array("q", sizes or [1] * len(durations)),
        {"loads": len(durations)}, ("pickle cache",),
    )  # fmt: skip


def test_trap_6_a_value_is_the_mean_of_the_clients_means() -> None:
    sample = CrewSample([client(0, [1.0, 3.0]), client(0, [4.0, 4.0])])
    assert sample.value("mean") == 3.0
    assert sample.value("max") == 4.0
    assert sample.value("min") == 2.0


def test_the_start_spread_and_the_window_are_of_the_clients_that_overlap() -> None:
    sample = CrewSample([client(10, [1.0] * 4), client(11.5, [1.0] * 4)])
    assert sample.start_spread == 1.5
    assert sample.window == (11.5, 14.0)
    # 12 to 14 of the first and 11.5 to 13.5 of the second lie inside as a whole.
    assert sample.throughput() == (4, 2.5)


def test_clients_that_never_overlapped_have_no_window() -> None:
    sample = CrewSample([client(0, [1.0]), client(5, [1.0])])
    assert sample.throughput() == (0, 0.0)
    assert "throughput_per_s" not in summarize([sample])


def test_trap_6_the_summary_keeps_every_client_and_a_histogram_that_can_be_merged() -> None:
    samples = [
        CrewSample([client(0, [0.001] * 99 + [0.5]), client(0, [0.001] * 100)]),
        CrewSample([client(0, [0.002] * 100), client(0, [0.002] * 100)]),
    ]
    summary = summarize(samples)
    assert summary["client_means_s"] == "[[0.00599, 0.001], [0.002, 0.002]]"
    assert summary["iterations"] == 400
    assert summary["loads"] == 400
    assert summary["latency_max_s"] == 0.5
    assert summary["latency_p50_s"] == pytest.approx(0.002, rel=1e-3)
    assert summary["latency_p99_s"] == pytest.approx(0.002, rel=1e-3)
    assert summary["cleared_caches"] == "pickle cache"
    decoded = HdrHistogram.decode(summary["latency_histogram"])
    assert decoded.get_total_count() == 400
    decoded.add(HdrHistogram.decode(summary["latency_histogram"]))
    assert decoded.get_total_count() == 800


def test_a_batch_speaks_for_all_its_iterations() -> None:
    summary = summarize([CrewSample([client(0, [0.5, 0.1], [500, 100])])])
    assert summary["iterations"] == 600
    assert summary["latency_p50_s"] == pytest.approx(0.001, rel=1e-3)


@pytest.mark.parametrize(
    ("uncleared", "told"),
    [
        (None, {}),
        ((), {"uncleared_caches": "none"}),
        (("ZEO server", "operating system"), {"uncleared_caches": "ZEO server, operating system"}),
    ],
)
def test_what_could_not_be_cleared_is_told_of_a_benchmark_that_would_have_it_clear(
    uncleared: tuple[str, ...] | None, told: dict[str, str]
) -> None:
    sample = CrewSample([replace(client(0, [1.0]), uncleared=uncleared)])
    summary = summarize([sample])
    assert {key: summary[key] for key in summary if key.startswith("uncleared")} == told
