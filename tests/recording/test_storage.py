"""A recorded storage behaves like the storage, and the calls of its connections are recorded."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import transaction
import ZODB.config
from BTrees.Length import Length
from persistent.mapping import PersistentMapping
from relstorage.storage import RelStorage
from zc.zlibstorage import ZlibStorage
from ZODB import DB
from ZODB.blob import Blob
from ZODB.config import storageFromString
from ZODB.DemoStorage import DemoStorage
from ZODB.FileStorage import FileStorage
from ZODB.interfaces import IMVCCStorage
from ZODB.MappingStorage import MappingStorage
from ZODB.POSException import ConflictError, POSKeyError, ReadConflictError
from ZODB.utils import p64, u64, z64
from zope.interface import providedBy
from zope.interface.verify import verifyObject

from tests.recording.committing import commit_twice
from tests.recording.recordings import connections, counts, events_in, files_in
from zodbshootout.recording import Limits, record
from zodbshootout.recording.chunks import NONE, Event, Kind
from zodbshootout.recording.connection import resolves_conflicts
from zodbshootout.recording.section import fraction

MVCC = {"new_instance", "before_instance", "undo_instance", "sync", "poll_invalidations", "release"}


class Unknown(MappingStorage):  # type: ignore[misc]
    """A third-party storage."""

    extra = "extra"

    def frobnicate(self) -> str:
        """Return something that no other storage returns."""
        return "frobnicated"


SQLITE = """
%import relstorage
<relstorage>
  <sqlite3>
    data-dir {place}
  </sqlite3>
