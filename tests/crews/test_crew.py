from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import time
import tracemalloc
from collections import Counter
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psutil
import pytest
import ZODB

from tests.fakes import (
    CachingStorage,
    CachingStorageType,
    FakeClock,
    FakeStorage,
    database_of,
    measure,
    parameters,
    plan,
)
from tests.integration.command import wait_until
from zodbshootout.client import session
from zodbshootout.client import storage_types as storages
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.benchmarks.benchmark import MAX_AT_ONCE, Benchmark, Shape, Traits
from zodbshootout.client.client import Client
from zodbshootout.client.data.datasets import Dataset
from zodbshootout.client.database import Database
from zodbshootout.client.preparation import populate
from zodbshootout.client.protocol import SystemClock
from zodbshootout.client.session import StretchTimer
from zodbshootout.client.throughput import MAX_POINTS
from zodbshootout.crews.crew import Crew
from zodbshootout.crews.local import CrewPlan, LocalCrew, ProcessCrew, ThreadCrew
from zodbshootout.model.outcome import Failed, Failure
from zodbshootout.model.specification import ClientKind, Parameters, Storage


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    # The clock may stand still while clients poll for orders.
    monkeypatch.setattr(session, "POLL_INTERVAL", 0.0)
    return FakeClock()


class Slow(Benchmark):
    """A benchmark whose clients prepare and run more slowly the higher their index is."""

    name = "slow"
    title = "Slow"
    dataset = Dataset.READ

    def prepare(self) -> None:
        time.sleep(0.02 * self.client.index)

    def run(self) -> None:
        time.sleep(0.001 + 0.002 * self.client.index)


class Deadly(Slow):
    def run(self) -> None:
        if self.client.index == 1 and self.timed:
            os.kill(os.getpid(), signal.SIGKILL)


class Leaving(Slow):
    STATUS = 7

    def set_up(self) -> None:
        os._exit(self.STATUS)


class LeavingQuietly(Leaving):
    STATUS = 0


def crew_of_processes(benchmark: type[Benchmark], size: int) -> ProcessCrew:
    of = parameters(size=size, unit=ClientKind.PROCESS)

    def open_benchmark(index: int) -> Benchmark:
        database = database_of(FakeStorage(FakeClock()))
        return benchmark(Client(index, of, database))

    return ProcessCrew(size, open_benchmark, SystemClock())


@pytest.mark.slow
def test_every_client_continues_until_the_last_has_finished() -> None:
    iterations = []

    class Counting(Slow):
        def run(self) -> None:
            super().run()
            if self.client.index == 0 and not self.timed:
                iterations.append(1)

    clock = SystemClock()
    (sample,) = measure(
        Counting, FakeStorage(FakeClock()), parameters(size=3, shared=True), clock, [10]
    )
    assert sample.iterations == 3 * 10
    assert 0 < len(iterations) <= sample.uncounted


@pytest.mark.slow
def test_an_obstructing_client_continues_no_longer_than_it_was_measured() -> None:
    iterations: Counter[int] = Counter()

    class Obstructing(Slow):
        traits = Traits(obstructs=True)

        def run(self) -> None:
            super().run()
            iterations[self.client.index] += 1

    of = parameters(size=3, shared=True)
    measure(Obstructing, FakeStorage(FakeClock()), of, SystemClock(), [4])
    # Four on the clock, and at most four after that.
    assert 4 <= iterations[0] <= 4 + 4


@pytest.mark.slow
def test_a_killed_client_is_named_with_the_signal() -> None:
    expected = pytest.raises(Failed, match=r"client 1 \(pid \d+\) was killed by SIGKILL")
    with expected, crew_of_processes(Deadly, 3).started() as crew:
        crew.measure(3)


class Waiting(Slow):
    def run(self) -> None:
        time.sleep(600)


