"""Facts about an open database."""

from __future__ import annotations

import sqlite3
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
from transaction import TransactionManager
from ZODB.blob import Blob
from ZODB.MappingStorage import MappingStorage

from tests.fakes import parameters
from zodbshootout.client import storage_types as storages
from zodbshootout.client.client import Client
from zodbshootout.client.database import Database
from zodbshootout.client.preparation import inspect
from zodbshootout.model.outcome import CheckFailed, Unsupported
from zodbshootout.model.specification import Storage
from zodbshootout.model.storage_facts import (
    OPERATING_SYSTEM,
    PICKLE_CACHE,
    Durability,
    Sharing,
    StorageInfo,
)

OURS = {name: version(name) for name in ("ZODB", "persistent", "BTrees", "transaction")}
FS = "ZODB.FileStorage.FileStorage.FileStorage"
MAPPING = "ZODB.MappingStorage.MappingStorage"
DEMO = "ZODB.DemoStorage.DemoStorage"


@pytest.mark.parametrize("call", ["begin", "abort"])
def test_a_connection_is_closed_even_if_its_transaction_cannot_begin_or_end(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: TransactionManager) -> None:
        raise OSError("the server is gone")

    with opened("<mappingstorage/>\n", Path()) as database:
        client = Client(0, parameters(), database)
        client.connect()
        monkeypatch.setattr(TransactionManager, call, fail)
        with pytest.raises(OSError, match="gone"), database.connected():
            pass
        client.start_over()
        monkeypatch.undo()
        assert client.connection is None
        assert [one["opened"] for one in database.db.connectionDebugInfo()] == [None] * 2


def opened(storage: str, place: Path, imports: str = "") -> Database:
    section = f"{imports}<zodb x>\n{storage}</zodb>\n"
    return Database(Storage(section, names={"here": str(place)}))


