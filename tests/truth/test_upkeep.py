"""Benchmarks of old revisions and of upkeep fail if a storage does something wrong."""

from __future__ import annotations

import itertools
import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import transaction
import ZODB
from ZODB.blob import Blob
from ZODB.FileStorage import FileStorage
from ZODB.POSException import POSKeyError

from tests.fakes import LOAD, POLL, SYNC, FakeClock, FakeStorage, measure, parameters, plan
from zodbshootout.client import session
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.data import filler
from zodbshootout.client.data.objects import Item, payload, pickled
from zodbshootout.client.data.sources import facts_of
from zodbshootout.client.database import Database
from zodbshootout.client.preparation import fill, populate
from zodbshootout.client.storage_types.zodb import MappingStorageType
from zodbshootout.crews.crew import Sample
from zodbshootout.crews.local import CrewPlan
from zodbshootout.model.outcome import CheckFailed, Failed
from zodbshootout.model.specification import CopiedData, Parameters, Storage
from zodbshootout.model.storage_facts import CacheUse, DiskSize, Sharing, StorageInfo

pytestmark = pytest.mark.slow


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    # The clock may stand still while clients poll for orders.
    monkeypatch.setattr(session, "POLL_INTERVAL", 0.0)
    return FakeClock()


@pytest.fixture(autouse=True)
def closed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Close all FileStorages, and have temporary files below *tmp_path*: a failure leaves them."""
    opened: list[Any] = []
    init = FileStorage.__init__

    def noted(storage: Any, *arguments: Any, **named: Any) -> None:
        init(storage, *arguments, **named)
        opened.append(storage)

    monkeypatch.setattr(FileStorage, "__init__", noted)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    for storage in opened:
        storage.close()


@pytest.fixture
def storage(clock: FakeClock) -> FakeStorage:
    return FakeStorage(clock)


def failure_on(storage: FakeStorage, name: str, loops: int = 4, **more: Any) -> str:
    chosen, params = benchmarks()[name], parameters(**more)
    with (
        pytest.raises(Failed) as caught,
        plan(chosen, storage, params, storage.clock).started() as crew,
    ):
        crew.measure(loops)
        crew.verify()
    return str(caught.value)


Fault = Callable[[Any], None]
"""Changes an open FileStorage so that it does something wrong."""


def measure_files(
    place: Path,
    name: str,
    loops: int = 3,
    fault: Fault = lambda storage: None,
    before_opening: Callable[[], None] = lambda: None,
    **more: Any,
) -> Sample:
    """Measure a benchmark with a FileStorage in *place*, and have it verified."""
    path = place / "Data.fs"

    def open_db(_: Storage) -> Any:
        before_opening()
        storage = FileStorage(str(path), blob_dir=str(place / "blobs"))
        fault(storage)
        return ZODB.DB(storage)

    benchmark = benchmarks()[name]
    wanted = benchmark.fitted(parameters(shared=True, **more))
    with Database(Storage(), open_db) as database:
        fill(database, wanted)
        populate(database, benchmark.dataset, wanted)
    with CrewPlan(benchmark, wanted, lambda: Database(Storage(), open_db)).started() as crew:
        sample = crew.measure(loops)
        crew.verify()
    return sample


def failure_on_files(place: Path, name: str, fault: Fault, **more: Any) -> str:
    with pytest.raises(Failed) as caught:
        measure_files(place, name, fault=fault, **more)
    return str(caught.value)


def fitted(name: str, **more: Any) -> Parameters:
    return benchmarks()[name].fitted(parameters(**more))


@pytest.mark.parametrize("clients", [1, 3])
@pytest.mark.parametrize("name", ["undo", "history", "load_before"])
@pytest.mark.parametrize("blobs", [False, True])
def test_old_revisions_of_a_filestorage_are_found_and_checked(
    name: str, clients: int, blobs: bool, tmp_path: Path
) -> None:
    sample = measure_files(tmp_path, name, size=clients, blobs=blobs, revisions=4)
    assert sample.iterations == 3 * clients


def test_history_fails_if_a_revision_is_missing(storage: FakeStorage) -> None:
    history = storage.history
    storage.history = lambda oid, size: history(oid, size)[:-1]
    assert failure_on(storage, "history", revisions=3) == (
        "the history of object 0 has 2 revisions, but not the 3 that were committed last"
    )


def test_history_fails_if_the_newest_revision_is_another(storage: FakeStorage) -> None:
    history = storage.history
    storage.history = lambda oid, size: history(oid, 9)[1 : size + 1]
    assert "but not the 3 that were committed last" in failure_on(storage, "history", revisions=3)


def test_load_before_loads_each_old_revision_once(storage: FakeStorage) -> None:
    params = parameters(revisions=3)
    assert benchmarks()["load_before"].shape(params).most_at_once == 20
    (sample,) = measure(benchmarks()["load_before"], storage, params, storage.clock, [40])
    assert sample.value == LOAD
    assert sample.counts["loads"] == 40


def test_load_before_fails_if_the_newest_revision_is_loaded(storage: FakeStorage) -> None:
    load = storage.loadBefore

    def load_newest(oid: bytes, tid: bytes) -> Any:
        return load(oid, b"\xff" * 8) and (*load(oid, b"\xff" * 8)[:2], None)

    storage.loadBefore = load_newest  # type: ignore[method-assign]
    assert failure_on(storage, "load_before", revisions=3) == (
        "object 0 was not loaded as it was in revision 1 of 3"
    )


def do_nothing(storage: Any) -> None:
    storage.undo = lambda tid, transaction: (None, [])


def test_undo_fails_if_nothing_is_undone(tmp_path: Path) -> None:
    assert "10 of 10 objects differ from" in failure_on_files(tmp_path, "undo", do_nothing)


def test_undo_fails_if_nothing_is_undone_an_even_number_of_times(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="the undo did not write the objects"):
        measure_files(tmp_path, "undo", 2, do_nothing)


PACK = 2.0**30
"""Seconds that a PackedStorage needs to pack."""


class PackedStorage(FakeStorage):
    """A FakeStorage that spends time to pack, and then does something wrong."""

    collects_garbage = True
    fault: Callable[[PackedStorage], None] = lambda storage: None

    def pack(self, t: float, referencesf: Any) -> None:
        self.clock.spend(PACK)
        super().pack(t, referencesf, gc=self.collects_garbage)
        type(self).fault(self)

    def oid_of(self, place: int) -> bytes:
        """Return the OID of an object of the only chunk."""
        database = ZODB.DB(self)
        with database.transaction() as connection:
            (oids,) = filler.chunks(connection.root(), fitted("pack"))
        return oids[place]


def tell(monkeypatch: pytest.MonkeyPatch, **facts: bool) -> None:
    told = StorageInfo(keeps_history=True, **facts)  # type: ignore[arg-type]
    monkeypatch.setattr(MappingStorageType, "facts", lambda self: told)


def packed(clock: FakeClock, fault: Callable[[Any], None]) -> PackedStorage:
    class Faulty(PackedStorage):
        pass

    Faulty.fault = fault
    return Faulty(clock)


def test_the_pack_alone_is_on_the_clock(clock: FakeClock) -> None:
    storage = packed(clock, lambda storage: None)
    first, second = measure(
        benchmarks()["pack"], storage, parameters(revisions=4, garbage=0.5), clock, [1, 2]
    )
    assert (first.value, second.value) == (PACK, PACK)
    assert benchmarks()["pack"].shape(fitted("pack", garbage=0.5)).work == 20
    assert (first.counts["freed_objects"], second.counts["freed_objects"]) == (10, 20)


def pack_failure(storage: FakeStorage) -> str:
    return failure_on(storage, "pack", 1, revisions=3, garbage=0.5)


def test_pack_fails_if_garbage_is_left(clock: FakeClock) -> None:
    storage = packed(clock, lambda storage: None)
    storage.collects_garbage = False
    assert pack_failure(storage) == "10 of 10 objects that nothing refers to are still there"


def test_pack_fails_if_garbage_is_gone_that_the_storage_should_keep(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(monkeypatch, collects_garbage=False)
    assert pack_failure(packed(clock, lambda storage: None)).startswith(
        "10 of 10 objects that nothing refers to are gone, but the configuration tells"
    )


def test_pack_fails_if_some_garbage_is_left_by_a_storage_of_an_unknown_type(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(monkeypatch)

    def keep_one(storage: Any) -> None:
        storage._data[kept["oid"]] = kept["revisions"]

    storage = packed(clock, keep_one)
    kept: dict[str, Any] = {}
    pack = storage.pack

    def remember(t: float, referencesf: Any) -> None:
        kept["oid"] = max(storage._data)
        kept["revisions"] = storage._data[kept["oid"]]
        pack(t, referencesf)

    storage.pack = remember  # type: ignore[method-assign]
    assert pack_failure(storage) == "1 of 10 objects that nothing refers to are still there"


def test_a_pack_that_collects_no_garbage_finds_the_same_garbage_every_time(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(monkeypatch, collects_garbage=False)
    storage = packed(clock, lambda storage: None)
    storage.collects_garbage = False
    chosen, params = benchmarks()["pack"], parameters(garbage=0.5)
    with plan(chosen, storage, params, clock).started() as crew:
        crew.measure(1)
        objects = len(storage)
        sample = crew.measure(3)
        crew.verify()
    assert len(storage) == objects
    assert sample.counts["freed_objects"] == 0


def test_pack_fails_if_a_reachable_object_is_removed(clock: FakeClock) -> None:
    storage = packed(clock, lambda storage: storage._data.pop(storage.oid_of(4)))
    assert "was removed, but others refer to it" in pack_failure(storage)


def test_pack_fails_if_an_old_revision_is_left(clock: FakeClock) -> None:
    def restore(storage: Any) -> None:
        oid = storage.oid_of(4)
        storage._data[oid][storage.before[oid]] = b"former"

    storage = packed(clock, restore)
    pack = storage.pack

    def remember(t: float, referencesf: Any) -> None:
        storage.before = {oid: sorted(tids)[-2:][0] for oid, tids in storage._data.items()}
        pack(t, referencesf)

    storage.pack = remember  # type: ignore[method-assign]
    assert "the former revision of object " in pack_failure(storage)


def test_pack_fails_if_the_newest_revision_is_lost(clock: FakeClock) -> None:
    def change(storage: Any) -> None:
        revisions = storage._data[storage.oid_of(4)]
        revisions[revisions.maxKey()] = b"another"

    assert "differs from what was written last" in pack_failure(packed(clock, change))


def test_a_pack_that_only_finds_out_what_to_remove_leaves_everything(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(monkeypatch, collects_garbage=False)
    storage = packed(clock, lambda storage: None)
    storage.pack = lambda t, referencesf: None  # type: ignore[method-assign]
    assert "the former revision of object " in pack_failure(storage)
    tell(monkeypatch, collects_garbage=False, only_prepacks=True)
    params = parameters(revisions=3, garbage=0.5)
    (sample,) = measure(benchmarks()["pack"], storage, params, clock)
    assert "freed_objects" not in sample.counts


def test_pack_measures_a_filestorage_and_what_it_frees(tmp_path: Path) -> None:
    sample = measure_files(tmp_path, "pack", 2, objects=50, revisions=3, garbage=0.5)
    assert sample.counts["freed_objects"] == 2 * 50
    # Two former revisions of each object, and an object of garbage for each.
    assert sample.counts["freed_bytes"] > 2 * 50 * 3 * 300


def test_a_database_is_vacuumed_after_the_pack_and_before_its_size_is_asked_for(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = iter([DiskSize(900), DiskSize(200)])
    calls: list[str] = []

    def disk_size(self: Database, *, blobs: bool) -> DiskSize:
        calls.append("size")
        return next(sizes)

    def vacuum(self: Database) -> bool:
        calls.append("vacuum")
        return True

    monkeypatch.setattr(Database, "vacuum", vacuum)
    monkeypatch.setattr(Database, "disk_size", disk_size)
    storage = packed(clock, lambda storage: calls.append("pack"))
    (sample,) = measure(benchmarks()["pack"], storage, parameters(), clock, [1])
    assert calls == ["size", "pack", "vacuum", "size"]
    assert sample.value == PACK
    assert (sample.counts["freed_bytes"], sample.counts["vacuums"]) == (700, 1)


def test_pack_compares_the_files_of_blobs(tmp_path: Path) -> None:
    sample = measure_files(tmp_path, "pack", 2, blobs=True, garbage=0.5)
    assert sample.counts["freed_objects"] == 20


def test_pack_refuses_several_clients_and_objects_that_it_does_not_count(tmp_path: Path) -> None:
    assert benchmarks()["pack"].refusal(StorageInfo(), parameters(size=2)) == (
        "one client at a time can pack a database; use -c 1"
    )
    measure_files(tmp_path, "pack", 1, objects=50)
    assert failure_on_files(tmp_path, "pack", lambda storage: None) == (
        "the database already has 50 objects from an earlier --min-objects, and all of them would "
        "be packed; say --min-objects 50"
    )


INDEX = "Data.fs.index"


def test_open_opens_the_db_on_the_clock_and_reads_off_the_clock(storage: FakeStorage) -> None:
    (sample,) = measure(benchmarks()["open"], storage, parameters(), storage.clock, [2])
    # The root, in a transaction of the DB; the mapping once to learn its class and once to load it.
    assert sample.value == 2 * (SYNC + 2 * POLL) + 3 * LOAD
    assert sample.counts["loads"] == 2 * 11


@pytest.mark.parametrize(("name", "there"), [("open", True), ("open_cold", False)])
def test_a_filestorage_is_opened_with_its_index_or_without(
    name: str, there: bool, tmp_path: Path
) -> None:
    indices: list[bool] = []
    sample = measure_files(
        tmp_path, name, 3, before_opening=lambda: indices.append((tmp_path / INDEX).exists())
    )
    assert sample.iterations == 3
    assert indices[-3:] == [there] * 3


def test_open_fails_if_closing_a_filestorage_leaves_no_index(tmp_path: Path) -> None:
    def lose_index(storage: Any) -> None:
        storage._save_index = lambda: Path(f"{storage.getName()}.index").unlink(missing_ok=True)

    assert failure_on_files(tmp_path, "open", lose_index) == (
        "closing the DB left no Data.fs.index"
    )


def test_open_fails_if_an_object_is_not_as_it_was_written(storage: FakeStorage) -> None:
    content = payload(parameters(), 0).contents(1, 0, 3)[0]
    storage.corrupt = lambda oid, data: data.replace(content, bytes(len(content)))
    assert "1 of 10 objects differ from" in failure_on(storage, "open", 1)


def test_open_cold_is_open_if_nothing_is_kept_for_the_next_opening(storage: FakeStorage) -> None:
    assert failure_on(storage, "open_cold").startswith("it has neither an index nor a persistent")


def test_open_stale_opens_with_an_index_from_before_the_changes(tmp_path: Path) -> None:
    ends: list[int] = []

    def note_end(storage: Any) -> None:
        with (tmp_path / INDEX).open("rb") as file:
            ends.append(int(pickle.load(file)))

    sample = measure_files(tmp_path, "open_stale", 3, note_end)
    assert sample.counts["loads"] == 3 * 11
    # The one that changes something has no index; the one that is measured has an older one.
    assert len(ends) >= 3
    assert max(ends) < (tmp_path / "Data.fs").stat().st_size


def test_open_stale_fails_if_what_has_changed_is_not_noticed(tmp_path: Path) -> None:
    openings = itertools.count()

    def serve_former(storage: Any) -> None:
        load = storage.loadBefore

        def load_former(oid: bytes, tid: bytes) -> Any:
            newest = load(oid, tid)
            former = load(oid, newest[1]) if b"Item" in newest[0] else None
            return (*former[:2], None) if former else newest

        # To prepare, by the client, and by the one that changes something; then it is measured.
        if next(openings) == 3:
            storage.loadBefore = load_former

    assert "10 of 10 objects differ from" in failure_on_files(tmp_path, "open_stale", serve_former)


@pytest.mark.parametrize("blobs", [False, True])
def test_open_stale_changes_another_third_each_time(blobs: bool, tmp_path: Path) -> None:
    sample = measure_files(tmp_path, "open_stale", 5, blobs=blobs)
    assert sample.iterations == 5


@pytest.mark.parametrize("objects", [1, 2])
def test_open_stale_changes_one_of_few_objects_each_time(objects: int, tmp_path: Path) -> None:
    written = []
    for loops in (2, 6):
        place = tmp_path / str(loops)
        place.mkdir()
        measure_files(place, "open_stale", loops, objects=objects)
        with Database(of_files(place)) as database, closing(database.db.storage.iterator()) as all_:
            written.append(len(list(all_)))
    assert written[1] - written[0] == 4


def test_open_stale_is_open_if_nothing_is_kept_for_the_next_opening(storage: FakeStorage) -> None:
    assert failure_on(storage, "open_stale").startswith("it has neither an index nor a persistent")


def test_open_counts_the_loads_that_a_persistent_cache_serves(
    storage: FakeStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    uses = itertools.cycle([CacheUse(1, 0), CacheUse(9, 2)])
    monkeypatch.setattr(Database, "cache_use", lambda self: next(uses))
    (sample,) = measure(benchmarks()["open"], storage, parameters(), storage.clock)
    assert sample.counts["storage_cache_hits"] == 8
    assert (sample.counts["cacheable_loads"], sample.counts["openings_without_hits"]) == (10, 0)


def test_open_is_not_supported_if_clients_share_the_db_or_closing_it_loses_the_data() -> None:
    refusal = benchmarks()["open"].refusal
    assert refusal(StorageInfo(), parameters(size=2, shared=True)) == (
        "clients that share a DB open it once; use -c 1 or --threads unique"
    )
    assert refusal(StorageInfo(), parameters(size=2)) is None
    lost = StorageInfo("MappingStorage", sharing=Sharing.VOLATILE)
    assert refusal(lost, parameters()) == "MappingStorage: closing it loses its data"


def of_files(place: Path) -> Storage:
    keys = f"path {place}/Data.fs\nblob-dir {place}/blobs\n"
    return Storage(f"<zodb>\n<filestorage>\n{keys}</filestorage>\n</zodb>\n")


def copied(place: Path, *, loops: int = 2, **more: Any) -> Sample:
    """Copy into a FileStorage in *place*, and have it verified."""
    wanted = fitted("copy", shared=True, **more)
    plan_of_copy = CrewPlan(benchmarks()["copy"], wanted, lambda: Database(of_files(place)))
    with plan_of_copy.started() as crew:
        sample = crew.measure(loops)
        crew.verify()
    return sample


@pytest.mark.parametrize("blobs", [False, True])
def test_copy_copies_every_revision_into_an_emptied_database(blobs: bool, tmp_path: Path) -> None:
    sample = copied(tmp_path, objects=120, revisions=2, blobs=blobs)
    assert sample.counts["records"] == 2 * 240
    assert benchmarks()["copy"].shape(fitted("copy", objects=120, revisions=2)).work == 240
    with Database(of_files(tmp_path)) as database:
        assert database.others() == []
        assert len(database.db.storage) == 1  # the root: what was copied is destroyed again


def copying(
    monkeypatch: pytest.MonkeyPatch, restored: Callable[[int, bytes], bytes | None]
) -> None:
    """Let FileStorages restore what *restored* returns for a record's number and data."""
    restore, numbers = FileStorage.restore, itertools.count()

    def faulty(storage: Any, oid: bytes, serial: bytes, data: bytes, *more: Any) -> None:
        state = restored(next(numbers), data)
        if state is not None or data is None:
            restore(storage, oid, serial, state, *more)

    monkeypatch.setattr(FileStorage, "restore", faulty)


