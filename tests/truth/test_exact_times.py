"""A storage that takes a known time comes out with exactly that time."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest

from tests.fakes import (
    CHECK,
    COMMIT,
    LOAD,
    NEW_OID,
    POLL,
    PREFETCH,
    STORE,
    SYNC,
    TPC_FINISH,
    FakeClock,
    FakeStorage,
    PrefetchingStorage,
    measure,
    parameters,
)
from zodbshootout.benchmarks.benchmark import Benchmark
from zodbshootout.benchmarks.registry import benchmarks
from zodbshootout.data import tree
from zodbshootout.data.tree import Purpose
from zodbshootout.engine.threads import Rendezvous
from zodbshootout.model import MappingType, Parameters

N = 10
HALF = 5
MAPPING = 1
READ_AGAIN = 1
"""Connection.get loads the mapping's record, and the mapping itself does so once more."""
BEGIN = SYNC + POLL
LOCK = 2.0**44

EXPECTED = {
    "add": BEGIN + N * NEW_OID + (N + MAPPING) * STORE + COMMIT,
    "update": BEGIN + N * STORE + COMMIT,
    "warm": BEGIN + (N + MAPPING + READ_AGAIN) * LOAD,
    "cold": BEGIN + (N + MAPPING + READ_AGAIN) * LOAD,
    "prefetch_cold": BEGIN + PREFETCH + (N + MAPPING + READ_AGAIN) * LOAD,
    "hot": (N + MAPPING) * LOAD,
    "steamin": 0.0,
    "load": LOAD,
    "store": N * STORE + COMMIT,
    "tpc": COMMIT,
    "ex_commit": BEGIN,
    "im_commit": POLL,
    "readCurrent": N * CHECK + COMMIT,
    "new_oid": N * NEW_OID,
    "conflicts": BEGIN + HALF * STORE + COMMIT,
    # Such a small BTree is a record with its only bucket in it.
    "conflicts_map": BEGIN + (HALF + MAPPING) * STORE + COMMIT,
    "readCurrent_conflicts": BEGIN + N * STORE + N * CHECK + COMMIT,
}
CONFLICTING = {"conflicts", "conflicts_map", "readCurrent_conflicts"}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """A clock on which clients that meet agree."""
    found = FakeClock()
    act = Rendezvous._act

    def agree_and_act(rendezvous: Rendezvous) -> None:
        found.agree()
        act(rendezvous)

    monkeypatch.setattr(Rendezvous, "_act", agree_and_act)
    return found


def storage_for(clock: FakeClock) -> FakeStorage:
    storage = PrefetchingStorage(clock)
    storage.accepts_stale = True
    return storage


def test_every_benchmark_is_accounted_for() -> None:
    built_in = {name for name, each in benchmarks().items() if "zodbshootout" in each.__module__}
    assert built_in == set(EXPECTED)


@pytest.mark.parametrize("clients", [1, 8])
@pytest.mark.parametrize("loops", [1, 1000])
@pytest.mark.parametrize("name", EXPECTED)
def test_on_the_clock_is_what_the_benchmark_says_and_nothing_else(
    name: str, loops: int, clients: int, clock: FakeClock
) -> None:
    of = parameters(size=clients, shared=True, objects=N)
    (sample,) = measure(benchmarks()[name], storage_for(clock), of, clock, [loops])
    for client in sample.clients:
        assert client.iterations == loops
        # What another client has changed meanwhile has to be loaded, and is counted.
        loads = client.counts["loads"] if name in CONFLICTING else 0
        assert sum(client.durations) == loops * EXPECTED[name] + loads * LOAD
    if name not in CONFLICTING:
        assert sample.value("mean") == EXPECTED[name]
    elif clients == 1:
        assert sample.counts()["loads"] == 0


@pytest.mark.parametrize("name", EXPECTED)
def test_trap_2_the_first_iteration_costs_what_the_hundredth_does(
    name: str, clock: FakeClock
) -> None:
    (sample,) = measure(
        benchmarks()[name], storage_for(clock), parameters(shared=True), clock, [100, 100]
    )[1:]
    durations = sample.clients[0].durations
    assert durations[0] == durations[-1] == EXPECTED[name] * sample.clients[0].sizes[0]


