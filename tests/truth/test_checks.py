"""A storage that does something wrong makes its cell fail, with a message that names the error."""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
from ZODB.serialize import referencesf
from ZODB.utils import p64, u64

from tests.fakes import (
    LOAD,
    CachingStorage,
    CachingStorageType,
    FakeClock,
    FakeStorage,
    PrefetchingStorage,
    database_of,
    measure,
    parameters,
    pickled_again,
    plan,
)
from zodbshootout.client import session
from zodbshootout.client import storage_types as storages
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.benchmarks.benchmark import Benchmark, CheckFailed, Nothing, Unsupported
from zodbshootout.client.benchmarks.cold import Cold
from zodbshootout.client.benchmarks.reading import Reading, ReadSet, check_contents, read
from zodbshootout.client.client import Client
from zodbshootout.client.data import datasets
from zodbshootout.client.data.datasets import Dataset
from zodbshootout.client.data.objects import payload
from zodbshootout.client.database import Database
from zodbshootout.model.outcome import Failed, State
from zodbshootout.model.storage_facts import CacheUse, Sharing, StorageInfo


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    # The clock may stand still while clients poll for orders.
    monkeypatch.setattr(session, "POLL_INTERVAL", 0.0)
    return FakeClock()


@pytest.fixture
def storage(clock: FakeClock) -> FakeStorage:
    return FakeStorage(clock)


def failure(
    name: str, storage: FakeStorage, *, shared: bool = False, size: int = 1, loops: int = 1
) -> str:
    params = parameters(shared=shared, size=size)
    chosen = benchmarks()[name]
    with (
        pytest.raises(Failed) as caught,
        plan(chosen, storage, params, storage.clock).started() as crew,
    ):
        crew.measure(loops)
        crew.measure(loops)
        crew.verify()
    return str(caught.value)


def flipping(position: int) -> Callable[[bytes, bytes], bytes]:
    content = payload(parameters(), 0).contents(1, 0, position)[0]
    return lambda oid, data: data.replace(content, bytes(len(content)))


@pytest.mark.parametrize("at", [0, 7, 199])
@pytest.mark.parametrize("name", ["cold", "hot", "load"])
def test_a_storage_that_lies_in_one_slice_of_a_lap_fails(
    name: str, at: int, storage: FakeStorage
) -> None:
    honest, chosen = storage.corrupt, benchmarks()[name]
    set_read = 0 if name == "hot" else at
    content = datasets.contents(Dataset.READ, parameters(), 0, 0, set_read)[3]

    def lying() -> Iterator[AbstractContextManager[None]]:
        for number in range(200):
            storage.corrupt = honest
            if number == at:
                storage.corrupt = lambda _, data: data.replace(content, bytes(len(content)))
            yield nullcontext()

    loops = 10 if name == "load" else 1
    with (
        pytest.raises(Failed, match="object 3"),
        plan(chosen, storage, parameters(), storage.clock).started() as crew,
    ):
        crew.prepare(loops, stretches=200)
        crew.take(lying())
        crew.samples()


@pytest.mark.parametrize("name", ["cold", "hot"])
def test_cold_and_hot_fail_if_wrong_data_is_read(name: str, storage: FakeStorage) -> None:
    storage.corrupt = flipping(3)
    assert failure(name, storage) == (
        "1 of 10 objects differ from what was written; the first is object 3"
    )


def test_steamin_fails_if_wrong_data_is_read(storage: FakeStorage) -> None:
    storage.corrupt = flipping(3)
    assert "1 of 10 objects differ from" in failure("steamin", storage)


def test_add_fails_if_the_store_of_an_object_is_dropped(storage: FakeStorage) -> None:
    content = payload(parameters(), 0).contents(1, 0, 4)[0]
    storage.drops = lambda data: content in data
    assert failure("add", storage).startswith("POSKeyError")


def test_update_fails_if_the_store_of_an_object_is_dropped(storage: FakeStorage) -> None:
    contents = [payload(parameters(), 0).contents(1, revision, 4)[0] for revision in range(1, 9)]
    storage.drops = lambda data: any(content in data for content in contents)
    assert failure("update", storage) == (
        "1 of 10 objects differ from what was written; the first is object 4"
    )


def test_add_fails_if_an_object_comes_back_changed(storage: FakeStorage) -> None:
    content = payload(parameters(), 0).contents(1, 0, 4)[0]
    storage.corrupt = lambda oid, data: data.replace(content, bytes(len(content)))
    assert failure("add", storage) == (
        "1 of 10 objects differ from what was written; the first is object 4"
    )


