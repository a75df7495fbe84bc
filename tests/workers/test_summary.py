from __future__ import annotations

import pytest
from hdrh.histogram import HdrHistogram

from tests.fakes import client_values
from zodbshootout.client.protocol import Stretch
from zodbshootout.client.throughput import Progress
from zodbshootout.crews.crew import Sample
from zodbshootout.model.latencies import Latencies
from zodbshootout.model.storage_facts import PICKLE_CACHE
from zodbshootout.workers.histograms import histogram
from zodbshootout.workers.summary import latencies_by_name, storable, summarize


def stretch(
    durations: list[float],
    *,
    start: float = 0.0,
    uncounted: int = 0,
    pause: float = 0.0,
    late: float = 0.0,
    waited: float = 0.0,
) -> Stretch:
    """Return the stretch of a client that continued for *uncounted* mean iterations."""
    ends, end = [], start
    more = [sum(durations) / len(durations)] * uncounted
    for duration in durations + more:
        end += duration
        ends.append(end)
    latencies = Latencies()
    latencies.record(durations)
    return Stretch(
        Progress(start, ends, range(1, len(ends) + 1)), latencies, pause, late, waited,
        len(ends), {"loads": len(ends)}, (PICKLE_CACHE,),
    )  # fmt: skip


def sample(*stretches: Stretch, counted: int) -> Sample:
    total = Sample(len(stretches))
    total.add(stretches, counted)
    return total


def test_a_value_is_the_number_of_clients_divided_by_their_total_rate() -> None:
    total = sample(stretch([1.0] * 5, uncounted=20), stretch([4.0] * 5), counted=5)
    # The spans from the end of each client's first iteration to the end of its last, 1 to 5 s and
    # 4 to 20 s, count the iterations of both clients.
    assert total.seconds == 4 + 16
    assert total.done == (4 + 1) + (16 + 4)
    assert total.value == 2 * 20 / 25
    assert total.shares == [20, 5]
    assert client_values(total) == [1.0, 4.0]
    assert total.smallest_share == 5 * 2 / 25
    assert (total.iterations, total.uncounted) == (10, 20)
    assert total.on_clock == 20.0


def test_the_stretches_of_a_value_add_up() -> None:
    total = Sample(1)
    total.add([stretch([1.0, 1.0], start=10.0, pause=0.5, late=0.1)], 2)
    total.add([stretch([4.0], start=20.0, waited=0.2, pause=0.25)], 1)
    assert total.value == 2.0
    assert (total.start, total.seconds, total.on_clock) == (10.0, 6.0, 6.0)
    assert (total.iterations, total.paused) == (3, 0.75)
    assert (total.start_spread, total.start_delay) == (0.1, 0.2)
    assert total.counts == {"loads": 3}
    assert total.latencies.longest == 4.0


def test_trap_6_the_summary_keeps_every_client_and_latencies_that_can_be_merged() -> None:
    samples = [
        sample(stretch([0.001] * 99 + [0.5]), counted=100),
        sample(stretch([0.002] * 100), counted=100),
    ]
    summary = summarize(samples, [3, 7])
    assert summary["client_1_s"] == pytest.approx((0.599 + 0.2) / 200)
    assert "client_2_s" not in summary
    several = [sample(*(stretch([1.0 * n] * 4) for n in (1, 2, 4)), counted=4)] * 2
    of_clients = summarize(several, [0, 1])
    assert [of_clients[f"client_{n}_s"] for n in (1, 2, 3)] == [
        pytest.approx(seconds) for seconds in client_values(several[0])
    ]
    assert "client_4_s" not in of_clients
    assert summary["iterations"] == summary["loads"] == 200
    assert summary["iterations_uncounted"] == 0
    assert summary["on_clock_s"] == pytest.approx(0.599 + 0.2)
    assert summary["slices"] == "3 7"
    assert summary["slice_starts_s"] == "0.000000 0.000000"
    assert summary["latency_max_s"] == 0.5
    assert summary["latency_p50_s"] == pytest.approx(0.002, rel=1e-3)
    assert summary["latency_p99_s"] == pytest.approx(0.002, rel=1e-3)
    assert summary["cleared_caches"] == "pickle cache"
    latencies = latencies_by_name(samples)["latency"]
    assert sum(latencies.counts.values()) == 200
    encoded = histogram(latencies).encode()
    decoded = HdrHistogram.decode(encoded)
    decoded.add(HdrHistogram.decode(encoded))
    assert decoded.get_total_count() == 400


def test_the_summary_has_client_shares_pauses_and_the_worst_start() -> None:
    first = sample(
        stretch([1.0] * 3, uncounted=9, pause=1.0, late=0.25), stretch([2.0] * 3), counted=3
    )
    second = sample(stretch([1.0] * 3), stretch([1.0] * 3, pause=2.0, waited=0.5), counted=3)
    summary = summarize([first, second], [0, 1])
    assert summary["smallest_client_share"] == pytest.approx(2 / 3)
    assert summary["pause_share"] == 3.0 / (2 * 6.0 + 2 * 3.0)
    assert (summary["start_spread_s"], summary["start_delay_s"]) == (0.25, 0.5)
    assert summary["iterations_uncounted"] == 9


def test_the_figure_of_a_host_is_the_mean_of_its_clients() -> None:
    total = sample(
        stretch([1.0] * 4, uncounted=4), stretch([2.0] * 4), stretch([1.0] * 4, uncounted=4),
        counted=4,
    )  # fmt: skip
    summary = summarize([total], [0], {"alpha": [0, 2], "beta": [1]}, clock_uncertainty=0.25)
    assert (summary["host_1"], summary["host_1_clients"], summary["host_1_s"]) == ("alpha", 2, 1.0)
    assert (summary["host_2"], summary["host_2_clients"], summary["host_2_s"]) == ("beta", 1, 2.0)
    assert summary["clock_uncertainty_s"] == 0.25


def test_empty_metadata_are_dropped_and_others_are_put_on_one_line() -> None:
    assert storable({"a": "", "b": "x\n  y", "c": 0, "d": 0.0}) == {"b": "x y", "c": 0, "d": 0.0}