@pytest.mark.parametrize("kind", [ClientKind.PROCESS, ClientKind.THREAD])
def test_what_watches_over_a_crew_ends_a_wait_in_vain(
    kind: ClientKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = count()

    def watch() -> None:
        if next(calls) == 2:
            raise Failed(Failure("the relay has ended"))

    monkeypatch.setattr("zodbshootout.crews.local.PULSE", 0.01)
    crew: LocalCrew = crew_of_processes(Waiting, 2)
    if kind is ClientKind.THREAD:
        crew = ThreadCrew(2, crew._open_benchmark, SystemClock())
    crew.watch = watch
    with pytest.raises(Failed, match="the relay has ended"), crew.started():
        crew.measure(1)


@pytest.mark.parametrize("leaving", [Leaving, LeavingQuietly])
def test_a_client_that_ends_before_it_is_set_up_is_reported(leaving: type[Leaving]) -> None:
    ending = rf"client \d \(pid \d+\) ended with exit status {leaving.STATUS}"
    expected = pytest.raises(Failed, match=ending)
    with expected as raised, crew_of_processes(leaving, 2).started():
        pytest.fail("the crew cannot be complete")
    assert raised.value.failure.exited


@pytest.mark.slow
def test_trap_16_clients_are_forked_from_a_process_that_opens_no_database() -> None:
    openers = multiprocessing.get_context("fork").Queue()
    storage = FakeStorage(FakeClock())

    def open_db(_: Storage) -> Any:
        openers.put(os.getpid())
        return ZODB.DB(storage)

    of = parameters(size=3, unit=ClientKind.PROCESS, objects=2)
    opened = CrewPlan(benchmarks()["add"], of, lambda: Database(Storage(), open_db))
    with opened.started() as crew:
        crew.measure(1)
    pids = {openers.get(timeout=30) for _ in range(3)}
    assert len(pids) == 3
    assert os.getpid() not in pids
    assert openers.empty()


@pytest.mark.slow
def test_a_failed_crew_leaves_no_process() -> None:
    crew = crew_of_processes(Deadly, 3)
    pids: list[int | None] = []
    with pytest.raises(Failed), crew.started():
        pids.extend(process.pid for process in crew._processes)
        crew.measure(3)
    assert len(pids) == 3
    for pid in pids:
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_clients_end_if_the_process_that_forked_them_is_killed() -> None:
    """Check that no client keeps a pipe open on which another one would wait forever."""
    ours, theirs = multiprocessing.Pipe()

    def fork_clients_and_die() -> None:
        crew = crew_of_processes(Slow, 3)
        crew.start()
        theirs.send([process.pid for process in crew._processes])
        os.kill(os.getpid(), signal.SIGKILL)

    leader = multiprocessing.get_context("fork").Process(target=fork_clients_and_die)
    leader.start()
    clients = [psutil.Process(pid) for pid in ours.recv()]
    leader.join()
    try:
        wait_until(lambda: not any(map(is_at_work, clients)), seconds=30.0)
    finally:
        for client in filter(is_at_work, clients):
            client.kill()


def is_at_work(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(gc, "freeze"), reason="PyPy has nothing of the kind")
def test_trap_24_the_garbage_collector_ignores_prepared_objects_on_the_clock() -> None:
    seen: list[bool] = []

    class Preparing(Slow):
        def prepare(self) -> None:
            self.prepared = [[]]  # type: ignore[var-annotated]

        def run(self) -> None:
            seen.append(self.is_tracked())

        def check(self, done: int) -> None:
            seen.append(self.is_tracked())

        def is_tracked(self) -> bool:
            return any(thing is self.prepared for thing in gc.get_objects())

    measure(Preparing, FakeStorage(FakeClock()), parameters(), SystemClock(), [2])
    assert seen == [False, False, True]


@pytest.mark.slow
@pytest.mark.parametrize(("size", "transactions"), [(300, 1), (2**21, 4)])
def test_large_objects_are_committed_before_they_fill_the_memory(
    size: int, transactions: int, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = FakeStorage(clock)
    of = replace(parameters(size=2, shared=True), objects=8, object_size=size)
    monkeypatch.setattr("zodbshootout.client.preparation.datasets.sets_to_read", lambda _: 2)
    with database_of(storage) as database:
        finish = Mock(wraps=storage.tpc_finish)
        monkeypatch.setattr(storage, "tpc_finish", finish)
        populate(database, Dataset.READ, of)
    assert finish.call_count == transactions


@pytest.mark.slow
def test_populating_twice_writes_once(clock: FakeClock) -> None:
    storage = FakeStorage(clock)
    of = parameters(size=2, shared=True)
    with database_of(storage) as database:
        populate(database, Dataset.READ, of)
        size = len(storage)
        populate(database, Dataset.READ, of)
        assert len(storage) == size


@pytest.mark.slow
@pytest.mark.parametrize("clients", [1, 3])
@pytest.mark.parametrize(("name", "hits"), [("warm", 11), ("hot", 11)])
def test_hits_of_a_shared_cache_are_counted_once(
    name: str, hits: int, clients: int, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storages, "storage_types", lambda: [CachingStorageType])
    of = parameters(size=clients, shared=True)
    samples = measure(benchmarks()[name], CachingStorage(clock), of, clock, [1, 2, 20])
    for sample in samples[1:]:  # the first one filled the cache
        done = sample.iterations + sample.uncounted
        assert sample.counts == {
            "loads": done * 11, "cacheable_loads": done * 11, "storage_cache_hits": done * hits,
        }  # fmt: skip


FOREIGN = """%import foreign
<zodb x>
    <foreign>
        <filestorage>
            path $here/x.fs
        </filestorage>
    </foreign>
</zodb>
"""
KNOWN = FOREIGN.replace("<foreign>", "").replace("</foreign>", "")


@pytest.mark.parametrize(("section", "reopened"), [(FOREIGN, True), (KNOWN, False)])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("name", ["cold", "load", "hot"])
def test_an_unknown_storage_is_reopened_before_each_cold_stretch(
    name: str, shared: bool, section: str, reopened: bool, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    of = parameters(size=3 if shared else 1, shared=shared, objects=2)
    specification = Storage(section, names={"here": str(tmp_path)})
    with Database(specification) as database:
        assert database.facts.knows_caches is not reopened
        populate(database, Dataset.READ, of)
    opened: list[Database] = []
    reopen = Database.reopen

    def noting(database: Database) -> None:
        opened.append(database)
        reopen(database)

    monkeypatch.setattr(Database, "reopen", noting)
    with CrewPlan(benchmarks()[name], of, lambda: Database(specification)).started() as crew:
        samples = [crew.measure(1), crew.measure(1)]
    assert len(opened) == (2 if reopened and name != "hot" else 0)
    assert all(sample.counts["loads"] for sample in samples)


def test_an_unknown_wrapper_of_a_storage_in_memory_keeps_its_data_if_read_cold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    section = "%import foreign\n<zodb x>\n<foreign>\n<mappingstorage/>\n</foreign>\n</zodb>\n"
    specification = Storage(section)
    of = parameters(size=1, objects=2)
    with CrewPlan(benchmarks()["cold"], of, lambda: Database(specification)).started() as crew:
        samples = [crew.measure(1), crew.measure(1)]
    assert [sample.counts["loads"] for sample in samples] == [3, 3]


@pytest.mark.parametrize("name", ["cold", "update"])
def test_a_database_in_memory_is_filled_by_the_client_that_opens_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    section = "%import foreign\n<zodb x>\n<foreign-memory/>\n</zodb>\n"
    of = parameters(size=1, objects=2, unit=ClientKind.PROCESS)

    def started(specification: Storage) -> AbstractContextManager[Crew]:
        return CrewPlan(benchmarks()[name], of, lambda: Database(specification)).started()

    with pytest.raises(Failed, match="the database lacks the objects"), started(Storage(section)):
        pass
    with started(Storage(section, in_memory=True)) as crew:
        assert crew.measure(2).iterations == 2
        crew.verify()


class Nothing(Benchmark):
    """A benchmark that does nothing."""

    name = "nothing"
    title = "Nothing"
    dataset = None

    def run(self) -> None:
        pass


class Ticking(FakeClock):
    """A clock that advances by 1 s each time it is read."""

    time = 0.0

    def now(self) -> float:
        self.time += 1.0
        return self.time

    def wait_until(self, instant: float) -> None:
        self.time = max(self.time, instant)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_iterations_of_a_value() -> None:
    peaks, sizes = [], []
    nothing = plan(Nothing, FakeStorage(FakeClock()), parameters(), Ticking())
    with nothing.started() as crew:
        crew.measure(10)
        tracemalloc.start()
        try:
            for iterations in (MAX_AT_ONCE, 5 * MAX_AT_ONCE):
                tracemalloc.reset_peak()
                before, _ = tracemalloc.get_traced_memory()
                sample = crew.measure(iterations)
                peaks.append(tracemalloc.get_traced_memory()[1] - before)
                sizes.append(len(pickle.dumps(sample)))
                assert sample.iterations == iterations
        finally:
            tracemalloc.stop()
    assert sizes[1] <= sizes[0] + 64
    # Memory that one stretch leaves may be in use until the next one has ended.
    assert peaks[1] <= 1.5 * peaks[0]


@pytest.mark.slow
@pytest.mark.parametrize("between", [None, lambda: None])
def test_the_report_of_a_stretch_has_a_bounded_size(
    between: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "MAX_NOTED", 64)
    sizes = []
    for iterations in (10_000, MAX_AT_ONCE):
        benchmark = Nothing(Client(0, parameters(), database_of(FakeStorage(FakeClock()))))
        benchmark.between = between
        stretch = StretchTimer(benchmark, Ticking(), iterations)
        stretch.start(0.0)
        stretch.run_counted()
        for _ in range(1000):
            stretch.run_uncounted()
        report = stretch.report()
        assert report.done == iterations + 1000
        assert len(report.progress.times) == len(report.progress.done) <= MAX_POINTS + 4
        # The first and the last that count are never dropped.
        assert report.progress.done[0] == 1
        assert report.progress.end(iterations) - report.progress.start >= iterations
        assert iterations in report.progress.done
        assert len(stretch._uncounted_ends) <= 64
        sizes.append(len(pickle.dumps(report)))
    assert max(sizes) < 24 * MAX_POINTS


def test_a_value_has_several_stretches_if_not_all_can_be_prepared_at_once(clock: FakeClock) -> None:
    class Scarce(Nothing):
        @classmethod
        def shape(cls, parameters: Parameters) -> Shape:
            return super().shape(parameters)._replace(most_at_once=4)

        def set_up(self) -> None:
            self.prepared: list[str] = []

        def prepare(self) -> None:
            self.prepared.append("prepared")

        def run(self) -> None:
            clock.spend(1.0)

        def verify(self) -> None:
            assert len(self.prepared) == 3

    with plan(Scarce, FakeStorage(clock), parameters(), clock).started() as crew:
        sample = crew.measure(10)
        crew.verify()
    assert sample.iterations == 10
    assert sample.value == 1.0


def test_a_client_prepared_for_too_few_iterations_fails(clock: FakeClock) -> None:
    class Scarce(Nothing):
        def supply(self, iterations: int) -> int:
            return 3

    with pytest.raises(Failed, match="nothing: prepared for 3 iterations only"):
        measure(Scarce, FakeStorage(clock), parameters(), clock, [3, 4])


def test_the_loads_and_stores_of_the_first_supply_are_not_counted(clock: FakeClock) -> None:
    class Supplied(Nothing):
        def set_up(self) -> None:
            self.client.connect()
            self.client.abort()

        def supply(self, iterations: int) -> int:
            with self.client.transactions:
                self.client.connection.root()["supplied"] = iterations
            return super().supply(iterations)

        def check(self, done: int) -> None:
            self.count_transfers()

    samples = measure(Supplied, FakeStorage(clock), parameters(), clock, [3, 4])
    assert [dict(sample.counts) for sample in samples] == [{"loads": 0, "stores": 0}] * 2
