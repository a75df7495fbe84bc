"""A storage that takes a known time comes out with exactly that time."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes import COMMIT, LOAD, NEW_OID, STORE, FakeClock, FakeStorage, measure, parameters
from zodbshootout.benchmarks.benchmark import Benchmark
from zodbshootout.benchmarks.registry import benchmarks
from zodbshootout.data import tree
from zodbshootout.data.tree import Purpose
from zodbshootout.model import MappingType, Parameters

N = 10
MAPPING = 1
READ_AGAIN = 1
"""Connection.get loads the mapping's record, and the mapping itself does so once more."""

EXPECTED = {
    "add": N * NEW_OID + (N + MAPPING) * STORE + COMMIT,
    "update": N * STORE + COMMIT,
    "warm": (N + MAPPING + READ_AGAIN) * LOAD,
    "cold": (N + MAPPING + READ_AGAIN) * LOAD,
    "hot": (N + MAPPING) * LOAD,
    "steamin": 0.0,
}


@pytest.mark.parametrize("loops", [1, 7])
@pytest.mark.parametrize("name", EXPECTED)
def test_on_the_clock_is_what_the_benchmark_says_and_nothing_else(name: str, loops: int) -> None:
    clock = FakeClock()
    shared = name == "warm"
    samples = measure(
        benchmarks()[name], FakeStorage(clock), parameters(shared=shared), clock, [loops, loops]
    )
    for sample in samples:
        (client,) = sample.clients
        assert client.iterations == loops
        assert sample.value("mean") == EXPECTED[name]
        assert {latency for latency, _ in client.latencies()} == {EXPECTED[name]}


@pytest.mark.parametrize("name", EXPECTED)
def test_trap_2_the_first_iteration_costs_what_the_hundredth_does(name: str) -> None:
    clock = FakeClock()
    (sample,) = measure(
        benchmarks()[name], FakeStorage(clock), parameters(shared=name == "warm"), clock, [100]
    )
    durations = sample.clients[0].durations
    assert durations[0] == durations[-1] == sample.value("mean") * sample.clients[0].sizes[0]


@pytest.mark.parametrize("name", ["add", "update"])
def test_trap_4_waiting_for_the_commit_lock_is_on_the_clock(name: str) -> None:
    clock = FakeClock()

    class Locked(FakeStorage):
        def tpc_begin(self, transaction: Any, tid: Any = None) -> None:
            clock.spend(1e12)
            super().tpc_begin(transaction, tid)

    (sample,) = measure(benchmarks()[name], Locked(clock), parameters(), clock)
    assert sample.value("mean") == 1e12 + EXPECTED[name]


@pytest.mark.parametrize("name", ["add", "update", "steamin", "hot"])
def test_eight_clients_each_take_as_long_as_one(name: str) -> None:
    clock = FakeClock()
    (sample,) = measure(
        benchmarks()[name], FakeStorage(clock), parameters(size=8, shared=True), clock, [5]
    )
    assert [client.mean for client in sample.clients] == [EXPECTED[name]] * 8


@pytest.mark.parametrize("name", ["add", "update", "warm", "cold", "hot", "steamin"])
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
        clock.spend(1e15)
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