@pytest.mark.parametrize("number", [3, 27])
def test_copy_fails_if_a_record_is_left_out(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copying(monkeypatch, lambda at, data: None if at == number else data)
    with pytest.raises(Failed, match=r"revision \w+ of object \w+ was (not copied|copied with)"):
        copied(tmp_path, loops=1, objects=20, revisions=2)


@pytest.mark.parametrize("raises", [False, True])
def test_copy_fails_if_a_former_revision_cannot_be_loaded(
    raises: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = FileStorage.loadBefore

    def load_before(storage: Any, oid: bytes, tid: bytes) -> Any:
        loaded = load(storage, oid, tid)
        if raises and loaded is None:  # as ZEO does
            raise POSKeyError(oid)
        return loaded

    monkeypatch.setattr(FileStorage, "loadBefore", load_before)
    monkeypatch.setattr(FileStorage, "prefetch", lambda *_: None, raising=False)
    copying(monkeypatch, lambda at, data: None if at == 3 else data)
    with pytest.raises(Failed, match=r"^revision \w+ of object \w+ was not copied$"):
        copied(tmp_path, loops=1, objects=20, revisions=2)


@pytest.mark.parametrize("number", [3, 27])
def test_copy_fails_if_a_record_is_changed(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = pickled(Item(b"something else"))
    copying(monkeypatch, lambda at, data: other if at == number else data)
    with pytest.raises(Failed, match=r"revision \w+ of object \w+ was copied with different data"):
        copied(tmp_path, loops=1, objects=20, revisions=2)


def test_copy_fails_if_the_file_of_a_blob_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restore = FileStorage.restoreBlob

    def truncated(
        storage: Any, oid: bytes, serial: bytes, data: bytes, file: str, *more: Any
    ) -> None:
        Path(file).write_bytes(b"")
        restore(storage, oid, serial, data, file, *more)

    monkeypatch.setattr(FileStorage, "restoreBlob", truncated)
    with pytest.raises(
        Failed, match=r"the blob of revision \w+ of object \w+ was copied with different data"
    ):
        copied(tmp_path, loops=1, objects=5, revisions=1, blobs=True)


def test_copy_destroys_nothing_that_others_have_made(tmp_path: Path) -> None:
    with Database(of_files(tmp_path)) as database, database.db.transaction() as connection:
        connection.root()["books"] = "Moby Dick"
    before = (tmp_path / "Data.fs").read_bytes()
    with pytest.raises(Failed, match="the database is not empty: its root contains 'books'"):
        copied(tmp_path)
    assert (tmp_path / "Data.fs").read_bytes() == before


def users(place: Path, *, blobs: bool = False) -> CopiedData:
    """Make a database of an application: transactions of several sizes, a creation undone."""
    place.mkdir()
    keys = {"blob_dir": str(place / "blobs")} if blobs else {}
    database: Any = ZODB.DB(FileStorage(str(place / "App.fs"), **keys))
    for number in range(20):
        with database.transaction() as connection:
            for name in range(number % 7 + 1):
                connection.root()[name] = Item(b"%d of %d" % (name, number))
            if blobs:
                connection.root()["file"] = Blob(b"content %d" % number)
    with database.transaction() as connection:
        connection.root()["undone"] = Item(b"never was")
    database.undo(database.undoLog(0, 1)[0]["id"], transaction.get())
    transaction.commit()
    database.close()
    return facts_of(place / "App.fs", place / "blobs" if blobs else None)


def state_of(place: Path) -> dict[Path, tuple[bytes, int]]:
    """Return the content and the time of the last change of each file."""
    files = (path for path in place.rglob("*") if path.is_file())
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


@pytest.mark.parametrize("blobs", [False, True])
def test_copy_copies_a_database_of_the_users_and_leaves_it_alone(
    blobs: bool, tmp_path: Path
) -> None:
    data = users(tmp_path / "users", blobs=blobs)
    (tmp_path / "users" / "App.fs.index").unlink()
    before = state_of(tmp_path / "users")
    sample = copied(tmp_path, copied=data)
    assert sample.counts["records"] == 2 * data.records
    wanted = fitted("copy", copied=data, objects=1, revisions=9)
    assert benchmarks()["copy"].shape(wanted).work == data.records
    assert (wanted.objects, wanted.revisions, wanted.blobs) == (data.objects, 0, blobs)
    assert state_of(tmp_path / "users") == before


@pytest.mark.parametrize("number", [0, 9, 30])
def test_copy_fails_if_a_record_of_the_users_is_changed(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = users(tmp_path / "users")
    other = pickled(Item(b"something else"))
    copying(monkeypatch, lambda at, data: other if at == number else data)
    with pytest.raises(Failed, match=r"revision \w+ of object \w+ was copied with different data"):
        copied(tmp_path, loops=1, copied=data)


def test_copy_fails_if_an_object_comes_back_whose_creation_was_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = users(tmp_path / "users")
    other = pickled(Item(b"never was"))
    copying(monkeypatch, lambda at, data: data or other)
    with pytest.raises(Failed, match="was copied although its creation was undone"):
        copied(tmp_path, loops=1, copied=data)


def test_copy_fails_if_the_users_database_changes_meanwhile(tmp_path: Path) -> None:
    data = users(tmp_path / "users")
    with ZODB.DB(str(tmp_path / "users" / "App.fs")).transaction() as connection:
        connection.root()["more"] = 1
    with pytest.raises(Failed, match=r"App\.fs has changed since the run began"):
        copied(tmp_path, copied=data)


def test_blobs_of_the_users_database_need_their_directory(tmp_path: Path) -> None:
    users(tmp_path / "users", blobs=True)
    path = tmp_path / "users" / "App.fs"
    with pytest.raises(CheckFailed, match=f"name the directory of their files: {path},DIRECTORY"):
        facts_of(path, None)
    with pytest.raises(CheckFailed, match="nowhere is not a directory"):
        facts_of(path, Path("nowhere"))


def test_contenders_share_the_filestorage_that_is_made_for_a_copy(tmp_path: Path) -> None:
    shared = CopiedData(directory=str(tmp_path / "shared"))
    (tmp_path / "shared").mkdir()
    copied(tmp_path, objects=120, revisions=2, copied=shared)
    (made,) = (tmp_path / "shared").glob("*/Data.fs")
    before = made.stat().st_mtime_ns
    copied(tmp_path, objects=120, revisions=2, copied=shared)
    assert made.stat().st_mtime_ns == before
    copied(tmp_path, objects=60, revisions=2, copied=shared)
    assert len(list((tmp_path / "shared").glob("*/Data.fs"))) == 2


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("undo", "RelStorage has no undo as configured here"),
        ("history", "RelStorage keeps no old revisions as configured here"),
        ("load_before", "RelStorage keeps no old revisions as configured here"),
    ],
)
def test_a_storage_without_history_is_refused(name: str, reason: str) -> None:
    info = StorageInfo("RelStorage", keeps_history=False, undoes=False)
    assert benchmarks()[name].refusal(info, parameters()) == reason
    assert benchmarks()[name].refusal(StorageInfo(), parameters()) is None


def test_several_clients_do_not_undo_if_the_storage_refuses_that() -> None:
    info = StorageInfo("RelStorage", undo_flaw="one at a time")
    assert benchmarks()["undo"].refusal(info, parameters(size=2)) == "one at a time; use -c 1"
    assert benchmarks()["undo"].refusal(info, parameters()) is None


def test_only_benchmarks_of_old_revisions_have_a_number_of_them() -> None:
    assert fitted("history", revisions=5).revisions == 5
    assert fitted("load_before", revisions=1).revisions == 2
    assert {fitted(name, revisions=5).revisions for name in ("add", "tpc", "undo", "replay")} == {0}
