"""Latencies at a rate, on a server with a known service time: the M/D/1 queue, and stalls."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from types import SimpleNamespace
from typing import Any

import pytest

from tests.fakes import FakeClock, FakeStorage, exactly_started, parameters, plan
from tests.truth.queueing import SERVICE, mean_response, serving
from zodbshootout.client.benchmarks.benchmark import Nothing
from zodbshootout.client.session import POLL_INTERVAL, PacedStretchTimer
from zodbshootout.crews.crew import Crew, Sample
from zodbshootout.model.arrivals import KEPT_UP
from zodbshootout.model.latencies import NANOSECONDS
from zodbshootout.model.outcome import Unsupported
from zodbshootout.model.specification import LatencyLimit, Parameters
from zodbshootout.scheduling.calibration import loops_at_rate
from zodbshootout.workers.histograms import histogram
from zodbshootout.workers.measuring import Measuring, Turns
from zodbshootout.workers.summary import summarize

pytestmark = pytest.mark.slow


def measure_requests(
    rate: float, requests: int, serve: Callable[[FakeClock], None], **more: Any
) -> Sample:
    """Send *requests* at a rate; return the sample."""
    clock = FakeClock()
    params = parameters(**more)
    request = serving(clock, lambda: serve(clock))
    with plan(request, FakeStorage(clock), params, clock).started() as crew:
        return exactly_started(crew).measure(requests, 0, rate)


def constantly(clock: FakeClock) -> None:
    clock.spend(SERVICE)


def quantile_of_response(rate: float, fraction: float) -> float:
    """Return a quantile of the response time, by Erlang's distribution of waiting times (1909)."""
    low, high = 0.0, 100 * SERVICE
    while high - low > SERVICE / 1000:
        middle = (low + high) / 2
        if fraction_waiting_less(rate, middle) < fraction:
            low = middle
        else:
            high = middle
    return SERVICE + low


def fraction_waiting_less(rate: float, seconds: float) -> float:
    with localcontext() as context:
        context.prec = 120  # the terms alternate in sign, and are much larger than their sum
        total = Decimal(0)
        for number in range(math.floor(seconds / SERVICE) + 1):
            waited = Decimal(rate) * (Decimal(seconds) - number * Decimal(SERVICE))
            total += (-waited) ** number / math.factorial(number) * waited.exp()
        return float(total * (1 - Decimal(rate) * Decimal(SERVICE)))


def percentile(sample: Sample, percent: float) -> float:
    nanoseconds: float = histogram(sample.latencies).get_value_at_percentile(percent)
    return nanoseconds / NANOSECONDS


@pytest.mark.parametrize(
    ("rate", "requests", "tolerance"),
    [(50, 200_000, 0.02), (95, 300_000, 0.1)],
)
def test_latencies_are_those_of_the_queue(rate: int, requests: int, tolerance: float) -> None:
    sample = measure_requests(rate, requests, constantly)

    assert sample.value == pytest.approx(mean_response(rate), rel=tolerance)
    p99 = quantile_of_response(rate, 0.99)
    assert percentile(sample, 99) == pytest.approx(p99, rel=tolerance)
    assert sample.part_of_schedule == pytest.approx(1, abs=0.002)


@pytest.mark.usefixtures("even_arrivals")
def test_there_is_no_queue_if_arrivals_are_even() -> None:
    sample = measure_requests(95, 1000, constantly)

    assert sample.value == pytest.approx(SERVICE)
    assert sample.latencies.longest == pytest.approx(SERVICE)
    assert sample.lags is not None
    assert sample.lags.longest == pytest.approx(0, abs=1e-6)


def test_an_overloaded_server_is_measured_at_its_capacity() -> None:
    sample = measure_requests(120, 2000, constantly)

    done_a_second = 2000 / sample.taken
    assert done_a_second == pytest.approx(100, rel=0.01)
    assert sample.part_of_schedule * 120 == pytest.approx(100, rel=0.05)
    assert sample.lag_growth > 1


@pytest.mark.usefixtures("even_arrivals")
@pytest.mark.parametrize(("service", "part"), [(0.5, 1.0), (1.5, 1.0), (6.0, 0.5)])
def test_a_few_iterations_of_many_clients_show_whether_they_keep_up(
    service: float, part: float
) -> None:
    # Each of the clients has a server of its own, and its iterations are due every 3 seconds.
    # More clients than these take turns for minutes on a busy machine: their servers never block.
    shaped: dict[str, Any] = {"size": 30}
    loops = loops_at_rate(parameters(rate=10.0, **shaped))
    sample = measure_requests(10.0, loops, lambda clock: clock.spend(service), **shaped)

    assert sample.part_of_schedule == pytest.approx(part)
    assert summarize([sample], [0])["part_of_schedule"] == pytest.approx(part)


@pytest.mark.usefixtures("even_arrivals")
def test_a_wait_for_another_client_does_not_shorten_the_schedule() -> None:
    clock = FakeClock()
    iterations = iter(range(1000))

    class Waiting(Nothing):
        def run(self) -> None:
            if next(iterations) == 25:  # the first one that counts
                clock.spend(0.5)
                self.pace.waited_until = clock.now()

    with plan(Waiting, FakeStorage(clock), parameters(), clock).started() as crew:
        sample = exactly_started(crew).measure(100, 0, 100)
    assert sample.scheduled == pytest.approx(0.99)