</relstorage>
"""


def _sqlite(place: Path) -> Any:
    return storageFromString(SQLITE.format(place=place / "sqlite"))


STORAGES: dict[str, Callable[[Path], Any]] = {
    "filestorage": lambda place: FileStorage(str(place / "Data.fs")),
    "blobs": lambda place: FileStorage(str(place / "Data.fs"), blob_dir=str(place / "blobs")),
    "mapping": lambda _: MappingStorage(),
    "demo": lambda _: DemoStorage(),
    "zlib": lambda place: ZlibStorage(FileStorage(str(place / "Data.fs"))),
    "sqlite": _sqlite,
    "unknown": lambda _: Unknown(),
}


@pytest.fixture(params=STORAGES)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    opened = STORAGES[request.param](tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "main.workload"


@pytest.fixture
def recorded(tmp_path: Path, place: Path) -> Iterator[DB]:
    """A recorded FileStorage with blobs."""
    db = DB(record(STORAGES["blobs"](tmp_path), place))
    yield db
    if db.storage is not None:
        db.close()


# Asking RelStorage for this attribute makes it warn.
pytestmark = pytest.mark.filterwarnings("ignore:fshelper is deprecated:FutureWarning")


def names_of(storage: Any) -> set[str]:
    """Return the public names of *storage*, out of those of all storages."""
    classes = (FileStorage, RelStorage, MappingStorage, DemoStorage, ZlibStorage, Unknown)
    names = {name for cls in classes for name in dir(cls) if not name.startswith("_")}
    adapted = ZODB.mvccadapter.MVCCAdapter, ZODB.mvccadapter.MVCCAdapterInstance
    names |= {name for cls in adapted for name in dir(cls) if not name.startswith("_")}
    return {name for name in names if hasattr(storage, name)}


def test_a_recorded_storage_has_the_names_and_interfaces_of_its_storage(
    storage: Any, place: Path
) -> None:
    wrapped = record(storage, place)
    added = names_of(wrapped) - names_of(storage)
    assert names_of(storage) <= names_of(wrapped)
    if IMVCCStorage.providedBy(storage):
        assert added == set()
    else:
        # It is adapted as ZODB would adapt it.
        adapter = ZODB.mvccadapter.MVCCAdapter(MappingStorage())
        assert added <= MVCC | names_of(adapter)
    interfaces = set(providedBy(storage).flattened())
    assert set(providedBy(wrapped).flattened()) - interfaces <= set(IMVCCStorage.__iro__)
    assert interfaces <= set(providedBy(wrapped).flattened())
    assert len(wrapped) == len(storage)


def test_a_recorded_connection_has_the_names_and_interfaces_of_its_storage(
    storage: Any, place: Path
) -> None:
    wrapped = record(storage, place)
    inside = wrapped._recorded_mvcc.new_instance()
    connection = wrapped.new_instance()
    assert names_of(connection) == names_of(inside)
    assert hasattr(connection, "afterCompletion") == isinstance(storage, RelStorage)
    assert set(providedBy(connection)) == set(providedBy(inside))


def test_a_recorded_storage_is_an_imvccstorage(storage: Any, place: Path) -> None:
    assert verifyObject(IMVCCStorage, record(storage, place))


def test_a_recorded_storage_passes_on_unknown_attributes(place: Path) -> None:
    wrapped = record(Unknown(), place)
    assert (wrapped.extra, wrapped.frobnicate()) == ("extra", "frobnicated")
    with pytest.raises(AttributeError):
        _ = wrapped.nothing
    with pytest.raises(AttributeError):
        _ = wrapped.new_instance().nothing


def last(events: list[Event], kind: Kind) -> Event:
    return [event for event in events if event.kind == kind][-1]


def test_the_calls_of_a_transaction_are_recorded_with_oids_serials_and_sizes(
    recorded: DB, place: Path
) -> None:
    with recorded.transaction() as connection:
        connection.root()["object"] = PersistentMapping(title="x" * 100)
    with recorded.transaction() as connection:
        connection.root()["object"]["title"] = "y"
        oid, serial = connection.root()["object"]._p_oid, connection.root()["object"]._p_serial
    stored = recorded.storage.load(oid)
    recorded.close()
    events = events_in(place)
    store = last(events, Kind.STORE)
    assert (store.oid, store.serial, store.number) == (oid, serial, len(stored[0]))
    new = next(event for event in events if event.kind == Kind.STORE and event.oid == oid)
    assert new.serial == z64
    assert last(events, Kind.FINISH).serial == stored[1]
    assert last(events, Kind.NEW_OID).oid == oid
    kinds = [Kind(event.kind) for event in events]
    begin = kinds.index(Kind.TPC_BEGIN, len(kinds) - kinds[::-1].index(Kind.NEW_OID))
    assert kinds[begin : begin + 5] == [
        Kind.TPC_BEGIN, Kind.STORE, Kind.VOTE, Kind.FINISH, Kind.END
    ]  # fmt: skip
    assert all(event.end >= event.start for event in events)
    assert last(events, Kind.END).number > 0


def test_loads_have_the_oid_the_size_and_the_serial(recorded: DB, place: Path) -> None:
    with recorded.transaction() as connection:
        connection.root()["object"] = PersistentMapping(title="x" * 100)
    connection = recorded.open()
    connection.cacheMinimize()
    mapping = connection.root()["object"]
    assert mapping["title"]
    data, serial = recorded.storage.load(mapping._p_oid)
    oid = mapping._p_oid
    connection.close()
    with pytest.raises(POSKeyError):
        recorded.open().get(p64(10**6))
    recorded.close()
    events = events_in(place)
    load = last(events, Kind.LOAD)
    assert (load.oid, load.number, load.serial) == (oid, len(data), serial)
    failure = last(events, Kind.FAILURE)
    assert (failure.oid, failure.number) == (p64(10**6), Kind.LOAD)


def test_invalidations_are_counted_when_a_transaction_begins(recorded: DB, place: Path) -> None:
    manager = transaction.TransactionManager(explicit=True)
    manager.begin()
    other = recorded.open(manager)
    with recorded.transaction() as connection:
        for n in range(5):
            connection.root()[n] = PersistentMapping()
    manager.abort()
    manager.begin()
    assert len(other.root()) == 5
    manager.abort()
    other.close()
    recorded.close()
    (path,) = files_in(place)
    begun = [
        event.number
        for events in connections(path).values()
        for event in events
        if event.kind == Kind.BEGIN and event.number
    ]
    assert begun == [6]  # five new objects and the root


def test_conflicts_are_recorded_with_the_call_that_raised_them(recorded: DB, place: Path) -> None:
    def change(root: Any) -> None:
        root["n"] = 1

    with pytest.raises(ConflictError):
        commit_twice(recorded, change)
    recorded.close()
    conflict = last(events_in(place), Kind.CONFLICT)
    assert conflict.number in {Kind.STORE, Kind.VOTE}


def test_resolved_conflicts_are_counted(recorded: DB, place: Path) -> None:
    with recorded.transaction() as connection:
        connection.root()["length"] = Length()
    commit_twice(recorded, lambda root: root["length"].change(1))
    recorded.close()
    events = events_in(place)
    assert [event.number for event in events if event.kind == Kind.VOTE][-2:] == [0, 1]
    assert counts(place)["CONFLICT"] == 0
    resolvable = {event.oid for event in events if event.kind == Kind.STORE_RESOLVABLE}
    assert len(resolvable) == 1


def test_read_current_is_recorded(recorded: DB, place: Path) -> None:
    with recorded.transaction() as connection:
        connection.root()["a"] = PersistentMapping()
    with recorded.transaction() as connection:
        mapping = connection.root()["a"]
        connection.readCurrent(mapping)
        connection.root()["b"] = 1
        oid, serial = mapping._p_oid, mapping._p_serial
    recorded.close()
    event = last(events_in(place), Kind.READ_CURRENT)
    assert (event.oid, event.serial) == (oid, serial)


def test_blobs_are_recorded_with_the_sizes_of_their_files(recorded: DB, place: Path) -> None:
    with recorded.transaction() as connection:
        connection.root()["blob"] = Blob(b"x" * 5000)
    connection = recorded.open()
    with connection.root()["blob"].open() as file:
        assert len(file.read()) == 5000
    connection.close()
    recorded.close()
    events = events_in(place)
    assert last(events, Kind.STORE_BLOB).number == last(events, Kind.LOAD_BLOB).number == 5000
    stored, loaded = last(events, Kind.STORE_BLOB), last(events, Kind.LOAD_BLOB)
    assert stored.oid == loaded.oid != NONE


def test_prefetched_oids_are_recorded(tmp_path: Path, place: Path) -> None:
    db = DB(record(_sqlite(tmp_path), place))
    with db.transaction() as connection:
        oids = [p64(n) for n in range(3)]
        connection.prefetch(oids)
    db.close()
    prefetched = [u64(event.oid) for event in events_in(place) if event.kind == Kind.PREFETCH]
    assert prefetched == [0, 1, 2]


def test_the_time_of_a_prefetch_is_divided_among_its_objects(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = itertools.count(0, 3000)
    db = DB(record(_sqlite(tmp_path), place))
    monkeypatch.setattr("zodbshootout.recording.connection.clock", lambda: next(ticks))
    with db.transaction() as connection:
        connection.prefetch([p64(n) for n in range(3)])
    db.close()
    times = [e.end - e.start for e in events_in(place) if e.kind == Kind.PREFETCH]
    assert times == [1000] * 3


@pytest.mark.parametrize(
    ("error", "kind"), [(ReadConflictError, Kind.CONFLICT), (OSError, Kind.FAILURE)]
)
def test_a_prefetch_that_raises_is_recorded_with_its_time(
    error: type[Exception], kind: Kind, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(MappingStorage):  # type: ignore[misc]
        def prefetch(self, *_: object) -> None:
            raise error

    ticks = itertools.count(0, 1000)
    monkeypatch.setattr("zodbshootout.recording.connection.clock", lambda: next(ticks))
    db = DB(record(Failing(), place))
    with db.transaction() as connection, pytest.raises(error):
        connection.prefetch([z64])
    db.close()
    event = last(events_in(place), kind)
    assert (event.number, event.end - event.start) == (Kind.PREFETCH, 1000)
    assert counts(place)["PREFETCH"] == 0


def test_undo_and_pack_work_while_recording_but_are_not_recorded(recorded: DB, place: Path) -> None:
    for n in range(3):
        with recorded.transaction() as connection:
            connection.root()["n"] = n
    recorded.undo(recorded.undoInfo(0, 1)[0]["id"])
    transaction.commit()
    recorded.pack()
    with recorded.transaction() as connection:
        assert connection.root()["n"] == 1
    before = recorded.open(at=recorded.lastTransaction())
    assert before.root()["n"] == 1
    before.close()
    recorded.close()
    assert counts(place)["FINISH"] == 4  # the root, and three changes


def test_a_recording_is_switched_on_and_off_between_transactions(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = itertools.count(0, 1000)
    monkeypatch.setattr("zodbshootout.recording.connection.clock", lambda: next(ticks))
    switch = tmp_path / "record-now"
    db = DB(record(FileStorage(str(tmp_path / "Data.fs")), place, Limits(while_exists=switch)))
    connection = db.open()
    for n in range(6):
        if n % 3 == 1:
            switch.touch()
        elif n % 3 == 2:
            switch.unlink()
        db.storage._recorder._look()
        transaction.begin()
        connection.root()["n"] = n
        transaction.commit()
    connection.close()
    db.close()
    assert counts(place)["FINISH"] == 2
    begun = {event.end - event.start for event in events_in(place) if event.kind == Kind.BEGIN}
    assert begun == {1000}  # from sync() on, or from the poll


@pytest.mark.slow
def test_many_threads_are_recorded_while_they_commit(recorded: DB, place: Path) -> None:
    threads, commits = 64, 5
    with recorded.transaction() as connection:
        for n in range(threads):
            connection.root()[n] = PersistentMapping()
    recorded.setPoolSize(threads)

    def work(number: int) -> None:
        for n in range(commits):
            with recorded.transaction() as connection:
                connection.root()[number]["n"] = n

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    recorded.close()
    assert counts(place)["FINISH"] == threads * commits + 2


GEVENT = """
from gevent import monkey; monkey.patch_all()
import gevent, sys, ZODB
from ZODB.MappingStorage import MappingStorage
from persistent.mapping import PersistentMapping
from zodbshootout.recording import record
db = ZODB.DB(record(MappingStorage(), sys.argv[1]))
with db.transaction() as connection:
    for n in range(8):
        connection.root()[n] = PersistentMapping()