def test_load_fails_if_a_wrong_record_is_loaded(storage: FakeStorage) -> None:
    storage.corrupt = flipping(3)
    expected = "the record of object 3 differs from what was written"
    assert failure("load", storage, loops=4) == expected
    assert failure("load", storage, loops=40) == expected


def test_store_fails_if_a_raw_record_is_dropped(storage: FakeStorage) -> None:
    content = payload(parameters(), 0).contents(1, 0, 4)[0]
    storage.drops = lambda data: content in data
    assert failure("store", storage).startswith("POSKeyError")


def test_store_fails_if_a_raw_record_comes_back_changed(storage: FakeStorage) -> None:
    storage.corrupt = flipping(4)
    assert "has a different record from the one stored" in failure("store", storage)


def test_store_measures_a_storage_that_keeps_the_state_and_not_the_bytes(
    storage: FakeStorage,
) -> None:
    storage.corrupt = lambda oid, data: pickled_again(data)
    chosen = benchmarks()["store"]
    with plan(chosen, storage, parameters(), storage.clock).started() as crew:
        crew.measure(2)
        crew.verify()


def test_store_fails_if_a_record_in_other_bytes_has_another_state(storage: FakeStorage) -> None:
    change = flipping(4)
    storage.corrupt = lambda oid, data: pickled_again(change(oid, data))
    assert "has a different record from the one stored" in failure("store", storage)


def test_new_oid_fails_if_an_oid_is_allocated_twice_to_one_client(storage: FakeStorage) -> None:
    oids = itertools.cycle([p64(number) for number in (7, 8, 9)])
    storage.new_oid = lambda: next(oids)  # type: ignore[method-assign]
    with pytest.raises(Failed, match="OID 0x7 was allocated twice"):
        measure(benchmarks()["new_oid"], storage, parameters(), storage.clock)


def test_new_oid_fails_if_an_oid_is_allocated_to_two_clients(storage: FakeStorage) -> None:
    counts = {f"client-{number}": itertools.count(100) for number in range(2)}
    allocate = storage.new_oid

    def new_oid() -> Any:
        name = threading.current_thread().name
        return p64(next(counts[name])) if name in counts else allocate()

    storage.new_oid = new_oid  # type: ignore[method-assign]
    assert failure("new_oid", storage, shared=True, size=2) == "OID 0x64 was allocated twice"


def keep_the_later(oid: bytes, committed: bytes, old: bytes, new: bytes, data: bytes) -> bytes:
    return new


@pytest.mark.parametrize("name", ["conflicts", "conflicts_map"])
def test_conflicts_fail_if_conflict_resolution_loses_an_update(
    name: str, storage: FakeStorage
) -> None:
    storage.meeting = threading.Barrier(2)
    storage.resolve = keep_the_later
    message = failure(name, storage, shared=True, size=2)
    assert re.fullmatch(r"object 0: \d updates were lost; \d transactions were committed", message)


def test_readcurrent_conflicts_fail_if_a_refused_transaction_is_committed(
    storage: FakeStorage,
) -> None:
    votes = itertools.count(1)

    class Leaking(FakeStorage):
        def tpc_abort(self, transaction: Any) -> None:
            if transaction is self._transaction and self._tdata:
                self.tpc_finish(transaction)
            else:
                super().tpc_abort(transaction)

    leaking = Leaking(storage.clock)
    leaking.refuses = lambda: threading.current_thread().name == "client-0" and next(votes) == 2
    assert re.match(
        r"object 0: 1 updates too many; \d transactions were committed",
        failure("readCurrent_conflicts", leaking, shared=True),
    )


def test_resolved_conflicts_are_counted_and_no_update_is_lost(storage: FakeStorage) -> None:
    storage.meeting = threading.Barrier(2)
    (sample,) = measure(
        benchmarks()["conflicts"], storage, parameters(shared=True, size=2), storage.clock, [20]
    )
    counts = sample.counts
    # Of two clients that meet, one has conflicts in all its objects.
    assert counts["resolutions"] >= 20 * 5
    assert counts["conflicts"] == counts["resolutions"]
    assert counts["retries"] == 0


def test_unresolved_conflicts_are_retried_and_no_update_is_lost(
    storage: FakeStorage,
) -> None:
    storage.resolve = lambda *changes: None
    (sample,) = measure(
        benchmarks()["conflicts"], storage, parameters(shared=True, size=4), storage.clock, [20]
    )
    counts = sample.counts
    assert counts["retries"] == counts["conflicts"]
    assert counts["resolutions"] == 0