def test_many_clients_together_poll_no_more_often_than_one() -> None:
    clock = FakeClock()
    client: Any = SimpleNamespace(index=0, parameters=parameters(size=300))
    timer = PacedStretchTimer(Nothing(client), clock, 1, iter([100.0]), 0)
    assert not timer.wait_until_due()
    assert clock.now() == pytest.approx(300 * POLL_INTERVAL)


@pytest.mark.usefixtures("even_arrivals")
def test_catching_up_after_a_stall_does_not_raise_the_rate() -> None:
    requests = iter(range(1000))

    def stall_once(clock: FakeClock) -> None:
        clock.spend(1.0 if next(requests) == 25 else 0.001)  # the first one that counts

    sample = measure_requests(100, 100, stall_once)
    assert sample.part_of_schedule == 1
    assert summarize([sample], [0])["part_of_schedule"] == 1


def stalling(clock: FakeClock) -> None:
    """Answer after a millisecond, but stall in the first second of every ten."""
    within = clock.now() % 10
    clock.spend(0.001 + max(0.0, 1 - within))


@pytest.mark.usefixtures("even_arrivals")
def test_a_stall_delays_all_requests_that_are_due_meanwhile() -> None:
    sample = measure_requests(100, 100_000, stalling)

    # A request that arrives t seconds after the stall begins waits for the remaining 1 - t seconds,
    # and for the 100 t requests before it.
    delayed = sum(n for at, n in sample.latencies.counts.items() if at > 0.5 * NANOSECONDS)
    assert delayed / 100_000 == pytest.approx(0.5 / 0.9 / 10, rel=0.02)
    assert percentile(sample, 99) == pytest.approx(1 - 0.9 * 0.1, rel=0.01)


def test_a_closed_loop_does_not_see_the_stall() -> None:
    sample = measure_requests(0, 100_000, stalling)

    delayed = sum(n for at, n in sample.latencies.counts.items() if at > 0.5 * NANOSECONDS)
    assert delayed / 100_000 < 0.001


class Searching(Measuring):
    """A measurement that never waits for its turn."""

    def until(self, name: str) -> tuple[Any, ...]:
        if name == "end_lap":
            return ()
        self._lap = [0]
        return (Turns(),)


def search(limit: LatencyLimit, loops: int) -> tuple[float, Sample]:
    """Search for the highest rate within a limit; return it and the sample taken at that rate."""
    clock = FakeClock()
    params = parameters(limit=limit)
    request = serving(clock, lambda: constantly(clock))
    with plan(request, FakeStorage(clock), params, clock).started() as crew:
        measuring = measurement(exactly_started(crew), params)
        measuring.loops = loops
        return loops / measuring.value(loops), measuring.samples[-1]


def measurement(crew: Crew, params: Parameters) -> Searching:
    specification = SimpleNamespace(benchmark="tpc", parameters=params)
    task: Any = SimpleNamespace(specification=specification, leaks=False)
    connection: Any = SimpleNamespace(send=lambda _: None)
    return Searching(task, crew, connection)


def rate_within(limit: LatencyLimit) -> float:
    """Return the highest rate within a limit, by Erlang's distribution."""
    low, high = 1.0, 99.0
    while high - low > 0.01:
        middle = (low + high) / 2
        if quantile_of_response(middle, limit.percentile / 100) <= limit.seconds:
            low = middle
        else:
            high = middle
    return low


@pytest.mark.parametrize(
    "limit", [LatencyLimit(99, 0.05), LatencyLimit(99, 0.1), LatencyLimit(50, 0.02)]
)
def test_the_search_finds_the_highest_rate(limit: LatencyLimit) -> None:
    rate, sample = search(limit, 20_000)
    assert rate == pytest.approx(rate_within(limit), rel=0.03)
    assert percentile(sample, limit.percentile) <= limit.seconds
    assert sample.part_of_schedule >= KEPT_UP


def test_the_search_stays_within_the_capacity_whatever_the_limit() -> None:
    # No queue becomes so long in a slice that a request exceeds this limit.
    rate, _ = search(LatencyLimit(99, 3600.0), 1000)
    assert rate == pytest.approx(1 / SERVICE, rel=0.1)


def test_the_search_refuses_a_limit_below_the_service_time() -> None:
    with pytest.raises(Unsupported, match=r"no rate keeps p99 within 5 ms; at .* it was"):
        search(LatencyLimit(99, SERVICE / 2), 1000)


def test_the_search_does_not_mistake_a_single_stall_for_the_service_time() -> None:
    clock, requests = FakeClock(), [0]

    def stalls_once() -> None:
        requests[0] += 1
        clock.spend(10 if requests[0] == 400 else SERVICE)

    limit = LatencyLimit(50, 0.05)
    params = parameters(limit=limit)
    with plan(serving(clock, stalls_once), FakeStorage(clock), params, clock).started() as crew:
        measuring = measurement(exactly_started(crew), params)
        measuring.loops = 1000
        assert 1000 / measuring.value(1000) == pytest.approx(rate_within(limit), rel=0.1)


def test_a_rate_that_clients_cannot_send_is_refused() -> None:
    clock = FakeClock()
    slow = parameters(rate=2000.0)

    class Slow(Nothing):
        def run(self) -> None:
            raise AssertionError("a request was sent")

    with plan(Slow, FakeStorage(clock), slow, clock).started() as crew:
        crew.sendable_rate = lambda: 1234.0  # type: ignore[method-assign]
        with pytest.raises(Unsupported, match=r"cannot begin 2000 iterations a second .* 1,000"):
            measurement(crew, slow).check_rate()
