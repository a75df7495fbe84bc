"""Clients together reach the known capacity of a server, and no more.

The figures are exact for a server that does one thing at a time, whether it is fair or not, for a
single client, and for equally fast clients that do not wait for each other.

The server, its clients and the time are simulated: see :mod:`tests.scheduler`.  An exact
figure is exact to the last bit: all times are powers of two.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

import pytest
from ZODB.MappingStorage import MappingStorage

from tests.fakes import client_values, database_of, exactly_started, parameters
from tests.scheduler import SharedClock, SharedLock, channel_on
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.benchmarks.benchmark import Benchmark
from zodbshootout.crews import local
from zodbshootout.crews.crew import Crew, Sample
from zodbshootout.crews.local import CrewPlan
from zodbshootout.model.specification import Parameters

pytestmark = pytest.mark.slow

COMMIT = 2.0**-7
"""Seconds that the server is busy with a commit, while all other clients wait."""
CAPACITY = 1 / COMMIT
"""Commits per second."""
LONG = 2.0**10
"""Seconds of a preparation: more than all commits of a value take."""
CLIENTS = [1, 2, 8, 32]
FEW, MANY = 2, 50


def first_come_first_served(_: int) -> int:
    return 0


def fair(clock: SharedClock) -> SharedLock:
    return clock.lock(first_come_first_served)


def unfair(clock: SharedClock, seed: int) -> SharedLock:
    return clock.lock(random.Random(seed).randrange)


class Committing(Benchmark):
    """A benchmark that holds the server's lock during a commit; its preparation takes long."""

    name = "committing"
    title = "Committing"
    dataset = None
    clock: ClassVar[SharedClock]
    lock: ClassVar[SharedLock]

    def prepare(self) -> None:
        self.clock.spend(LONG * (1 + self.client.index))

    def run(self) -> None:
        with self.lock:
            self.clock.spend(COMMIT)


@contextmanager
def crew_of(
    benchmark: type[Benchmark],
    storage: Any,
    params: Parameters,
    clock: SharedClock,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Crew]:
    monkeypatch.setattr(local, "QueueChannel", channel_on(clock))
    plan = CrewPlan(benchmark, params, lambda: database_of(storage), clock)
    with plan.started() as crew:
        yield exactly_started(crew)


def measure_commits(
    clients: int,
    iterations: int,
    make_lock: Callable[[SharedClock], SharedLock],
    monkeypatch: pytest.MonkeyPatch,
    benchmark: type[Committing] = Committing,
) -> Sample:
    clock = SharedClock(clients)
    monkeypatch.setattr(benchmark, "clock", clock, raising=False)
    monkeypatch.setattr(benchmark, "lock", make_lock(clock), raising=False)
    params = parameters(size=clients, shared=True)
    with crew_of(benchmark, MappingStorage(), params, clock, monkeypatch) as crew:
        return crew.measure(iterations)


def per_second(sample: Sample) -> float:
    """Return the figure in the table: iterations per second of all clients."""
    return sample.clients / sample.value