def test_a_transaction_that_is_always_refused_fails(
    storage: FakeStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zodbshootout.client.benchmarks.conflicts.MAX_ATTEMPTS", 5)
    storage.refuses = lambda: threading.current_thread().name == "client-0"
    assert failure("conflicts", storage) == "ConflictError: refused"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cold", "the storage's cache served 1 loads that should have been cold"),
        ("load", "the storage's cache served 1 loads that should have been cold"),
    ],
)
def test_trap_3_a_cold_read_fails_if_the_cache_of_the_storage_serves_it(
    name: str, message: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storages, "storage_types", lambda: [CachingStorageType])
    assert failure(name, CachingStorage(clock)) == message


@pytest.mark.parametrize(("hits", "loads"), [(10, 0), (11, 1)])
def test_the_cache_hits_of_opening_a_connection_are_no_loads(
    hits: int, loads: int, storage: FakeStorage
) -> None:
    cold = Cold(Client(0, parameters(), database_of(storage)))
    uses = iter([CacheUse(4, None, per_opening=2), CacheUse(hits, None, per_opening=2)])
    cold.client.database.cache_use = lambda: next(uses)  # type: ignore[method-assign]
    cold.note_use()
    assert cold.count_use(openings=2) == loads
    both = CacheUse(3, None, per_opening=2) + CacheUse(1, None)
    assert (both.hits, both.per_opening) == (4, 2)


class SmallCacheStorage(CachingStorage, PrefetchingStorage):
    """A storage whose cache has room for some of the records that it loads."""

    room: Callable[[bytes], bool]

    def loadBefore(self, oid: bytes, tid: bytes) -> Any:  # noqa: N802
        revision = super().loadBefore(oid, tid)
        if not self.room(oid):
            self.cached.discard(oid)
        return revision

    def prefetch(self, oids: Any, tid: bytes) -> None:
        super().prefetch(oids, tid)
        self.cached.update(filter(self.room, oids))


class SmallCacheStorageType(CachingStorageType):
    storage_class = "tests.truth.test_checks.SmallCacheStorage"

    def own_caches(self) -> tuple[str, ...]:
        return ("small cache",)

    def empty_caches(self) -> None:
        self.storage.cached.clear()


