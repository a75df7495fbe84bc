"""A storage whose calls take known times is measured with exactly those times."""

from __future__ import annotations

import itertools
import math
import threading
from contextlib import nullcontext
from typing import Any

import pytest

from tests.fakes import (
    CHECK,
    COMMIT,
    LOAD,
    STORE,
    TPC_FINISH,
    FakeClock,
    FakeStorage,
    PrefetchingStorage,
    client_values,
    database_of,
    measure,
    parameters,
    plan,
)
from tests.truth.expected import BEGIN, EXPECTED, HALF, MAPPING, N
from zodbshootout.client import session
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.benchmarks.benchmark import Benchmark, Shape
from zodbshootout.client.data import datasets
from zodbshootout.client.data.datasets import Dataset
from zodbshootout.client.preparation import populate
from zodbshootout.crews.crew import Sample
from zodbshootout.model.latencies import Latencies
from zodbshootout.model.specification import MappingType, Parameters

LOCK = 2.0**32
MANY = 400
"""Iterations of 8 clients in which points of their progress are dropped."""

CONFLICTING = {"conflicts", "conflicts_map", "readCurrent_conflicts"}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    # The clock may stand still while clients poll for orders.
    monkeypatch.setattr(session, "POLL_INTERVAL", 0.0)
    return FakeClock()


def storage_for(clock: FakeClock) -> FakeStorage:
    storage = PrefetchingStorage(clock)
    storage.accepts_stale = True
    return storage


def test_every_built_in_benchmark_has_an_expected_time() -> None:
    built_in = {name for name, cls in benchmarks().items() if "zodbshootout" in cls.__module__}
    # Those of test_replay.py and test_upkeep.py.
    elsewhere = {"replay", "undo", "open", "open_cold", "open_stale", "pack", "copy"}
    assert built_in == set(EXPECTED) | elsewhere, "complete EXPECTED in tests/truth/expected.py"


def all_took(sample: Sample, seconds: float) -> bool:
    """Return whether every iteration took exactly *seconds*, as the mean and the longest did.

    If points of the clients' progress were dropped, the time between them is exact but for the
    rounding of floating-point numbers.
    """
    same = math.isclose(sample.value, seconds, rel_tol=1e-12)
    return same and sample.latencies.longest == seconds


@pytest.mark.parametrize(
    ("name", "loops", "clients"),
    [
        *itertools.product(sorted(EXPECTED.keys() - CONFLICTING), [1], [1, 2]),
        *itertools.product(["load", "tpc"], [MANY], [1, 8]),
    ],
)
def test_only_the_calls_of_the_benchmark_are_on_the_clock(
    name: str, loops: int, clients: int, clock: FakeClock
) -> None:
    params = parameters(size=clients, shared=True, objects=N)
    (sample,) = measure(benchmarks()[name], storage_for(clock), params, clock, [loops])
    assert sample.iterations == clients * loops
    assert sum(sample.latencies.counts.values()) == clients * loops
    assert client_values(sample) == [EXPECTED[name]] * clients
    assert all_took(sample, EXPECTED[name])
    assert sample.on_clock == loops * EXPECTED[name]
    assert sample.paused == 0.0
    assert sample.start_spread == 0.0


@pytest.mark.parametrize("loops", [1, 100])
@pytest.mark.parametrize("name", sorted(CONFLICTING))
def test_a_conflict_benchmark_takes_its_expected_time_if_nothing_conflicts(
    name: str, loops: int, clock: FakeClock
) -> None:
    params = parameters(shared=True, objects=N)
    (sample,) = measure(benchmarks()[name], storage_for(clock), params, clock, [loops])
    assert all_took(sample, EXPECTED[name])
    assert sample.counts["loads"] == 0


def test_a_stall_in_one_slice_of_a_lap_is_in_the_figure_of_that_slice(clock: FakeClock) -> None:
    stall = 2.0**-3

    class Stalling(FakeStorage):
        commits = 0

        def tpc_begin(self, transaction: Any, tid: Any = None) -> None:
            self.commits += 1
            if self.commits == 30:
                clock.spend(stall)
            super().tpc_begin(transaction, tid)

    params = parameters(shared=True, objects=N)
    with plan(benchmarks()["tpc"], Stalling(clock), params, clock).started() as crew:
        crew.prepare(4, stretches=20)
        crew.take(iter([nullcontext()] * 20))
        samples = crew.samples()
    slow = [sample for sample in samples if not all_took(sample, EXPECTED["tpc"])]
    assert len(slow) == 1
    assert slow[0].latencies.longest == EXPECTED["tpc"] + stall
    assert len(samples) == 20