@pytest.mark.parametrize("loops", [1, 1000])
@pytest.mark.parametrize("name", sorted(CONFLICTING))
def test_what_is_tried_again_is_on_the_clock_and_counted(
    name: str, loops: int, clock: FakeClock
) -> None:
    storage = storage_for(clock)
    votes = itertools.count(1)

    def refuses_two_of_three() -> bool:
        return threading.current_thread().name == "client-0" and next(votes) % 3 > 0

    storage.refuses = refuses_two_of_three
    (sample,) = measure(benchmarks()[name], storage, parameters(shared=True), clock, [loops])
    changed = {"conflicts": HALF, "conflicts_map": HALF + MAPPING, "readCurrent_conflicts": N}[name]
    once_more = EXPECTED[name] - TPC_FINISH + changed * LOAD
    assert sample.value("mean") == EXPECTED[name] + 2 * once_more
    assert sample.counts() == {
        "loads": 2 * loops * changed,
        "stores": 3 * loops * changed,
        "retries": 2 * loops,
        "conflicts": 2 * loops,
        "resolutions": 0,
    }


def test_conflicts_map_stores_buckets_and_has_the_node_above_them_confirmed(
    clock: FakeClock,
) -> None:
    of = parameters(shared=True, objects=300, mapping=MappingType.IO, leaf_size=20)
    (sample,) = measure(benchmarks()["conflicts_map"], storage_for(clock), of, clock)
    leaves = 1 + (300 - 20) // 10  # each is split in two when it is full, and then left behind
    assert sample.value("mean") == BEGIN + (150 + leaves) * STORE + CHECK + COMMIT


@pytest.mark.parametrize("name", ["add", "update", "store", "tpc", "conflicts"])
def test_trap_4_waiting_for_the_commit_lock_is_on_the_clock(name: str, clock: FakeClock) -> None:
    class Locked(FakeStorage):
        def tpc_begin(self, transaction: Any, tid: Any = None) -> None:
            clock.spend(LOCK)
            super().tpc_begin(transaction, tid)

    (sample,) = measure(benchmarks()[name], Locked(clock), parameters(), clock)
    assert sample.value("mean") == LOCK + EXPECTED[name]


@pytest.mark.parametrize("name", [name for name in EXPECTED if name != "prefetch_cold"])
@pytest.mark.parametrize("mapping", list(MappingType))
def test_every_mapping_type_can_be_measured(name: str, mapping: MappingType) -> None:
    clock = FakeClock()
    (sample,) = measure(
        benchmarks()[name],
        FakeStorage(clock),
        parameters(shared=True, objects=300, mapping=mapping),
        clock,
    )
    assert sample.clients[0].iterations == 1


def test_update_finds_its_objects_loaded_whatever_the_pickle_cache_size() -> None:
    clock = FakeClock()
    (sample,) = measure(
        benchmarks()["update"], FakeStorage(clock), parameters(), clock, [3], cache_size=2
    )
    assert sample.counts() == {"loads": 0, "stores": 3 * N}
    assert sample.value("mean") == EXPECTED["update"]


def test_short_iterations_are_timed_in_batches_and_counted_one_by_one() -> None:
    steamin = benchmarks()["steamin"]
    assert steamin.batch(parameters(objects=1000)) == 1
    assert steamin.batch(parameters(objects=1)) == 500
    clock = FakeClock()
    (sample,) = measure(steamin, FakeStorage(clock), parameters(objects=1), clock, [1250])
    assert list(sample.clients[0].sizes) == [500, 500, 250]
    assert sample.clients[0].iterations == 1250


def test_counts_are_of_the_clocked_iterations_alone() -> None:
    clock = FakeClock()
    first, second = measure(benchmarks()["cold"], FakeStorage(clock), parameters(), clock, [3, 2])
    assert first.counts() == {"loads": 3 * (N + MAPPING)}
    assert second.counts() == {"loads": 2 * (N + MAPPING)}


@pytest.mark.parametrize("mapping", list(MappingType))
def test_add_makes_its_keys_before_the_clock_starts(
    mapping: MappingType, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    key_at = tree.key_at

    def slow_key_at(of: Parameters, position: int) -> int | str:
        clock.spend(LOCK)
        return key_at(of, position)

    monkeypatch.setattr(tree, "key_at", slow_key_at)
    (sample,) = measure(
        benchmarks()["add"], FakeStorage(clock), parameters(mapping=mapping), clock, [3]
    )
    assert sample.value("mean") == EXPECTED["add"]


class InStep(Benchmark):
    """Takes one second, in batches of three, with clients that keep step."""

    name = "in_step"
    title = "In step"
    purpose = Purpose.READ
    in_step = True
    clock = FakeClock()

    @classmethod
    def batch(cls, parameters: Parameters) -> int:
        return 3

    def run(self) -> None:
        self.clock.spend(1.0)


def test_clients_that_keep_step_run_as_many_iterations_as_are_counted() -> None:
    (sample,) = measure(
        InStep, FakeStorage(InStep.clock), parameters(shared=True), InStep.clock, [7]
    )
    assert list(sample.clients[0].sizes) == [3, 3, 1]
    assert list(sample.clients[0].durations) == [3.0, 3.0, 1.0]
    assert sample.value("mean") == 1.0
