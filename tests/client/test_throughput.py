"""Throughput and progress of several clients."""

from __future__ import annotations

import random
import statistics
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zodbshootout.client.throughput import (
    MAX_POINTS,
    MIN_POINTS,
    Progress,
    Throughput,
    Total,
    kept_indices,
    most_points,
    throughput,
)

DURATIONS = st.lists(st.integers(1, 1000), min_size=1, max_size=12)


def progress(durations: list[int], start: float = 0.0, batch: int = 1) -> Progress:
    """Return the progress of a client whose successive batches took *durations*."""
    ends = [start + end for end in accumulate(durations)]
    return Progress(start, ends, [batch * (nth + 1) for nth in range(len(ends))])


CREWS = st.lists(DURATIONS, min_size=1, max_size=6)


def progress_on_server(order: list[int], clients: int) -> list[Progress]:
    """Return the progress of clients that a server serves in *order*, one per second."""
    ends = [
        [at + 1.0 for at, served in enumerate(order) if served == client]
        for client in range(clients)
    ]
    return [Progress(0.0, times, range(1, len(times) + 1)) for times in ends]


def per_second(measured: Throughput) -> float:
    return measured.iterations / measured.seconds


@pytest.mark.slow
@given(DURATIONS, st.lists(st.floats(0, 20_000), min_size=2, max_size=20))
def test_the_iterations_done_by_a_client_never_decrease(
    durations: list[int], times: list[float]
) -> None:
    client = progress(durations)
    done = [client.iterations(time) for time in sorted(times)]
    assert done == sorted(done)
    assert all(0 <= iterations <= len(durations) for iterations in done)


@given(DURATIONS, st.integers(1, 100))
def test_a_batch_is_done_at_the_instant_of_its_end(durations: list[int], batch: int) -> None:
    client = progress(durations, start=5.0, batch=batch)
    for end, done in zip(client.times, client.done, strict=True):
        assert client.iterations(end) == done
        assert client.end(done) == end
    assert client.iterations(5.0) == 0


@given(st.integers(1, 100), st.floats(0, 0.99))
def test_an_unfinished_batch_is_not_done(batch: int, part: float) -> None:
    client = Progress(0.0, [4.0, 6.0], [batch, 2 * batch])
    assert client.iterations(4.0 * part) == 0
    assert client.iterations(4.0 + 2 * part) == batch


@pytest.mark.slow
@given(CREWS, st.integers(0, 2**20))
def test_throughput_does_not_depend_on_when_the_crew_started(
    crew: list[list[int]], shift: int
) -> None:
    counted = min(map(len, crew))
    measured = throughput([progress(durations) for durations in crew], counted)
    later = throughput([progress(durations, start=float(shift)) for durations in crew], counted)
    assert later.seconds == measured.seconds > 0
    assert later.iterations == measured.iterations


@pytest.mark.slow
@given(CREWS, st.integers(1, 50))
def test_slowing_all_clients_by_a_factor_divides_the_throughput_by_it(
    crew: list[list[int]], factor: int
) -> None:
    counted = min(map(len, crew))
    measured = throughput([progress(durations) for durations in crew], counted)
    slower = throughput(
        [progress([factor * one for one in durations]) for durations in crew], counted
    )
    assert per_second(slower) == pytest.approx(per_second(measured) / factor)


@pytest.mark.slow
@given(st.integers(1, 8).flatmap(lambda clients: st.lists(st.integers(0, clients - 1))))
def test_throughput_is_the_exact_capacity_of_a_server_in_any_order_of_service(
    order: list[int],
) -> None:
    clients = max(order, default=0) + 1
    # At the end each client is served once more, and all clients go on until then.
    order = [*order, *range(clients)]
    served = progress_on_server(order, clients)
    counted = min(len(client.times) for client in served)
    measured = throughput(served, counted)
    assert measured.iterations == measured.seconds > 0


@pytest.mark.slow
@given(st.integers(1, 32), st.integers(1, 50))
def test_throughput_is_the_exact_capacity_of_a_round_robin_server(
    clients: int, counted: int
) -> None:
    order = list(range(clients)) * (counted + 1)
    measured = throughput(progress_on_server(order, clients), counted)
    assert per_second(measured) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.slow