@pytest.mark.parametrize("name", EXPECTED)
def test_trap_2_the_first_iteration_takes_as_long_as_the_hundredth(
    name: str, clock: FakeClock
) -> None:
    params = parameters(shared=True)
    _, sample = measure(benchmarks()[name], storage_for(clock), params, clock, [100, 100])
    assert all_took(sample, EXPECTED[name])


@pytest.mark.parametrize("loops", [1, 100])
@pytest.mark.parametrize("name", sorted(CONFLICTING))
def test_retries_are_on_the_clock_and_counted(name: str, loops: int, clock: FakeClock) -> None:
    storage = storage_for(clock)
    votes = itertools.count(1)

    def refuses_two_of_three() -> bool:
        return threading.current_thread().name == "client-0" and next(votes) % 3 > 0

    storage.refuses = refuses_two_of_three
    (sample,) = measure(benchmarks()[name], storage, parameters(shared=True), clock, [loops])
    changed = {"conflicts": HALF, "conflicts_map": HALF + MAPPING, "readCurrent_conflicts": N}[name]
    once_more = EXPECTED[name] - TPC_FINISH + changed * LOAD
    assert all_took(sample, EXPECTED[name] + 2 * once_more)
    assert sample.counts == {
        "loads": 2 * loops * changed,
        "stores": 3 * loops * changed,
        "retries": 2 * loops,
        "conflicts": 2 * loops,
        "resolutions": 0,
    }


def test_conflicts_map_stores_buckets_and_checks_the_node_above_them(
    clock: FakeClock,
) -> None:
    params = parameters(shared=True, objects=300, mapping=MappingType.IO, leaf_size=20)
    (sample,) = measure(benchmarks()["conflicts_map"], storage_for(clock), params, clock)
    leaves = 1 + (300 - 20) // 10  # each is split in two when it is full, and then left behind
    assert sample.value == BEGIN + (150 + leaves) * STORE + CHECK + COMMIT


@pytest.mark.parametrize("name", ["add", "update", "store", "tpc", "conflicts"])
def test_trap_4_waiting_for_the_commit_lock_is_on_the_clock(name: str, clock: FakeClock) -> None:
    class Locked(FakeStorage):
        def tpc_begin(self, transaction: Any, tid: Any = None) -> None:
            clock.spend(LOCK)
            super().tpc_begin(transaction, tid)

    (sample,) = measure(benchmarks()[name], Locked(clock), parameters(), clock)
    assert sample.value == LOCK + EXPECTED[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EXPECTED if name != "prefetch_cold"])
@pytest.mark.parametrize("mapping", list(MappingType))
def test_every_mapping_type_can_be_measured(
    name: str, mapping: MappingType, clock: FakeClock
) -> None:
    params = parameters(shared=True, objects=100, mapping=mapping)
    (sample,) = measure(benchmarks()[name], FakeStorage(clock), params, clock)
    assert sample.iterations == 1


@pytest.mark.parametrize("name", ["update", "readCurrent"])
def test_iterations_load_no_objects_even_if_the_pickle_cache_is_too_small(
    name: str, clock: FakeClock
) -> None:
    (sample,) = measure(
        benchmarks()[name], storage_for(clock), parameters(), clock, [3], cache_size=2
    )
    assert sample.latencies.longest == EXPECTED[name]
    # Objects that the cache has dropped are loaded again between iterations, which is reported.
    loaded = sample.counts["loads"]
    catching_up = BEGIN if name == "update" else 0.0
    assert loaded == 2 * (N + MAPPING - 2)
    assert sample.paused == loaded * LOAD + 2 * catching_up
    assert sample.value == (3 * EXPECTED[name] + sample.paused) / 3


def test_short_iterations_are_timed_in_batches_and_counted_one_by_one(clock: FakeClock) -> None:
    steamin = benchmarks()["steamin"]
    assert steamin.shape(parameters(objects=1000)).batch == 1
    assert steamin.shape(parameters(objects=1)).batch == 500
    (sample,) = measure(InBatches, FakeStorage(clock), parameters(), InBatches.on(clock), [1250])
    assert sample.iterations == 1250
    # 500, 500 and 250: a batch has the mean of its iterations, which take 0, 1, 2 … seconds.
    assert sample.latencies.counts == {
        _bucket(249.5): 500, _bucket(749.5): 500, _bucket(1124.5): 250
    }  # fmt: skip
    assert sample.value == 1249 / 2


