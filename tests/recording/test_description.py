"""The description of a workload whose calls are known."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import transaction
from BTrees.Length import Length
from persistent.mapping import PersistentMapping
from ZODB import DB
from ZODB.blob import Blob
from ZODB.FileStorage import FileStorage
from ZODB.POSException import ConflictError
from ZODB.utils import p64

from tests.recording.committing import commit_twice
from zodbshootout.recording import Limits, record
from zodbshootout.recording.chunks import Event, Kind, encode, header
from zodbshootout.recording.description import Distribution, Step, describe
from zodbshootout.recording.recorded import Workload, WorkloadError

OBJECTS = 50


class Application:
    """A recorded application that keeps the sizes of the records that it loads."""

    def __init__(self, place: Path) -> None:
        self.path = place / "main.workload"
        self.db = DB(
            record(FileStorage(str(place / "Data.fs"), blob_dir=str(place / "blobs")), self.path)
        )
        with self.db.transaction() as connection:
            root = connection.root()
            for number in range(OBJECTS):
                root[number] = PersistentMapping(text="x" * 10 * number)
            root["length"] = Length()
            root["blob"] = Blob(b"x" * 777)
        self.sizes: list[int] = []

    def read(self, numbers: list[int]) -> None:
        """Load some objects in one transaction, with an empty pickle cache."""
        transaction.begin()
        connection = self.db.open()
        connection.cacheMinimize()
        root = connection.root()
        self.sizes += 2 * [self.size_of(root)]
        for number in numbers:
            root[number]._p_activate()
            self.sizes.append(self.size_of(root[number]))
        transaction.abort()
        connection.close()

    def size_of(self, persistent: Any) -> int:
        return len(self.db.storage.load(persistent._p_oid)[0])

    def change(self, numbers: list[int]) -> None:
        """Store some objects in one transaction."""
        with self.db.transaction() as connection:
            for number in numbers:
                connection.root()[number]["text"] = str(number)


@pytest.fixture
def application(tmp_path: Path) -> Application:
    return Application(tmp_path)


def test_the_description_has_the_counts_and_the_sizes(application: Application) -> None:
    application.read([1, 2, 3])
    application.read([1, 4])
    application.change([7, 8, 9, 10])
    with application.db.transaction() as connection:
        connection.readCurrent(connection.root())
        connection.root()[1]["text"] = "y"
    application.db.close()
    description = describe(Workload(application.path))
    assert description.count(Kind.FINISH) == 4  # the root, the objects, and two changes
    assert description.count(Kind.READ_CURRENT) == 1
    assert description.read_only == description.transactions - 4
    assert description.new_objects == 1 + OBJECTS + 2
    assert description.stores == {1: 2, OBJECTS + 3: 1, 4: 1}
    assert description.count(Kind.STORE_RESOLVABLE) == 1
    assert description.numbers[Kind.STORE_BLOB] == {777: 1}
    # The root is loaded twice, for its class and for its state.  Four objects are loaded to be
    # changed.
    assert description.loads[5] == 1
    assert description.loads[4] == 2
    loaded = description.numbers[Kind.LOAD]
    assert all(loaded[size] >= application.sizes.count(size) for size in application.sizes)
    assert sum(loaded.values()) == sum(description.loads_of.values())
    assert sum(description.percentiles_of(Step.VOTE, [100])) > 0
    assert 0 < sum(map(description.seconds_of, Step)) < description.seconds


def test_conflicts_are_described_by_their_outcome(application: Application) -> None:
    def change(root: Any) -> None:
        root[0] = 1

    with pytest.raises(ConflictError):
        commit_twice(application.db, change)
    commit_twice(application.db, lambda root: root["length"].change(1))
    application.db.close()
    description = describe(Workload(application.path))
    assert sum(description.raised(Kind.CONFLICT).values()) == 1
    assert set(description.raised(Kind.CONFLICT)) <= {"store", "vote"}
    assert description.numbers[Kind.VOTE].sum() == 1


def test_the_facts_of_a_recording_include_its_sample(tmp_path: Path) -> None:
    path = tmp_path / "main.workload"
    storage = record(FileStorage(str(tmp_path / "Data.fs")), path, Limits(sample=0.999999))
    DB(storage).close()
    assert Workload(path).facts[0]["sample"] == 0.999999


def event(kind: Kind, start: int, oid: int = 0, number: int = 0) -> Event:
    return Event(kind, p64(oid), number, p64(0), start, start + 1000)


def workload_of(place: Path, *chunks: list[tuple[int, list[Event]]]) -> Workload:
    """Return a workload of connections with these events."""
    encoded = [
        encode([(connection, [field for event in events for field in event])
                for connection, events in chunk])
        for chunk in chunks
    ]  # fmt: skip
    place.write_bytes(header({"time": 10**18, "clock": 0}) + b"".join(encoded))
    return Workload(place)


def test_transactions_can_span_chunks_and_lack_an_end(tmp_path: Path) -> None:
    begin, load, end = (event(kind, 0) for kind in (Kind.BEGIN, Kind.LOAD, Kind.END))
    workload = workload_of(
        tmp_path / "x",
        [(1, [begin, begin, load]), (2, [begin, load])],
        [(1, [load, end, begin, begin]), (2, [begin, load, begin])],
        [(1, [load])],
    )
    kinds = [
        (t.connection, [Kind(fields[0]).name[0] for fields in t.events])
        for t in workload.transactions()
    ]
    assert kinds == [
        (1, list("BBLLE")), (2, list("BL")), (2, list("BL")), (1, list("BBL")),
    ]  # fmt: skip


def test_the_time_of_a_call_that_raised_belongs_to_its_step(tmp_path: Path) -> None:
    refused = [
        event(Kind.TPC_BEGIN, 1000),
        event(Kind.CONFLICT, 3000, number=Kind.VOTE),
        event(Kind.FAILURE, 5000, number=Kind.LOAD),
        event(Kind.END, 7000),
    ]
    ticks = describe(workload_of(tmp_path / "x.events", [(1, refused)])).ticks
    assert {step: of_step.sum() for step, of_step in ticks.items() if of_step} == {
        Step.STORE: 10, Step.VOTE: 10, Step.LOAD: 10,
    }  # fmt: skip


def test_the_working_set_is_counted_after_each_tenth_of_the_time(tmp_path: Path) -> None:
    loads = [event(Kind.LOAD, 10**9 * n, oid=n // 2) for n in range(20)]
    ends = [event(Kind.END, 10**9 * n + 2000) for n in range(20)]
    events = [recorded for pair in zip(loads, ends, strict=True) for recorded in pair]
    description = describe(workload_of(tmp_path / "x", [(1, events)]))
    assert description.seconds == pytest.approx(19, abs=0.01)
    assert description.distinct() == list(range(1, 11))
    assert sum(map(len, description.windows)) in {10, 11, 12, 13, 14, 15, 16, 17, 18, 19}


def test_the_heat_is_the_share_of_the_hottest_objects(tmp_path: Path) -> None:
    # One of a hundred objects gets half of the loads.
    oids = [0] * 99 + list(range(1, 100))
    random.Random(1).shuffle(oids)
    events = [event(Kind.LOAD, 2000 * n, oid=oid) for n, oid in enumerate(oids)]
    description = describe(workload_of(tmp_path / "x", [(1, events)]))
    assert description.heat([0.01, 0.1, 1]) == pytest.approx([0.5, 0.5 + 9 / 198, 1])


def test_percentiles_are_values_that_occurred() -> None:
    distribution = Distribution()
    for value in range(1, 101):
        distribution[value] += 1
    assert distribution.percentiles([1, 50, 99, 100]) == [1, 50, 99, 100]
    assert distribution.sum() == 5050
    assert Distribution().percentiles([50]) == [0]


def test_a_directory_without_a_workload_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="no workload was recorded"):
        Workload(tmp_path)


def test_errors_name_the_file(tmp_path: Path) -> None:
    workload = workload_of(tmp_path / "x", [(1, [event(Kind.LOAD, 0)])])
    (tmp_path / "x").write_bytes((tmp_path / "x").read_bytes()[:-1])
    with pytest.raises(WorkloadError, match="x: cut off after byte"):
        describe(workload)