@pytest.mark.parametrize(
    ("name", "shared", "size", "loads"),
    [("hot", False, 1, 11), ("hot", True, 2, 11), ("prefetch_cold", True, 2, 10),
     ("warm", True, 2, 11), ("warm", False, 1, 11)],
)  # fmt: skip
@pytest.mark.parametrize(("room", "share"), [(0, 0.0), (1, 0.5), (2, 1.0)])
def test_a_small_cache_is_measured_and_the_loads_that_it_could_serve_are_counted(
    name: str, shared: bool, size: int, loads: int, room: int, share: float, clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(storages, "storage_types", lambda: [SmallCacheStorageType])
    storage = SmallCacheStorage(clock)
    storage.room = lambda oid: u64(oid) % 2 < room
    of = parameters(size=size, shared=shared)
    _, sample = measure(benchmarks()[name], storage, of, clock, [1, 4])
    done = sample.iterations + sample.uncounted
    assert sample.counts["cacheable_loads"] == done * loads
    assert sample.counts["storage_cache_hits"] == pytest.approx(
        done * loads * share, abs=1.5 * done if room == 1 else 0
    )
    reopened = name == "warm" and not shared
    assert sample.counts.get("openings_without_hits") == (
        None if not reopened else done if share == 0 else 0
    )


class CollectingStorage(FakeStorage):
    """A storage that removes at once what nothing refers to any longer."""

    def tpc_finish(self, transaction: Any, func: Any = lambda tid: None) -> Any:
        tid = super().tpc_finish(transaction, func)
        self.pack(time.time() + 60, referencesf)
        return tid


@pytest.mark.parametrize("sharing", [Sharing.VOLATILE, Sharing.CONCURRENT])
def test_only_in_memory_may_a_storage_remove_garbage_at_once(
    sharing: Sharing, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = parameters()
    refused = (
        nullcontext() if sharing is Sharing.VOLATILE else pytest.raises(Failed, match="POSKey")
    )
    with refused, plan(benchmarks()["add"], CollectingStorage(clock), of, clock).started() as crew:
        for _ in range(3):
            crew.measure(2)
        facts = StorageInfo(sharing=sharing)
        monkeypatch.setattr(Database, "facts", property(lambda _: facts))
        crew.verify()


def test_equal_contents_of_uncounted_iterations_are_kept_once() -> None:
    cold = object.__new__(Cold)
    cold.timed, cold.sets_read = False, []
    read_set = ReadSet(3, b"", [], 1, ())
    for contents in ([b"same"], [b"same"], [b"other"], [b"same"]):
        cold.contents = contents
        cold.note_set(read_set)
    assert cold.sets_read == [(3, [b"same"]), (3, [b"same"]), (3, [b"other"]), (3, [b"same"])]
    assert len({id(contents) for _, contents in cold.sets_read}) == 3


class EchoingStorage(FakeStorage):
    """A storage that reports its own commits as invalidations, so that objects are loaded again."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.adapters: list[Any] = []

    def registerDB(self, adapter: Any) -> None:  # noqa: N802
        self.adapters.append(adapter)

    def tpc_finish(self, transaction: Any, func: Any = lambda tid: None) -> Any:
        oids = list(self._tdata)
        tid = super().tpc_finish(transaction, func)
        for adapter in self.adapters:
            adapter.invalidate(tid, oids)
        return tid


def test_update_measures_the_loads_that_a_storage_causes_by_reporting_its_own_commits(
    clock: FakeClock,
) -> None:
    without, sample = (
        measure(benchmarks()["update"], storage, parameters(), clock, [4])[0]
        for storage in (FakeStorage(clock), EchoingStorage(clock))
    )
    assert (without.counts["loads"], sample.counts["loads"]) == (0, 3 * 10)
    assert sample.value - without.value == 3 * 10 * LOAD / 4


def test_update_fails_if_a_storage_that_reports_its_own_commits_loses_one(clock: FakeClock) -> None:
    storage = EchoingStorage(clock)
    contents = [payload(parameters(), 0).contents(1, revision, 4)[0] for revision in range(1, 9)]
    storage.drops = lambda data: any(content in data for content in contents)
    assert "1 of 10 objects differ from what was written" in failure("update", storage)


def load_before_each_iteration(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a benchmark load the root object, too."""
    cls = benchmarks()[name]
    run = cls.run

    def run_after_a_load(benchmark: Benchmark) -> None:
        benchmark.client.connection.root()._p_deactivate()
        benchmark.client.connection.root()._p_activate()
        run(benchmark)

    monkeypatch.setattr(cls, "run", run_after_a_load)


@pytest.mark.parametrize(("kind", "loads"), [(FakeStorage, 4), (EchoingStorage, 34)])
def test_update_fails_if_objects_are_loaded_that_were_not_invalidated(
    kind: type[FakeStorage], loads: int, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_before_each_iteration("update", monkeypatch)
    assert failure("update", kind(clock), loops=4).startswith(f"{loads} objects were loaded")


@pytest.mark.parametrize("name", ["ex_commit", "im_commit", "readCurrent"])
def test_a_benchmark_without_loads_fails_if_an_object_is_loaded(
    name: str, storage: FakeStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_before_each_iteration(name, monkeypatch)
    assert re.search("(1 objects were loaded|loaded 1 objects)", failure(name, storage))


def test_steamin_fails_if_an_object_is_loaded(
    storage: FakeStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_after_a_load(benchmark: Reading) -> None:
        next(iter(benchmark.mapping.values()))._p_deactivate()
        benchmark.contents = read(benchmark.mapping)

    monkeypatch.setattr(Reading, "read", read_after_a_load)
    assert failure("steamin", storage) == "the connection loaded 1 objects where 0 were expected"


def test_cold_fails_if_the_pickle_cache_serves_an_object(
    storage: FakeStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmarks()["cold"], "empty", lambda benchmark: ())
    assert failure("cold", storage) == "the connection loaded 10 objects where 11 were expected"


def test_missing_objects_are_distinguished_from_changed_ones() -> None:
    with pytest.raises(CheckFailed, match="found 1 objects where 2 were written"):
        check_contents([b"a"], [b"a", b"b"])


def test_a_benchmark_that_a_client_cannot_set_up_is_unsupported_and_not_failed(
    storage: FakeStorage,
) -> None:
    class Refusing(Nothing):
        def set_up(self) -> None:
            raise Unsupported("FakeStorage has no prefetch")

    with pytest.raises(Failed) as caught:
        measure(Refusing, storage, parameters(), storage.clock)
    assert caught.value.failure.state is State.UNSUPPORTED
    assert caught.value.failure.cause == "FakeStorage has no prefetch"


@pytest.mark.parametrize(
    ("prefetches", "refusal"),
    [(True, None), (None, None), (False, "FakeStorage has no prefetch")],
)
def test_prefetch_cold_refuses_a_storage_that_is_known_to_have_no_prefetch(
    prefetches: bool | None, refusal: str | None
) -> None:
    info = StorageInfo("FakeStorage", prefetches=prefetches)
    assert benchmarks()["prefetch_cold"].refusal(info, parameters()) == refusal


def test_a_crew_reports_a_failed_client_and_not_the_broken_waits_of_others(
    storage: FakeStorage,
) -> None:
    storage.corrupt = flipping(3)
    with pytest.raises(Failed, match="object 3"):
        measure(benchmarks()["cold"], storage, parameters(size=4, shared=True), storage.clock, [5])