def work(number):
    for n in range(5):
        with db.transaction() as connection:
            connection.root()[number]["n"] = n
            gevent.sleep(0.3)
gevent.joinall([gevent.spawn(work, n) for n in range(8)], raise_error=True)
db.close()
"""


@pytest.mark.slow
def test_greenlets_are_recorded(place: Path) -> None:
    subprocess.run([sys.executable, "-c", GEVENT, str(place)], check=True)
    assert counts(place)["FINISH"] == 42


def test_an_exception_in_the_recorder_does_not_reach_the_application(
    recorded: DB, place: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: bytes) -> bool:
        raise RuntimeError("broken")

    monkeypatch.setattr("zodbshootout.recording.connection.resolves_conflicts", fail)
    for n in range(3):
        with recorded.transaction() as connection:
            connection.root()["n"] = n
    assert recorded.open().root()["n"] == 2
    (line,) = [entry.getMessage() for entry in caplog.records if "recording" in entry.name]
    assert line.endswith("ended: RuntimeError('broken')")


SECTION = """
%import zodbshootout.recording
<zodb>
  <recording>
    path {place}
    sample 100%
    max-size 1MB
    anonymous on
    <filestorage>
      path {data}
    </filestorage>
  </recording>
</zodb>
"""


def test_a_recording_section_records_within_its_limits(tmp_path: Path, place: Path) -> None:
    db = ZODB.config.databaseFromString(SECTION.format(place=place, data=tmp_path / "Data.fs"))
    limits = db.storage._recorder.limits
    assert limits == Limits(max_size=2**20, sample=1.0, anonymous=True)
    db.close()
    assert counts(place)["FINISH"] == 1


@pytest.mark.parametrize("text", ["0%", "101%", "10", "ten%", "%", "5% "])
def test_a_sample_that_is_no_percentage_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"percentage|float"):
        fraction(text)


def test_a_section_without_a_path_is_refused() -> None:
    with pytest.raises(Exception, match="path"):
        storageFromString(
            "%import zodbshootout.recording\n<recording>\n<mappingstorage/>\n</recording>\n"
        )


@pytest.mark.parametrize(
    ("cls", "resolves"), [(Length, True), (PersistentMapping, False)], ids=["length", "mapping"]
)
def test_a_record_shows_whether_its_class_resolves_conflicts(
    cls: type, resolves: bool, tmp_path: Path
) -> None:
    db = DB(str(tmp_path / "Data.fs"))
    with db.transaction() as connection:
        connection.root()["object"] = instance = cls()
    assert resolves_conflicts(db.storage.load(instance._p_oid)[0]) is resolves
    db.close()


@pytest.mark.parametrize("data", [b"", b"\x80\x03", b".z\x78\x9c\x00\n\n", b"\x80\x03cno\n\n"])
def test_a_record_of_an_unknown_class_does_not_resolve_conflicts(data: bytes) -> None:
    assert resolves_conflicts(data) is False
