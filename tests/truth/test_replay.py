"""Replays of workloads whose calls are known, on a storage whose operations take known times."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from ZODB.mvccadapter import MVCCAdapterInstance
from ZODB.POSException import POSKeyError
from ZODB.utils import p64, z64

from tests.fakes import (
    COMMIT,
    LOAD,
    NEW_OID,
    POLL,
    STORE,
    SYNC,
    TPC_BEGIN,
    TPC_FINISH,
    TPC_VOTE,
    FakeClock,
    FakeStorage,
    database_of,
    exactly_started,
    parameters,
    pickled_again,
    plan,
)
from tests.recording.recordings import connections, files_in
from zodbshootout.client import session
from zodbshootout.client.benchmarks import benchmarks, replay
from zodbshootout.client.data import workload_objects
from zodbshootout.client.data.datasets import Dataset
from zodbshootout.client.data.filler import store_records
from zodbshootout.client.data.trace import CREATED_OBJECT, Trace, make_trace
from zodbshootout.client.database import Database
from zodbshootout.client.preparation import is_populated, populate
from zodbshootout.crews.crew import Sample
from zodbshootout.model.outcome import Failed
from zodbshootout.model.specification import Parameters, ReplayedWorkload
from zodbshootout.recording import record
from zodbshootout.recording.chunks import Event, Kind, encode, header
from zodbshootout.recording.recorded import Workload

pytestmark = pytest.mark.slow

REPLAY = benchmarks()["replay"]


@dataclass
class Script:
    """A recording of several connections, whose events come one after the other."""

    directory: Path

    def __post_init__(self) -> None:
        self.directory.mkdir()
        self._events: dict[int, list[Any]] = {}
        self._now = 1000

    def transaction(self, connection: int, *calls: tuple[Any, ...], cpu: int = 0) -> None:
        """Add a transaction: calls are a kind, the number of an object, a size and a revision."""
        self.start(connection, *calls)
        self.finish(connection, cpu=cpu)

    def start(self, connection: int, *calls: tuple[Any, ...]) -> None:
        """Add the first calls of a transaction; other transactions can precede its last ones."""
        self._add(connection, Kind.BEGIN)
        for call in calls:
            self._add(connection, *call)

    def finish(self, connection: int, *calls: tuple[Any, ...], cpu: int = 0) -> None:
        """Add the last calls of a transaction."""
        for call in calls:
            self._add(connection, *call)
        self._add(connection, Kind.END, 0, cpu)

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        self._now += int(seconds * 1e9)

    def commit(self, connection: int, *calls: tuple[Any, ...], outcome: Kind = Kind.FINISH) -> None:
        """Add a transaction that commits its stores, or fails with a conflict at its vote."""
        loads = [call for call in calls if call[0] is Kind.LOAD]
        stores = [call for call in calls if call[0] is not Kind.LOAD]
        end: list[tuple[Any, ...]] = [(Kind.VOTE,), (Kind.FINISH,)]
        if outcome is not Kind.FINISH:
            end = [(outcome, 0, int(Kind.VOTE)), (Kind.ABORT,)]
        self.transaction(connection, *loads, (Kind.TPC_BEGIN,), *stores, *end)

    def _add(
        self, connection: int, kind: Kind, oid: int = 0, number: int = 0, serial: int = 1
    ) -> None:
        event = Event(int(kind), p64(oid), number, p64(serial), self._now, self._now + 1000)
        self._events.setdefault(connection, []).extend(event)
        self._now += 2000

    def trace(self) -> ReplayedWorkload:
        """Write the recording and return its trace."""
        with (self.directory / "1-1.events").open("wb") as file:
            file.write(header({"time": 10**18, "clock": 0}))
            file.write(encode(list(self._events.items())))
        workload = Workload(self.directory)
        return make_trace(workload, self.directory / "trace")


def load(oid: int, size: int = 100) -> tuple[Any, ...]:
    return Kind.LOAD, oid, size


def store(oid: int, size: int = 100) -> tuple[Any, ...]:
    return Kind.STORE, oid, size


def store_blob(oid: int, size: int) -> list[tuple[Any, ...]]:
    return [store(oid), (Kind.STORE_BLOB, oid, size)]


def create(oid: int, size: int = 100) -> tuple[Any, ...]:
    return Kind.STORE, oid, size, 0


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path / "main.workload")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    monkeypatch.setattr(session, "POLL_INTERVAL", 0.0)
    return FakeClock()


@pytest.fixture
def storage(clock: FakeClock) -> FakeStorage:
    return FakeStorage(clock)


def replay_parameters(workload: ReplayedWorkload, **more: Any) -> Parameters:
    return parameters(workload=replace(workload, run="this run"), owner="fake", **more)


def fill(storage: FakeStorage, params: Parameters) -> None:
    database = database_of(storage)
    assert not is_populated(database, Dataset.WORKLOAD, REPLAY.fitted(params))
    populate(database, Dataset.WORKLOAD, REPLAY.fitted(params))
    assert is_populated(database, Dataset.WORKLOAD, REPLAY.fitted(params))


def test_filling_a_database_goes_on_after_an_interrupt_between_storing_and_counting(
    script: Script, storage: FakeStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    script.transaction(1, *(load(oid) for oid in range(5)))
    params = replay_parameters(script.trace())
    stored: list[int] = []

    def interrupted(target: Any, records: Any) -> None:
        store_records(target, records)
        stored.append(len(records))
        if len(stored) == 2:  # the first one reserves OIDs
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(workload_objects, "store_records", interrupted)
        fill(storage, params)
    assert stored == [1, 6]  # five objects, and the chunk that refers to them
    (sample,) = replayed(storage, params, 1)
    assert sample.counts["loads"] == 5


def replayed(
    storage: Any, params: Parameters, iterations: int, *firsts: int | None
) -> list[Sample]:
    """Fill the storage, replay *iterations* transactions per client and verify the writes."""
    fill(storage, params)
    with plan(REPLAY, storage, replace(params, owner="fake"), storage.clock).started() as crew:
        exactly_started(crew)
        samples = [crew.measure(iterations, first) for first in firsts or (None,)]
        crew.verify()
    return samples


def operations(workload: ReplayedWorkload) -> list[list[tuple[str, int, int]]]:
    """Return the operations of each transaction of a trace, except those without an object."""
    trace = Trace(workload.path)
    transactions = trace.transactions(0, workload.transactions)
    trace.close()
    return [
        [
            (Kind(kind & 127).name.lower(), number, size)
            for kind, number, size in transaction.operations
            if size
        ]
        for transaction in transactions
    ]


def test_objects_are_numbered_by_oid_and_created_objects_by_creation(
    script: Script,
) -> None:
    script.transaction(1, load(7, 70), load(3, 30))
    script.commit(2, load(5, 50), create(9, 90), store(3, 31))
    script.commit(1, create(8, 80))
    workload = script.trace()
    assert (workload.initial_objects, workload.created_objects) == (3, 2)
    assert (workload.transactions, workload.connections, workload.read_only) == (3, 2, 1)
    assert (workload.loads, workload.stores) == (3, 3)
    assert operations(workload) == [
        [("load", 2, 70), ("load", 0, 30)],
        [("load", 1, 50), ("store", CREATED_OBJECT, 90), ("store", 0, 31)],
        [("store", CREATED_OBJECT + 1, 80)],
    ]
    trace = Trace(workload.path)
    assert [(o.number, o.size) for o in trace.initial_objects()] == [(0, 30), (1, 50), (2, 70)]


def test_filler_stands_in_for_unused_objects_unless_min_objects_is_set(script: Script) -> None:
    script.transaction(1, load(1), load(2))
    workload = replace(script.trace(), all_objects=100)
    params = replay_parameters(workload)
    assert REPLAY.fitted(params).min_objects == 98
    assert REPLAY.fitted(replace(params, min_objects=7)).min_objects == 7
    assert REPLAY.fitted(replay_parameters(replace(workload, all_objects=1))).min_objects == 0


def test_trap_29_a_failed_attempt_is_part_of_the_transaction_that_repeats_it(
    script: Script,
) -> None:
    script.commit(1, load(1), load(2, 20), store(2, 20), outcome=Kind.CONFLICT)
    script.transaction(2, load(3, 30))
    script.commit(1, load(2, 20), load(4, 40), store(2, 21))
    workload = script.trace()
    assert operations(workload) == [
        [("load", 2, 30)],
        [("load", 0, 100), ("load", 1, 20), ("load", 3, 40), ("store", 1, 21)],
    ]
    assert (workload.conflicts, workload.retries) == (1, 1)


def test_an_attempt_that_stores_only_blobs_repeats_a_failed_one(script: Script) -> None:
    script.commit(1, load(1), load(2, 20), *store_blob(2, 5000), outcome=Kind.CONFLICT)
    script.commit(1, load(2, 20), *store_blob(2, 6000))
    workload = script.trace()
    assert operations(workload) == [[("load", 0, 100), ("load", 1, 20), ("store_blob", 1, 6000)]]
    assert (workload.transactions, workload.retries) == (1, 1)


def test_an_attempt_that_fails_at_its_first_store_repeats_a_failed_one(script: Script) -> None:
    conflict = (Kind.CONFLICT, 1, int(Kind.STORE))
    for oid in (2, 3):
        script.transaction(1, load(1), load(oid), (Kind.TPC_BEGIN,), conflict, (Kind.ABORT,))
    script.commit(1, load(1), store(1, 120))
    workload = script.trace()
    assert operations(workload) == [
        [("load", 0, 100), ("load", 1, 100), ("load", 2, 100), ("store", 0, 120)]
    ]
    assert (workload.transactions, workload.retries) == (1, 2)


def test_an_object_that_a_second_attempt_loads_has_its_size_of_that_time(script: Script) -> None:
    script.commit(1, load(1), load(2, 20), store(2, 20), outcome=Kind.CONFLICT)
    script.commit(2, load(2, 20), store(2, 25))
    script.commit(1, load(2, 25), store(2, 21))
    assert operations(script.trace())[1] == [("load", 0, 100), ("load", 1, 25), ("store", 1, 21)]


def test_a_failed_attempt_that_was_never_repeated_only_loads(script: Script) -> None:
    script.commit(1, load(1), store(1), outcome=Kind.CONFLICT)
    assert operations(script.trace()) == [[("load", 0, 100)]]


def test_a_read_only_transaction_does_not_repeat_a_failed_attempt(
    script: Script,
) -> None:
    script.commit(1, load(1), store(1), outcome=Kind.CONFLICT)
    script.commit(2, load(1), store(1, 120))
    script.transaction(1, load(2))
    assert operations(script.trace()) == [
        [("load", 0, 100)],
        [("load", 0, 100), ("store", 0, 120)],
        [("load", 1, 100)],
    ]


def test_transactions_of_all_processes_are_ordered_by_time(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "two.workload"
    directory.mkdir()
    for process, start in ((1, 5_000_000), (2, 0)):
        events: list[Any] = []
        for number in range(3):
            at = start + 10_000_000 * number
            events += [int(Kind.BEGIN), z64, 0, z64, at, at]
            events += [int(Kind.LOAD), p64(process), 10 * process + number, p64(1), at, at]
        with (directory / f"{process}-{process}.events").open("wb") as file:
            file.write(header({"time": 10**18, "clock": 0}))
            file.write(encode([(1, events)]))
    workload = make_trace(Workload(directory), tmp_path / "trace")
    assert [calls[0][2] for calls in operations(workload)] == [20, 10, 21, 11, 22, 12]
    assert workload.connections == 2


def test_writers_are_ordered_by_their_commits_and_readers_by_their_begins(script: Script) -> None:
    script.start(1, load(1, 10))
    script.start(3, load(2, 20))
    script.commit(2, load(1, 11), store(3, 31))
    script.finish(1, (Kind.TPC_BEGIN,), store(4, 40), (Kind.VOTE,), (Kind.FINISH,))
    script.finish(3, load(5, 50))
    assert operations(script.trace()) == [
        [("load", 1, 20), ("load", 4, 50)],
        [("load", 0, 11), ("store", 2, 31)],
        [("load", 0, 10), ("store", 3, 40)],
    ]


def test_a_transaction_takes_the_time_of_its_operations_step_by_step(
    script: Script, storage: FakeStorage
) -> None:
    for _ in range(4):
        script.transaction(1, load(1), load(2), load(3))
    begin = SYNC + POLL
    (sample,) = replayed(storage, replay_parameters(script.trace()), 4)
    assert sample.value == begin + 3 * LOAD
    assert sample.counts["begin_ns"] == 4 * begin * 1e9
    assert sample.counts["load_ns"] == 12 * LOAD * 1e9
    assert sample.counts["loads"] == 12
    assert sample.counts["extra_loads"] == 0
    assert set(sample.latencies_of) == {"read_only"}


def test_the_storage_is_informed_of_the_end_of_each_transaction(
    script: Script, storage: FakeStorage, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    script.transaction(1, load(1))
    script.commit(1, load(1), store(1))
    end = 2.0
    monkeypatch.setattr(
        MVCCAdapterInstance, "afterCompletion", lambda _: clock.spend(end), raising=False
    )
    (sample,) = replayed(storage, replay_parameters(script.trace()), 2)
    assert sample.counts["finish_ns"] == (TPC_FINISH + 2 * end) * 1e9


def test_a_writing_transaction_takes_the_time_of_its_operations_and_commit(
    script: Script, storage: FakeStorage
) -> None:
    script.transaction(1, load(1), load(2))
    script.commit(1, load(3), (Kind.NEW_OID,), store(1, 77), create(9, 500), store(2, 60))
    (sample,) = replayed(storage, replay_parameters(script.trace()), 2)
    begin = SYNC + POLL
    writing = begin + LOAD + NEW_OID + 3 * STORE + COMMIT
    assert sample.value * 2 == 2 * LOAD + begin + writing
    assert sample.latencies_of["writing"].longest == writing
    assert sample.latencies_of["read_only"].longest == begin + 2 * LOAD
    assert sample.counts["commits"] == 1
    steps = [sample.counts[f"{step}_ns"] for step in replay.STEPS]
    assert sum(steps) == sample.value * 2 * 1e9
    assert sample.counts["vote_ns"] == TPC_VOTE * 1e9
    assert sample.counts["finish_ns"] == TPC_FINISH * 1e9
    assert sample.counts["store_ns"] == (NEW_OID + TPC_BEGIN + 3 * STORE) * 1e9


def test_an_object_of_unknown_revision_is_loaded_before_it_is_stored(
    script: Script, storage: FakeStorage
) -> None:
    script.commit(1, store(1), store(2))
    script.commit(1, store(1), store(3))
    (sample,) = replayed(storage, replay_parameters(script.trace()), 2)
    assert sample.counts["extra_loads"] == 3
    assert sample.counts["loads"] == 3


def normalized(path: Path, last: int) -> list[list[tuple[Any, ...]]]:
    """Return the calls of the last transactions, with objects numbered by first appearance."""
    of_connections = list(connections(path).values())
    events = max(of_connections, key=len)
    transactions: list[list[Event]] = []
    for event in events:
        if event.kind == Kind.BEGIN:
            transactions.append([])
        if event.kind not in {Kind.BEGIN, Kind.END, Kind.NEW_OID}:
            transactions[-1].append(event)
    names: dict[bytes, int] = {}
    return [
        [
            (
                Kind(event.kind).name,
                names.setdefault(event.oid, len(names)) if event.oid != z64 else -1,
                event.number,
                event.kind == Kind.STORE and event.serial == z64,
            )
            for event in transaction
        ]
        for transaction in [done for done in transactions if done][-last:]
    ]


def test_the_recording_of_a_replay_equals_the_replayed_recording(
    script: Script, storage: FakeStorage, tmp_path: Path
) -> None:
    for number in range(20):
        script.transaction(1, *(load(10 + n, 60 + n) for n in range(number + 1)))
        script.commit(
            1, load(100 + number, 45), store(100 + number, 300 + number),
            create(200 + number, 289 + number % 5),
        )  # fmt: skip
        script.transaction(1, load(200 + number, 289 + number % 5))
    params = replay_parameters(script.trace())
    fill(storage, params)
    recorded = record(storage, tmp_path / "again.workload")
    with plan(REPLAY, recorded, params, storage.clock).started() as crew:
        crew.measure(60)
        recorded._recorder._write()
        crew.verify()
    (again,) = files_in(tmp_path / "again.workload")
    (original,) = files_in(script.directory)
    assert normalized(again, 60) == normalized(original, 60)


def test_every_contender_replays_the_same_transactions_in_each_slice(
    script: Script, clock: FakeClock
) -> None:
    for number in range(30):
        script.transaction(1, *(load(n) for n in range(1, number + 2)))
    params = replay_parameters(script.trace())
    counts = []
    for before in (1, 3):  # as a calibration does, with varying numbers of iterations
        storage = FakeStorage(clock)
        fill(storage, params)
        with plan(REPLAY, storage, params, clock).started() as crew:
            crew.measure(before, counts=False)
            crew.prepare(5, 10)
            counts.append([crew.measure(5, first).counts["loads"] for first in (10, 15, 25)])
    assert counts[0] == counts[1] == [13 * 5, 18 * 5, 28 * 5]


def test_each_pass_over_the_workload_creates_its_own_objects(
    script: Script, storage: FakeStorage
) -> None:
    script.commit(1, load(1), create(2))
    script.commit(1, load(2), store(2), store(1))
    samples = replayed(storage, replay_parameters(script.trace()), 3, None, 1, 4)
    assert [sample.counts["commits"] for sample in samples] == [3, 3, 3]


def test_objects_created_before_the_window_exist(script: Script, storage: FakeStorage) -> None:
    script.commit(1, load(1), create(2, 222), create(3))
    script.transaction(1, load(1))
    script.transaction(1, load(2, 222), load(3))
    (sample,) = replayed(storage, replay_parameters(script.trace()), 1, 2)
    assert sample.counts["loads"] == 2
    assert sample.counts["loads_of_other_size"] == 0


def test_caches_are_filled_with_the_objects_used_last_before_the_window(
    script: Script, storage: FakeStorage
) -> None:
    for oid in (1, 2, 3, 2):
        script.transaction(1, load(oid))
    script.transaction(1, load(4))
    params = replay_parameters(script.trace())
    fill(storage, params)
    loaded: list[bytes] = []
    storage.corrupt = lambda oid, data: loaded.append(oid) or data  # type: ignore[func-returns-value]
    with plan(REPLAY, storage, params, storage.clock).started() as crew:
        crew.prepare(1, 4)
        del loaded[:-4]
        assert [oid[-1] - loaded[-1][-1] for oid in loaded] == [2, -1, 1, 0]


def test_trap_32_a_client_waits_off_the_clock_for_objects_of_another_client(
    script: Script, storage: FakeStorage
) -> None:
    script.commit(1, load(1), create(5))
    script.transaction(2, load(5))
    params = replay_parameters(script.trace(), size=2, shared=True)
    fill(storage, params)
    missing = threading.Event()
    load_before = storage.loadBefore

    def recording_misses(oid: bytes, tid: bytes) -> Any:
        try:
            return load_before(oid, tid)
        except POSKeyError:
            missing.set()
            raise

    storage.loadBefore = recording_misses  # type: ignore[method-assign]
    with plan(REPLAY, storage, params, storage.clock).started() as crew:
        exactly_started(crew).prepare(1)
        missing.clear()
        storage.refuses = lambda: not missing.wait(10)
        sample = crew.measure(1)
        crew.verify()
    assert (sample.counts["waits"], sample.counts["retries"]) == (1, 0)
    assert sample.latencies_of["read_only"].longest == SYNC + POLL + LOAD


def test_a_replay_with_a_speed_measures_latency_from_the_recorded_starts(
    script: Script, storage: FakeStorage
) -> None:
    for _ in range(4):
        script.transaction(1, load(1), load(2))
        script.pause(100.0)
    takes = SYNC + POLL + 2 * LOAD
    params = replay_parameters(replace(script.trace(), speed=100 / (takes / 2)))
    fill(storage, params)
    with plan(REPLAY, storage, params, storage.clock).started() as crew:
        sample = exactly_started(crew).measure(4)
    # Each takes twice as long as the time until the next one: a queue grows.
    late = takes / 2
    assert sample.value == pytest.approx(takes + late * (0 + 1 + 2 + 3) / 4)
    assert sample.latencies.longest == pytest.approx(takes + 3 * late)


def test_a_replay_with_a_speed_has_no_queue_if_the_storage_keeps_up(
    script: Script, storage: FakeStorage
) -> None:
    takes = SYNC + POLL + LOAD
    for _ in range(4):
        script.transaction(1, load(1))
        script.pause(100.0)
    params = replay_parameters(replace(script.trace(), speed=100 / (3 * takes)))
    fill(storage, params)
    with plan(REPLAY, storage, params, storage.clock).started() as crew:
        sample = exactly_started(crew).measure(4)
    assert sample.value == pytest.approx(takes)
    assert sample.on_clock > 9 * takes
    assert sample.paused == 0.0


def test_conflicts_of_resolvable_objects_are_resolved_and_not_retried(
    script: Script, clock: FakeClock
) -> None:
    for _ in range(5):
        for connection in (1, 2):
            script.commit(connection, load(1, 50), (Kind.STORE_RESOLVABLE, 1, 50))
    storage = FakeStorage(clock)
    params = replay_parameters(script.trace(), size=2, shared=True)
    fill(storage, params)
    with plan(REPLAY, storage, params, clock).started() as crew:
        crew.prepare(5)
        storage.meeting = threading.Barrier(2)
        sample = crew.measure(5)
        crew.verify()
    assert sample.counts["resolutions"] >= 1
    assert sample.counts["retries"] == 0
    assert sample.counts["conflicts"] == sample.counts["resolutions"]
    assert sample.counts["commits"] == 10


def test_transactions_with_unresolvable_conflicts_are_retried(
    script: Script, clock: FakeClock
) -> None:
    for _ in range(5):
        for connection in (1, 2):
            script.commit(connection, load(1), store(1))
    storage = FakeStorage(clock)
    params = replay_parameters(script.trace(), size=2, shared=True)
    fill(storage, params)
    with plan(REPLAY, storage, params, clock).started() as crew:
        crew.prepare(5)
        storage.meeting = threading.Barrier(2)
        sample = crew.measure(5)
        crew.verify()
    assert sample.counts["resolutions"] == 0
    assert sample.counts["retries"] >= 1
    assert sample.counts["conflicts"] == sample.counts["retries"]
    assert sample.counts["commits"] == 10


def test_nothing_else_is_asked_of_the_storage_when_a_transaction_is_retried(
    script: Script, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    script.commit(1, load(1), store(1))
    storage = FakeStorage(clock)
    params = replay_parameters(script.trace())
    fill(storage, params)
    attempt = SYNC + POLL + LOAD + TPC_BEGIN + STORE + TPC_VOTE
    monkeypatch.setattr(Database, "info", lambda _: clock.spend(1.0))
    with plan(REPLAY, storage, params, clock).started() as crew:
        exactly_started(crew).prepare(1)
        refusals = iter([True, False])
        storage.refuses = lambda: next(refusals)
        sample = crew.measure(1)
    assert sample.counts["retries"] == 1
    assert sample.value == 2 * attempt + TPC_FINISH


def failure(storage: FakeStorage, params: Parameters, iterations: int) -> str:
    with (
        pytest.raises(Failed) as caught,
        plan(REPLAY, storage, params, storage.clock).started() as crew,
    ):
        crew.measure(iterations)
        crew.verify()
    return str(caught.value)


@pytest.fixture
def writing(script: Script, storage: FakeStorage) -> Parameters:
    for _ in range(3):
        script.commit(1, load(1), load(2), store(1, 200))
    params = replay_parameters(script.trace())
    fill(storage, params)
    return params


def test_a_replay_fails_if_the_storage_loses_a_committed_record(
    writing: Parameters, storage: FakeStorage
) -> None:
    storage.drops = lambda data: len(data) == 200
    assert failure(storage, writing, 3).endswith("does not have the record that was committed last")


def test_a_replay_fails_if_the_storage_garbles_a_record(
    writing: Parameters, storage: FakeStorage
) -> None:
    storage.corrupt = lambda oid, data: data[:-5] + b"!" * 5 if len(data) == 100 else data
    assert failure(storage, writing, 3).endswith("is not one of those stored")


def test_a_storage_that_keeps_the_state_and_not_the_bytes_can_replay(
    script: Script, storage: FakeStorage
) -> None:
    for _ in range(3):
        resolvable = (Kind.STORE_RESOLVABLE, 4, 60)
        script.commit(1, load(1), load(4, 60), store(1, 200), resolvable)
        script.commit(1, load(1, 200), load(4, 60))
    params = replay_parameters(script.trace())
    fill(storage, params)
    storage.corrupt = lambda oid, data: pickled_again(data)
    with plan(REPLAY, storage, params, storage.clock).started() as crew:
        sample = crew.measure(6)
        crew.verify()
    assert sample.counts["commits"] == 6


def test_a_replay_fails_if_a_record_in_other_bytes_is_not_the_one_committed_last(
    writing: Parameters, storage: FakeStorage
) -> None:
    storage.corrupt = lambda oid, data: pickled_again(
        data.replace(data[60:64], b"!!!!") if len(data) == 200 else data
    )
    assert failure(storage, writing, 3).endswith("does not have the record that was committed last")


def test_a_replay_fails_if_a_record_in_other_bytes_is_that_of_another_object(
    writing: Parameters, storage: FakeStorage
) -> None:
    storage.corrupt = lambda oid, data: pickled_again(data.replace(oid, bytes(8)))
    assert failure(storage, writing, 3).endswith("is not one of those stored")


def test_a_replay_fails_if_the_storage_refuses_all_commits(
    writing: Parameters, storage: FakeStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "MAX_ATTEMPTS", 5)
    with (
        pytest.raises(Failed, match="a transaction was refused 5 times"),
        plan(REPLAY, storage, writing, storage.clock).started() as crew,
    ):
        crew.prepare(3)
        storage.refuses = lambda: True
        crew.measure(3)


def test_a_replay_fails_if_the_storage_refuses_to_reserve_oids(
    writing: Parameters, storage: FakeStorage
) -> None:
    storage.refuses = lambda: threading.current_thread().name == "client-0"
    assert failure(storage, writing, 3) == "ConflictError: refused"


def test_each_client_has_its_own_objects_if_there_are_fewer_connections(
    script: Script, storage: FakeStorage
) -> None:
    for _ in range(6):
        script.commit(1, load(1), store(1), create(2))
    params = replay_parameters(script.trace(), size=3, shared=True)
    (sample,) = replayed(storage, params, 4)
    assert sample.counts["commits"] == 12
    assert sample.counts["conflicts"] == 0


def test_clients_share_the_transactions_evenly_if_there_are_more_connections(
    script: Script, storage: FakeStorage
) -> None:
    for number in range(12):
        script.transaction((number % 6 and 1) or number // 6, load(number + 1))
    (sample,) = replayed(storage, replay_parameters(script.trace(), size=2, shared=True), 6)
    assert sample.counts["loads"] == 12