FILESTORAGE = "<filestorage>\npath $here/x.fs\nblob-dir $here/blobs\n</filestorage>\n"
CHANGES = "<filestorage changes>\npath $here/changes.fs\n</filestorage>\n"
READ_ONLY = FILESTORAGE.replace("</", "read-only true\n</")
OF_DEMO = "DemoStorage: its base stays as it is"
INFO = {
    FILESTORAGE: StorageInfo(
        "FileStorage", Sharing.EXCLUSIVE, (Durability.SYNCED, ""), keeps_history=True, undoes=True,
        prefetches=False, stores_blobs=True, collects_garbage=True,
        caches_left=(OPERATING_SYSTEM,), storage_classes=(FS,), versions=OURS,
    ),
    "<mappingstorage/>\n": StorageInfo(
        "MappingStorage", Sharing.VOLATILE, (Durability.IN_MEMORY, ""),
        keeps_history=True, undoes=False,
        prefetches=False, stores_blobs=False, collects_garbage=True,
        storage_classes=(MAPPING,), versions=OURS,
    ),
    "<demostorage/>\n": StorageInfo(
        "DemoStorage", Sharing.VOLATILE, (Durability.IN_MEMORY, ""), zap_obstacle=OF_DEMO,
        keeps_history=True, undoes=False,
        prefetches=False, stores_blobs=True,
        storage_classes=(DEMO, MAPPING, MAPPING), versions=OURS,
    ),
    f"<demostorage>\n{CHANGES}{FILESTORAGE}</demostorage>\n": StorageInfo(
        "DemoStorage", Sharing.EXCLUSIVE, (Durability.SYNCED, ""), zap_obstacle=OF_DEMO,
        keeps_history=True, undoes=True,
        prefetches=False, stores_blobs=False,
        pack_flaw="DemoStorage cannot pack changes that are not in memory",
        caches_left=(OPERATING_SYSTEM,), storage_classes=(DEMO, FS, FS),
        versions=OURS,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("storage", "info"), INFO.items(), ids=["file", "memory", "demo", "kept"])
def test_an_open_database_has_the_facts_of_zodbs_own_storages(
    storage: str, info: StorageInfo, tmp_path: Path
) -> None:
    with opened(storage, tmp_path) as database:
        assert replace(database.info(), python={}) == info
        assert database.own_caches() == (PICKLE_CACHE,)
        assert database.facts.knows_caches


def test_an_open_database_has_the_facts_of_relstorage(tmp_path: Path) -> None:
    section = (
        "<relstorage>\nblob-dir $here/b\n<sqlite3>\ndata-dir $here/s\n</sqlite3>\n</relstorage>\n"
    )
    with opened(section, tmp_path, "%import relstorage\n") as database:
        info = replace(database.info(), python={})
        assert database.own_caches() == (PICKLE_CACHE, "RelStorage cache")
        assert database.facts.knows_caches
    leaky = version("RelStorage") == "4.3.0"
    assert ("commits what a refused transaction" in str(info.retry_flaw)) == leaky
    assert info == StorageInfo(
        "RelStorage", Sharing.CONCURRENT, (Durability.MAY_LOSE, "synchronous NORMAL"),
        keeps_history=True, undoes=True,
        prefetches=True, stores_blobs=True, collects_garbage=True,
        retry_flaw=info.retry_flaw,
        caches_left=("SQLite page cache", OPERATING_SYSTEM),
        storage_classes=("relstorage.storage.RelStorage",), driver="sqlite3",
        versions={**OURS, "RelStorage": version("RelStorage"), "SQLite": sqlite3.sqlite_version},
    )  # fmt: skip


@pytest.mark.parametrize("wrapping", ["", "<blobstorage>\nblob-dir $here/x\n{}</blobstorage>\n"])
def test_a_temporary_storage_is_in_memory(wrapping: str, tmp_path: Path) -> None:
    pytest.importorskip("tempstorage")
    storage = "<temporarystorage>\n</temporarystorage>\n"
    section = wrapping.format(storage) or storage
    with opened(section, tmp_path, "%import tempstorage\n") as database:
        info = database.info()
    assert (info.promise, info.sharing) == ((Durability.IN_MEMORY, ""), Sharing.VOLATILE)


def test_limits_are_those_of_every_storage_in_the_stack(tmp_path: Path) -> None:
    section = (
        "%import relstorage\n<zodb x>\n<demostorage>\n<relstorage base>\n"
        "<sqlite3>\ndata-dir $here/s\n</sqlite3>\n</relstorage>\n</demostorage>\n</zodb>\n"
    )
    (limit,) = inspect(Storage(section, names={"here": str(tmp_path)})).limits
    assert limit.reason.startswith("DemoStorage uses one RelStorage in all threads")


@pytest.mark.parametrize("exists", [False, True])
def test_an_empty_database_that_is_read_only_has_to_be_written_to_first(
    exists: bool, tmp_path: Path
) -> None:
    if exists:
        (tmp_path / "x.fs").write_bytes(b"FS30")
    section = f"<zodb>\n{READ_ONLY}</zodb>\n"
    with pytest.raises(Unsupported, match="its database is empty, and it is read-only; run the"):
        inspect(Storage(section, names={"here": str(tmp_path)}))


SQL_SECTION = (
    "%import relstorage\n<zodb>\n<relstorage>\n<sqlite3>\ndata-dir $here/s\n</sqlite3>\n"
    "</relstorage>\n</zodb>\n"
)


def test_sql_is_run_once_the_tables_are_made(tmp_path: Path) -> None:
    sql = ("CREATE TABLE copy AS SELECT * FROM object_state", "INSERT INTO copy(zoid) VALUES (7)")
    inspect(Storage(SQL_SECTION, names={"here": str(tmp_path)}, sql=sql))
    with sqlite3.connect(tmp_path / "s" / "main.sqlite3") as connection:
        assert (7,) in connection.execute("SELECT zoid FROM copy").fetchall()


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        (SQL_SECTION, 'sql: OperationalError: near "nothing": syntax error'),
        ("<zodb>\n<mappingstorage/>\n</zodb>\n", "sql: MappingStorage has no SQL database"),
    ],
)
def test_sql_that_fails_is_named(section: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(CheckFailed) as error:
        inspect(Storage(section, names={"here": str(tmp_path)}, sql=("ALTER nothing",)))
    assert str(error.value) == reason


def test_a_database_is_read_only_if_the_storage_for_its_changes_is(tmp_path: Path) -> None:
    with opened(FILESTORAGE, tmp_path) as database:
        assert not database.facts.read_only
    with opened(READ_ONLY, tmp_path) as database:
        assert database.facts.read_only
    with opened(f"<demostorage>\n{READ_ONLY}</demostorage>\n", tmp_path) as database:
        assert not database.facts.read_only


def test_a_database_of_an_unknown_storage_knows_no_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    section = f"<foreign>\n{FILESTORAGE}</foreign>\n"
    with opened(section, tmp_path, "%import foreign\n") as database:
        assert not database.facts.knows_caches
        unknown, *_ = database.info().caches_left
        assert unknown == "unknown: foreign.ForeignStorage"
        assert database.info().promise == (Durability.UNKNOWN, "ForeignStorage")


@pytest.mark.parametrize(
    ("section", "is_unclear"),
    [("<foreign-memory/>\n", True), (f"<foreign>\n{FILESTORAGE}</foreign>\n", False)],
)
def test_the_serial_of_an_empty_root_is_known_if_it_is_unclear_who_sees_the_data(
    section: str, is_unclear: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    monkeypatch.setattr("foreign.MemoryStorage._kept", MappingStorage())
    with opened(section, tmp_path, "%import foreign\n") as database:
        assert bool(database.info().new_root) is is_unclear
        assert database.info().new_root == database.info().new_root
        with database.db.transaction() as connection:
            connection.root()["theirs"] = 1
        assert not database.info().new_root


def test_a_reopened_database_has_another_db(tmp_path: Path) -> None:
    with opened(FILESTORAGE, tmp_path) as database:
        before = database.db
        database.reopen()
        assert database.db is not before


THIRD_PARTY = """
from zodbshootout.model.storage_facts import Durability, Sharing
from zodbshootout.client.storage_types import StorageType

class ForeignType(StorageType):
    storage_class = "foreign.ForeignStorage"
    section_classes = ("foreign.ForeignSection",)
    sharing = Sharing.VOLATILE
    settled = []

    def caches_left(self):
        return ()

    def own_caches(self):
        return ("foreign cache",)

    def promise(self):
        return (Durability.MAY_LOSE, "foreign")

    @classmethod
    def settle(cls, section):
        cls.settled.append(section)
"""


def test_another_package_can_register_a_storage_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = tmp_path / "more-1.dist-info"
    described.mkdir()
    (tmp_path / "knows_foreign.py").write_text(THIRD_PARTY)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: more\nVersion: 1\n")
    entry_points = f"[{storages.ENTRY_POINTS}]\nforeign = knows_foreign:ForeignType\n"
    (described / "entry_points.txt").write_text(entry_points)
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(storages, "storage_types", storages.storage_types.__wrapped__)
    with opened(f"<foreign>\n{FILESTORAGE}</foreign>\n", tmp_path, "%import foreign\n") as database:
        assert database.facts.knows_caches
        assert database.info().caches_left == (OPERATING_SYSTEM,)
        assert database.own_caches() == (PICKLE_CACHE, "foreign cache")
        assert database.info().promise == (Durability.MAY_LOSE, "foreign")
        (section,) = sys.modules["knows_foreign"].ForeignType.settled
        assert type(section).__name__ == "ForeignSection"
        assert storages.type_of_section(section).__name__ == "ForeignType"
        assert database.facts.sharing is Sharing.VOLATILE


def test_forgetting_blobs_removes_them_from_the_blob_cache(tmp_path: Path) -> None:
    section = (
        "<relstorage>\nblob-dir $here/b\n<sqlite3>\ndata-dir $here/s\n</sqlite3>\n</relstorage>\n"
    )
    with opened(section, tmp_path, "%import relstorage\n") as database:
        with database.db.transaction() as connection:
            connection.root()["blob"] = blob = Blob(b"treasure")
        assert list((tmp_path / "b").rglob("*.blob"))
        forgotten = database.forget_blobs([(blob._p_oid, database.db.storage.load(blob._p_oid)[1])])
        assert forgotten == ("RelStorage blob cache",)
        assert not list((tmp_path / "b").rglob("*.blob"))
        assert database.forget_blobs([]) == ()


@pytest.mark.slow
def test_trap_3_emptying_a_persistent_cache_does_not_read_its_files_again(tmp_path: Path) -> None:
    section = "<relstorage>\n<sqlite3>\ndata-dir $here/s\n</sqlite3>\n</relstorage>\n"
    for written in (False, True):
        with opened(section, tmp_path, "%import relstorage\n") as database:
            cache = database.db.storage._cache
            # RelStorage ignores cache-local-dir with SQLite; others would need a server.
            cache.options.cache_local_dir = str(tmp_path)
            with database.db.transaction() as connection:
                connection.root()
            cache.clear(load_persistent=True)
            assert bool(cache.local_client) is written
            database.empty_caches()
            assert not cache.local_client
            with database.db.transaction() as connection:
                connection.root()


def test_the_first_blob_adds_the_operating_system_to_the_caches_left(tmp_path: Path) -> None:
    with opened("<demostorage/>\n", tmp_path) as database:
        assert database.info().caches_left == ()
        with database.db.transaction() as connection:
            connection.root()["blob"] = Blob(b"treasure")
        assert database.info().caches_left == (OPERATING_SYSTEM,)