def _bucket(seconds: float) -> int:
    latencies = Latencies()
    latencies.record([seconds])
    (bucket,) = latencies.counts
    return bucket


class InBatches(Benchmark):
    """A benchmark whose iterations each take a second more than the one before."""

    name = "in_batches"
    title = "In batches"
    dataset = None
    clock: FakeClock

    @classmethod
    def on(cls, clock: FakeClock) -> FakeClock:
        cls.clock = clock
        return clock

    @classmethod
    def shape(cls, parameters: Parameters) -> Shape:
        return super().shape(parameters)._replace(batch=500)

    def prepare(self) -> None:
        self.seconds = itertools.count()

    def run(self) -> None:
        self.clock.spend(next(self.seconds))


@pytest.mark.parametrize("clients", [1, 2])
@pytest.mark.parametrize("name", ["add", "update", "cold", "hot", "warm", "store", "load"])
def test_counts_include_those_of_uncounted_iterations(
    name: str, clients: int, clock: FakeClock
) -> None:
    params = parameters(size=clients, shared=True)
    samples = measure(benchmarks()[name], storage_for(clock), params, clock, [3, 20])
    for sample, loops in zip(samples, (3, 20), strict=True):
        assert sample.iterations == clients * loops
        assert sample.uncounted == 0 or clients > 1
        per_iteration = {
            "add": {"loads": 0, "stores": N + MAPPING},
            "update": {"loads": 0, "stores": N},
            "store": {"stores": N},
            "load": {"loads": 1},
        }.get(name, {"loads": N + MAPPING})
        done = sample.iterations + sample.uncounted
        assert sample.counts == {what: done * number for what, number in per_iteration.items()}


@pytest.mark.parametrize("mapping", list(MappingType))
def test_add_makes_its_keys_before_the_clock_starts(
    mapping: MappingType, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    key_at = datasets.key_at

    def slow_key_at(params: Parameters, position: int) -> int | str:
        clock.spend(LOCK)
        return key_at(params, position)

    monkeypatch.setattr(datasets, "key_at", slow_key_at)
    (sample,) = measure(
        benchmarks()["add"], FakeStorage(clock), parameters(mapping=mapping), clock, [3]
    )
    assert sample.value == EXPECTED["add"]


@pytest.mark.slow
@pytest.mark.parametrize("clients", [1, 8])
@pytest.mark.parametrize("loops", [1, 5])
def test_rounds_leave_the_preparation_of_the_next_round_off_the_clock(
    loops: int, clients: int, clock: FakeClock
) -> None:
    storage = storage_for(clock)
    warm = benchmarks()["warm"]
    params = parameters(size=clients)
    populate(database_of(storage), Dataset.READ, params)
    assert warm.shape(params).in_rounds
    (sample,) = measure(warm, storage, params, clock, [loops])
    assert all_took(sample, EXPECTED["warm"])
    assert sample.uncounted == 0
    assert storage.closed >= clients * loops


@pytest.mark.parametrize("loops", [2, 100])
def test_work_between_iterations_is_a_pause_that_the_figure_includes(
    loops: int, clock: FakeClock
) -> None:
    storage = storage_for(clock)
    pause = 2.0**20

    class Paused(benchmarks()["hot"]):  # type: ignore[misc]
        def between(self) -> None:
            super().between()
            clock.spend(pause)

    (sample,) = measure(Paused, storage, parameters(shared=True), clock, [loops])
    assert sample.paused == (loops - 1) * pause
    assert sample.latencies.longest == EXPECTED["hot"]
    assert sample.on_clock == loops * EXPECTED["hot"] + (loops - 1) * pause
    assert sample.value == sample.on_clock / loops


def test_update_writes_other_content_in_every_iteration(clock: FakeClock) -> None:
    storage = storage_for(clock)
    written: list[bytes] = []
    store = storage.store

    def recording_store(oid: bytes, serial: bytes, data: bytes, version: str, txn: Any) -> Any:
        if threading.current_thread().name == "client-0":
            written.append(data)
        return store(oid, serial, data, version, txn)

    storage.store = recording_store  # type: ignore[method-assign]
    populate(database_of(storage), Dataset.UPDATE, parameters())
    measure(benchmarks()["update"], storage, parameters(), clock, [20, 1, 20])
    assert len(written) == len(set(written)) == 41 * N