@pytest.mark.parametrize("iterations", [1, FEW, MANY])
@pytest.mark.parametrize("clients", CLIENTS)
def test_clients_of_a_fair_server_reach_exactly_its_capacity(
    clients: int, iterations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = measure_commits(clients, iterations, fair, monkeypatch)
    assert per_second(sample) == CAPACITY
    assert sample.start_spread == sample.start_delay == sample.paused == 0.0


@pytest.mark.parametrize("iterations", [1, FEW, MANY])
@pytest.mark.parametrize("clients", CLIENTS)
def test_clients_of_an_unfair_server_reach_exactly_its_capacity(
    clients: int, iterations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(6):
        sample = measure_commits(clients, iterations, partial(unfair, seed=seed), monkeypatch)
        assert per_second(sample) == CAPACITY


class Server(MappingStorage):  # type: ignore[misc]
    """A storage that serves one commit at a time, from ``tpc_begin`` to ``tpc_finish``."""

    def __init__(self, clock: SharedClock, lock: SharedLock) -> None:
        super().__init__()
        self.clock = clock
        self.lock = lock
        self.commits: list[float] = []
        """The instants at which commits ended."""

    def tpc_begin(self, transaction: Any, tid: Any = None) -> None:
        self.lock.acquire()
        super().tpc_begin(transaction)

    def tpc_finish(self, transaction: Any, func: Any = lambda tid: None) -> Any:
        self.clock.spend(COMMIT)
        tid = super().tpc_finish(transaction, func)
        self.commits.append(self.clock.now())
        self.lock.release()
        return tid


def measure_on_server(
    name: str,
    clients: int,
    iterations: int,
    make_lock: Callable[[SharedClock], SharedLock],
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[Sample, Server]:
    clock = SharedClock(clients)
    server = Server(clock, make_lock(clock))
    params = parameters(size=clients, shared=True, objects=2)
    with crew_of(benchmarks()[name], server, params, clock, monkeypatch) as crew:
        return crew.measure(iterations), server


@pytest.mark.parametrize("iterations", [1, FEW, MANY])
@pytest.mark.parametrize("clients", CLIENTS)
@pytest.mark.parametrize("name", ["add", "update", "store"])
def test_writing_benchmarks_reach_exactly_the_capacity_of_a_fair_server(
    name: str, clients: int, iterations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample, _ = measure_on_server(name, clients, iterations, fair, monkeypatch)
    assert per_second(sample) == CAPACITY


@pytest.mark.parametrize("clients", CLIENTS)
@pytest.mark.parametrize("name", ["add", "update", "store"])
def test_writing_benchmarks_reach_about_the_capacity_of_an_unfair_server(
    name: str, clients: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    throughputs = [
        per_second(measure_on_server(name, clients, 20, partial(unfair, seed=seed), monkeypatch)[0])
        for seed in range(6)
    ]
    # A client that has used up its mappings commits new ones while others are measured.
    tolerance = 0.04 if name == "add" else 0.02
    assert statistics.fmean(throughputs) == pytest.approx(CAPACITY, rel=tolerance)
    assert max(throughputs) <= 1.03 * CAPACITY


class Independent(Committing):
    """A benchmark whose clients take different times and do not wait for each other."""

    name = "independent"
    title = "Independent"
    seconds: tuple[float, ...] = tuple(part * 2.0**-7 for part in (16, 4, 8, 1, 16, 2, 8, 4))

    def run(self) -> None:
        self.clock.spend(self.seconds[self.client.index])


class Uneven(Independent):
    """A benchmark whose clients rarely end an iteration at the same time."""

    name = "uneven"
    title = "Uneven"
    seconds = tuple(part * 2.0**-7 for part in (16, 5, 7, 1, 11, 3, 16, 13))


@pytest.mark.parametrize(("iterations", "tolerance"), [(FEW, 0.05), (MANY, 0.002)])
@pytest.mark.parametrize("clients", [1, 2, 8])
def test_independent_clients_reach_about_the_sum_of_their_speeds(
    clients: int, iterations: int, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = measure_commits(clients, iterations, fair, monkeypatch, Independent)
    speeds = [1 / duration for duration in Independent.seconds[:clients]]
    # The end of one client's stretch cuts off a part of another's iteration, which its beginning
    # does not always make up for; the speed of each client is exact.
    assert per_second(sample) == pytest.approx(sum(speeds), rel=tolerance if clients > 1 else 0)
    assert client_values(sample) == list(Independent.seconds[:clients])
    assert sample.smallest_share == min(speeds) * clients / sum(speeds)


class Even(Independent):
    """A benchmark whose clients all take the same time."""

    name = "even"
    title = "Even"
    seconds = (2.0**-5,) * 32


@pytest.mark.parametrize("iterations", [1, FEW, MANY])
@pytest.mark.parametrize("clients", CLIENTS)
def test_equally_fast_independent_clients_reach_exactly_the_sum_of_their_speeds(
    clients: int, iterations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = measure_commits(clients, iterations, fair, monkeypatch, Even)
    assert per_second(sample) == clients / Even.seconds[0]
    assert sample.smallest_share == 1.0


@pytest.mark.parametrize("iterations", [FEW, 8, MANY])
@pytest.mark.parametrize("clients", [2, 8])
def test_a_stretch_cuts_off_less_than_one_iteration_of_each_other_client(
    clients: int, iterations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = measure_commits(clients, iterations, fair, monkeypatch, Uneven)
    expected = sum(1 / duration for duration in Uneven.seconds[:clients]) * sample.seconds
    assert abs(sample.done - expected) < clients * (clients - 1)
    if iterations == MANY:
        assert sample.done == pytest.approx(expected, rel=0.02)


def test_only_whole_iterations_count_if_each_client_measures_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow, quick = Uneven.seconds[:2]
    sample = measure_commits(2, 1, fair, monkeypatch, Uneven)
    assert client_values(sample) == [slow, slow / 3]  # three quick ones end before the slow one
    assert per_second(sample) == 4 / slow < 1 / slow + 1 / quick


class Paused(Committing):
    """A benchmark that, against the rules, pauses between iterations for as long as a commit."""

    name = "paused"
    title = "Paused"

    def between(self) -> None:
        self.clock.spend(COMMIT)


def test_a_pausing_client_reaches_the_rate_of_littles_law_and_not_the_capacity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sample = measure_commits(1, MANY, fair, monkeypatch, Paused)
    response, pause = COMMIT, COMMIT * (MANY - 1) / MANY  # none comes before the first iteration
    assert sample.paused == (MANY - 1) * COMMIT
    assert per_second(sample) == pytest.approx(1 / (response + pause), rel=1e-12)
    assert per_second(sample) < 0.51 * CAPACITY
    # The latencies alone would give the capacity, which no client has reached.
    assert sample.clients / sample.latencies.longest == CAPACITY


def test_latencies_of_pausing_clients_overstate_the_capacity_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clients = 2  # one pauses while the other commits, so that the server is never idle
    sample = measure_commits(clients, MANY, fair, monkeypatch, Paused)
    counts = sample.latencies.counts
    latency = sum(ns * 1e-9 * count for ns, count in counts.items()) / sum(counts.values())
    assert clients / latency > 1.9 * CAPACITY
    assert per_second(sample) == pytest.approx(CAPACITY, rel=0.02)


def test_throughput_matches_the_commits_that_the_server_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sample, server = measure_on_server("update", 8, MANY, partial(unfair, seed=1), monkeypatch)
    counted = [
        end for end in server.commits if sample.start < end <= sample.start + sample.on_clock
    ]
    assert per_second(sample) == pytest.approx(len(counted) / sample.on_clock, rel=0.02)