@given(st.lists(st.integers(1, 1000), min_size=1, max_size=8), st.integers(2, 20))
def test_throughput_of_steady_clients_is_about_the_sum_of_their_speeds(
    durations: list[int], counted: int
) -> None:
    slowest = max(durations)
    crew = [progress([one] * (counted * slowest // one + 1)) for one in durations]
    measured = throughput(crew, counted)
    expected = sum(1 / one for one in durations) * measured.seconds
    # Less than one iteration of each other client is cut off.
    assert abs(measured.iterations - expected) <= len(crew) * (len(crew) - 1) + 1e-9
    if len(set(durations)) == 1:
        assert measured.iterations == pytest.approx(expected)


@pytest.mark.slow
@given(DURATIONS)
def test_throughput_of_a_single_client_covers_all_of_its_time(durations: list[int]) -> None:
    measured = throughput([progress(durations)], len(durations))
    assert (measured.iterations, measured.seconds) == (len(durations), sum(durations))


@pytest.mark.slow
@given(CREWS, st.integers(1, 5))
def test_iterations_after_the_last_client_has_finished_do_not_count(
    crew: list[list[int]], more: int
) -> None:
    counted = min(map(len, crew))
    measured = throughput([progress(durations) for durations in crew], counted)
    longest = max(map(sum, crew))
    longer = [progress([*durations, *[longest] * more]) for durations in crew]
    again = throughput(longer, counted)
    assert again.seconds == measured.seconds
    assert again.iterations == measured.iterations


def test_iterations_count_until_the_slowest_client_ends_its_only_one() -> None:
    crew = [progress([4]), progress([1, 1, 1, 3]), progress([2, 2])]
    measured = throughput(crew, 1)
    assert (measured.iterations, measured.seconds) == (1 + 3 + 2, 4.0)


def test_a_late_start_is_on_the_clock_if_each_client_has_one_iteration() -> None:
    measured = throughput([progress([2]), progress([2], start=1.0)], 1)
    assert (measured.iterations, measured.seconds) == (2, 3.0)


@pytest.mark.slow
@given(CREWS, st.integers(1, 3), st.lists(st.floats(0, 20_000), min_size=1, max_size=20))
def test_the_total_is_the_sum_of_the_iterations_of_all_clients(
    crew: list[list[int]], batch: int, times: list[float]
) -> None:
    clients = [progress(durations, batch=batch) for durations in crew]
    total = Total(clients)
    for time in times:
        assert total.iterations(time) == sum(client.iterations(time) for client in clients)


def with_fewer_points(client: Progress, counted: int, clients: int) -> Progress:
    """Return the progress of a client as it is reported."""
    points = kept_indices(counted, len(client.times), clients)
    return Progress(
        client.start, [client.times[at] for at in points], [client.done[at] for at in points]
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clients", "counted"), [(2, 2000), (8, 400), (64, 110), (200, 60), (200, 100)]
)
def test_reporting_fewer_points_hardly_changes_the_throughput(clients: int, counted: int) -> None:
    chance = random.Random(7)
    ratios = []
    for _ in range(5):
        # All clients go on until the last one has done its counted iterations.
        crew = [
            progress([1 + int(chance.expovariate(1 / speed)) for _ in range(int(1.4 * counted))])
            for speed in (chance.randint(1000, 1300) for _ in range(clients))
        ]
        fewer = [with_fewer_points(client, counted, clients) for client in crew]
        assert len(fewer[0].times) < len(crew[0].times)
        measured, exactly = throughput(fewer, counted), throughput(crew, counted)
        assert measured.seconds == exactly.seconds
        ratios.append(measured.iterations / exactly.iterations)
    assert statistics.mean(ratios) == pytest.approx(1, abs=1.5e-3)


def test_the_points_of_a_crew_grow_more_slowly_than_its_size() -> None:
    assert most_points(1) == MAX_POINTS
    assert most_points(100_000) == MIN_POINTS
    together = [size * most_points(size) for size in (1, 10, 100, 1000)]
    growth = [more / fewer for fewer, more in pairwise(together)]
    assert all(factor < 4 for factor in growth)
