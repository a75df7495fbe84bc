"""Wrappers hide no facts of the storages inside, which are real and opened in this process."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from persistent import Persistent
from transaction import TransactionManager
from ZODB.POSException import StateLoadError
from ZODB.utils import u64

from tests.client.storage_types.sections import FILE, FS, MAPPING, blobs, demo, in_, zlib
from zodbshootout.client.database import Database, NotZapped
from zodbshootout.client.storage_types import StorageType
from zodbshootout.config.configuration import parse
from zodbshootout.config.source import Source
from zodbshootout.contenders.contender import Contender, contenders_of
from zodbshootout.model.storage_facts import CacheUse, Sharing

IMPORTS = "%import relstorage\n%import zc.zlibstorage\n%import foreign\n"
CHANGES = FILE.replace("{name}", "changes")
SQLITE = "<relstorage>\n<sqlite3>\ndata-dir $scratch/s\n</sqlite3>\n</relstorage>\n"
FS_CLASS = "ZODB.FileStorage.FileStorage.FileStorage"
MAPPING_CLASS = "ZODB.MappingStorage.MappingStorage"


class Item(Persistent):  # type: ignore[misc]
    content = b""


class Tally(Persistent):  # type: ignore[misc]
    count = 0

    def _p_resolveConflict(self, old: Any, saved: Any, new: Any) -> Any:  # noqa: N802
        return {**new, "count": saved["count"] + new["count"] - old.get("count", 0)}


@pytest.fixture(autouse=True)
def _foreign_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))


def contender(storage: str, place: Path) -> Contender:
    source = Source(place / "x.conf", f"{IMPORTS}<zodb x>\n{storage}</zodb>\n")
    (only,) = contenders_of(parse(source, {"scratch": str(place)}))
    return only


@dataclass(frozen=True)
class Stack:
    """The configuration of a storage and the facts that the harness is expected to know."""

    storage: str
    name: str
    classes: str
    sharing: Sharing
    left: tuple[str, ...]
    """The caches that emptying does not reach."""
    prefetches: bool = False
    blobs: bool = False
    cleared: tuple[str, ...] = ()
    """The record caches that emptying reaches."""


SYSTEM = ("operating system",)
OF_SQLITE = ("SQLite page cache", "operating system")
RELSTORAGE = "relstorage.storage.RelStorage"
ZLIB_CLASS = "zc.zlibstorage.ZlibStorage"
DEMO_CLASS = "ZODB.DemoStorage.DemoStorage"
BLOB_CLASS = "ZODB.blob.BlobStorage"

STACKS = [
    Stack(MAPPING, "MappingStorage", MAPPING_CLASS, Sharing.VOLATILE, ()),
    Stack(FS, "FileStorage", FS_CLASS, Sharing.EXCLUSIVE, SYSTEM),
    Stack(zlib(FS), "ZlibStorage over FileStorage", f"{ZLIB_CLASS} over {FS_CLASS}",
          Sharing.EXCLUSIVE, SYSTEM),
    Stack(zlib(SQLITE), "ZlibStorage over RelStorage", f"{ZLIB_CLASS} over {RELSTORAGE}",
          Sharing.CONCURRENT, OF_SQLITE, prefetches=True, cleared=("RelStorage cache",)),
    Stack(in_("serverzlibstorage", FS), "ServerZlibStorage over FileStorage",
          f"zc.zlibstorage.ServerZlibStorage over {FS_CLASS}", Sharing.EXCLUSIVE, SYSTEM),
    Stack(blobs(FS), "BlobStorage over FileStorage", f"{BLOB_CLASS} over {FS_CLASS}",
          Sharing.EXCLUSIVE, SYSTEM, blobs=True),
    Stack(blobs(MAPPING), "BlobStorage over MappingStorage", f"{BLOB_CLASS} over {MAPPING_CLASS}",
          Sharing.VOLATILE, SYSTEM, blobs=True),
    Stack(zlib(blobs(FS)), "ZlibStorage over BlobStorage over FileStorage",
          f"{ZLIB_CLASS} over {BLOB_CLASS} over {FS_CLASS}", Sharing.EXCLUSIVE, SYSTEM, blobs=True),
    Stack(blobs(zlib(SQLITE)), "BlobStorage over ZlibStorage over RelStorage",
          f"{BLOB_CLASS} over {ZLIB_CLASS} over {RELSTORAGE}", Sharing.CONCURRENT,
          ("operating system", "SQLite page cache"), prefetches=True,
          cleared=("RelStorage cache",)),
    Stack(demo(), "DemoStorage", f"{DEMO_CLASS} over {MAPPING_CLASS} over {MAPPING_CLASS}",
          Sharing.VOLATILE, (), blobs=True),
    Stack(demo(FS), "DemoStorage", f"{DEMO_CLASS} over {MAPPING_CLASS} over {FS_CLASS}",
          Sharing.VOLATILE, SYSTEM, blobs=True),
    Stack(demo(zlib(SQLITE)), "DemoStorage",
          f"{DEMO_CLASS} over {MAPPING_CLASS} over {ZLIB_CLASS} over {RELSTORAGE}",
          Sharing.VOLATILE, OF_SQLITE, blobs=True, cleared=("RelStorage cache",)),
    Stack(demo(MAPPING, CHANGES), "DemoStorage",
          f"{DEMO_CLASS} over {FS_CLASS} over {MAPPING_CLASS}", Sharing.EXCLUSIVE, SYSTEM),
    Stack(in_("foreign", zlib(FS)), "ForeignStorage",
          f"foreign.ForeignStorage over {ZLIB_CLASS} over {FS_CLASS}", Sharing.EXCLUSIVE,
          ("unknown: foreign.ForeignStorage", "operating system")),
]  # fmt: skip


@pytest.mark.parametrize("stack", STACKS, ids=lambda stack: stack.classes.replace("ZODB.", ""))
def test_a_wrapped_storage_has_the_expected_facts(stack: Stack, tmp_path: Path) -> None:
    with Database(contender(stack.storage, tmp_path).storage) as database:
        info = database.info()
        assert " over ".join(info.storage_classes) == stack.classes
        assert info.storage_name == stack.name
        assert info.sharing is stack.sharing
        assert info.prefetches is stack.prefetches
        assert info.stores_blobs is stack.blobs
        assert database.own_caches() == ("pickle cache", *stack.cleared)
        assert info.caches_left == stack.left
        assert info.knows_caches == ("foreign" not in stack.classes)


@contextmanager
def filled(storage: str, place: Path) -> Iterator[Database]:
    with Database(contender(storage, place).storage) as database:
        with database.db.transaction() as connection:
            connection.root()["item"] = item = Item()
            item.content = b"a" * 1000
        yield database


def content(database: Database) -> bytes:
    with database.db.transaction() as connection:
        content: bytes = connection.root()["item"].content
    return content


@pytest.mark.parametrize("storage", [zlib(SQLITE), blobs(SQLITE), zlib(blobs(SQLITE))])
def test_trap_3_clearing_and_counting_reach_the_cache_of_a_wrapped_storage(
    storage: str, tmp_path: Path
) -> None:
    with filled(storage, tmp_path) as database:
        uses: list[CacheUse] = []
        for empty in (database.empty_caches, database.forget_objects):
            empty()
            before = database.cache_use()
            assert content(database) == b"a" * 1000
            now = database.cache_use()
            assert before is not None
            assert now is not None
            uses.append(now.since(before))
        cold, hot = uses
        assert cold.misses
        assert hot.hits > cold.hits
        assert hot.misses == 0


def test_trap_3_the_base_of_a_demostorage_is_cleared_even_if_it_is_empty(tmp_path: Path) -> None:
    with Database(contender(demo(SQLITE), tmp_path).storage) as database:
        assert len(database.db.storage.base) == 0
        assert "RelStorage cache" in database.empty_caches()


def test_the_base_of_a_demostorage_is_read_cold_after_clearing(tmp_path: Path) -> None:
    with filled(SQLITE, tmp_path):
        pass
    with Database(contender(demo(SQLITE), tmp_path).storage) as database:
        content(database)
        database.empty_caches()
        cache = database.db.storage.base._cache
        before = cache.stats()["hits"]
        assert content(database) == b"a" * 1000
        assert cache.stats()["hits"] == before


def test_zlibstorage_compresses_records_on_their_way_into_relstorage(tmp_path: Path) -> None:
    with filled(zlib(SQLITE), tmp_path) as database, database.db.transaction() as connection:
        item = connection.root()["item"]
        given = connection._storage.load(item._p_oid)[0]
        assert b"a" * 1000 in given
        with closing(sqlite3.connect(tmp_path / "s" / "main.sqlite3")) as file:
            rows = file.execute("SELECT state FROM object_state WHERE zoid = ?", [u64(item._p_oid)])
            ((stored,),) = rows
        assert stored[:2] == b".z"
        assert len(stored) < len(given) / 5


@dataclass
class Counting:
    """A fake storage, used only for its name and the storages that it wraps."""

    changes: Any = None
    base: Any = None

    def tpc_begin(self) -> None: ...


class CountingType(StorageType):
    storage_class = "tests.client.storage_types.test_wrappers.Counting"
    wraps = ("changes", "base")
    use: CacheUse | None = None

    def cache_use(self) -> CacheUse | None:
        return self.use


@pytest.mark.parametrize(
    ("own", "of_changes", "of_base", "expected"),
    [
        (None, CacheUse(3, 4), CacheUse(10, 20), CacheUse(13, 24)),
        (None, CacheUse(3, None), CacheUse(10, 20), CacheUse(13, None)),
        (None, None, CacheUse(10, 20), None),
        (None, CacheUse(3, 4), None, None),
        (CacheUse(1, 1), CacheUse(3, 4), None, CacheUse(1, 1)),
    ],
)
def test_cache_uses_are_added_only_if_both_inner_storages_know_theirs(
    own: CacheUse | None,
    of_changes: CacheUse | None,
    of_base: CacheUse | None,
    expected: CacheUse | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("zodbshootout.client.storage_types.storage_types", lambda: [CountingType])
    outermost = CountingType(Counting(Counting(), Counting()))
    changes, base = outermost.inner
    for storage, use in ((outermost, own), (changes, of_changes), (base, of_base)):
        monkeypatch.setattr(storage, "use", use)
    assert outermost.combined_cache_use() == expected


@pytest.mark.parametrize("storage", [SQLITE, zlib(SQLITE)])
def test_a_vacuum_of_sqlite_gives_back_what_was_removed(storage: str, tmp_path: Path) -> None:
    with filled(storage, tmp_path) as database:
        database.run_sql(["CREATE TABLE large AS SELECT randomblob(1000000)", "DROP TABLE large"])
        large = database.disk_size(blobs=False).data or 0
        assert database.vacuum()
        small = database.disk_size(blobs=False).data or 0
        assert content(database) == b"a" * 1000
    assert small < large - 900_000


def test_blobs_of_a_blobstorage_over_relstorage_are_not_supported(tmp_path: Path) -> None:
    with Database(contender(blobs(SQLITE), tmp_path).storage) as database:
        assert not database.facts.stores_blobs


@pytest.mark.parametrize("storage", [blobs(SQLITE), zlib(blobs(SQLITE)), demo(FS, CHANGES)])
def test_a_storage_with_a_pack_flaw_cannot_be_packed(storage: str, tmp_path: Path) -> None:
    with filled(storage, tmp_path) as database:
        assert "cannot pack" in str(database.facts.pack_flaw)
        with pytest.raises(AttributeError):
            database.pack()


@pytest.mark.parametrize(
    "storage", [FS, zlib(FS), zlib(SQLITE), zlib(blobs(FS)), blobs(MAPPING), demo(), demo(SQLITE)]
)
def test_other_wrapped_storages_can_be_packed(storage: str, tmp_path: Path) -> None:
    with filled(storage, tmp_path) as database:
        assert database.facts.pack_flaw is None
        database.pack()
        assert content(database) == b"a" * 1000


def test_serverzlibstorage_breaks_resolved_records_and_reports_the_flaw(tmp_path: Path) -> None:
    wrapped = contender(in_("serverzlibstorage", FS), tmp_path)
    with Database(wrapped.storage) as database:
        assert "ServerZlibStorage compresses resolved" in str(database.facts.resolution_flaw)
        with database.db.transaction() as connection:
            connection.root()["tally"] = tally = Tally()
            tally.content = b"a" * 1000
        managers = [TransactionManager(explicit=True) for _ in range(2)]
        connections = [database.db.open(manager) for manager in managers]
        for manager, connection in zip(managers, connections, strict=True):
            manager.begin()
            connection.root()["tally"].count += 1
        for manager, connection in zip(managers, connections, strict=True):
            manager.commit()
            connection.close()
        database.forget_objects()
        with database.db.transaction() as connection, pytest.raises(StateLoadError):
            connection.root()["tally"]._p_activate()


def test_a_demostorage_refuses_to_be_zapped_and_keeps_its_base(tmp_path: Path) -> None:
    with filled(demo(FS, CHANGES), tmp_path) as database:
        with pytest.raises(NotZapped, match="DemoStorage: its base stays as it is"):
            database.zap()
        assert content(database) == b"a" * 1000
