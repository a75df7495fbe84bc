"""What wraps a storage hides nothing of it: real storages, opened in this process."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from transaction import TransactionManager
from ZODB.DemoStorage import DemoStorage
from ZODB.POSException import StateLoadError
from ZODB.utils import u64

from zodbshootout.benchmarks.registry import benchmarks
from zodbshootout.config.configuration import Source, parse
from zodbshootout.contenders.contender import Contender, contenders_of
from zodbshootout.contenders.database import Database, NotZapped
from zodbshootout.contenders.layer import CacheUse, Layer, Sharing, sharing_of
from zodbshootout.data.records import Item, Tally
from zodbshootout.model import CrewShape, Parameters, Unit

IMPORTS = "%import relstorage\n%import zc.zlibstorage\n%import foreign\n"
FILE = "<filestorage {name}>\npath $scratch/{name}x.fs\n</filestorage>\n"
FS = FILE.replace(" {name}", "").replace("{name}", "")
CHANGES = FILE.replace("{name}", "changes")
SQLITE = "<relstorage>\n<sqlite3>\ndata-dir $scratch/s\n</sqlite3>\n</relstorage>\n"
MAPPING = "<mappingstorage/>\n"
PROCESSES = Parameters(CrewShape(2))
THREADS = Parameters(CrewShape(2, Unit.THREAD, shared=True))
FS_CLASS = "ZODB.FileStorage.FileStorage.FileStorage"
MAPPING_CLASS = "ZODB.MappingStorage.MappingStorage"


def in_(section: str, *inner: str) -> str:
    return f"<{section}>\n{''.join(inner)}</{section}>\n"


def zlib(inner: str) -> str:
    return in_("zlibstorage", inner)


def blobs(inner: str) -> str:
    return in_("blobstorage", "blob-dir $scratch/blobs\n", inner)


def demo(*inner: str) -> str:
    return in_("demostorage", *inner)


@pytest.fixture(autouse=True)
def _foreign_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))


def contender(storage: str, place: Path) -> Contender:
    source = Source(place / "x.conf", f"{IMPORTS}<zodb x>\n{storage}</zodb>\n")
    (found,) = contenders_of(parse(source, {"scratch": str(place)}))
    return found


@dataclass(frozen=True)
class Stack:
    """What is expected of a storage."""

    storage: str
    name: str
    classes: str
    sharing: Sharing
    left: tuple[str, ...]
    """The caches that are left after all were emptied."""
    prefetches: bool = False
    blobs: bool = False
    cleared: tuple[str, ...] = ()
    """The caches of records that were emptied."""


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
    Stack(in_("foreign", zlib(FS)), "ZlibStorage over FileStorage",
          f"foreign.ForeignStorage over {ZLIB_CLASS} over {FS_CLASS}", Sharing.EXCLUSIVE,
          ("unknown: foreign.ForeignStorage", "operating system")),
]  # fmt: skip


@pytest.mark.parametrize("stack", STACKS, ids=lambda stack: stack.classes.replace("ZODB.", ""))
def test_what_is_known_of_a_wrapped_storage_before_and_after_it_is_opened(
    stack: Stack, tmp_path: Path
) -> None:
    found = contender(stack.storage, tmp_path)
    assert (found.storage_name, found.sharing) == (stack.name, stack.sharing)
    assert found.prefetches in {None, stack.prefetches}
    with Database(found) as database:
        assert " over ".join(database.storage_classes) == stack.classes
        assert database.sharing is stack.sharing
        assert database.prefetches is stack.prefetches
        assert database.has_blobs is stack.blobs
        assert database.empty_caches() == ("pickle cache", *stack.cleared)
        assert database.caches_left() == stack.left


def test_a_wrapped_storage_that_one_db_can_open_is_not_supported_in_two_processes(
    tmp_path: Path,
) -> None:
    assert contender(zlib(blobs(FS)), tmp_path).refusal(PROCESSES) == (
        "ZlibStorage over BlobStorage over FileStorage: one DB at a time can open it; "
        "use --threads shared, or -c 1"
    )
    assert contender(demo(FS), tmp_path).refusal(PROCESSES) == (
        "DemoStorage: its data lives in one DB only; use --threads shared, or -c 1"
    )
    assert "one DB at a time" in str(contender(demo(FS, CHANGES), tmp_path).refusal(PROCESSES))
    assert contender(zlib(SQLITE), tmp_path).refusal(PROCESSES) is None


def test_a_demostorage_shares_no_relstorage_among_threads(tmp_path: Path) -> None:
    found = contender(demo(zlib(SQLITE)), tmp_path)
    assert "DemoStorage uses one RelStorage in all threads" in str(found.refusal(THREADS))
    assert found.refusal(Parameters(CrewShape(1, Unit.THREAD, shared=True))) is None
    assert contender(demo(FS), tmp_path).refusal(THREADS) is None


def test_a_demostorage_keeps_no_changes_where_it_cannot(tmp_path: Path) -> None:
    inner = SQLITE.replace("<relstorage", "<relstorage changes")
    found = contender(demo(FS, inner), tmp_path)
    assert found.refusal(Parameters(CrewShape(1))) == (
        "DemoStorage cannot keep its changes in RelStorage; have it keep them in a "
        "<filestorage changes>"
    )
    base, changes = (each.open() for each in found.section.config.storage.config.factories)
    with closing(base), closing(changes), pytest.raises(AttributeError, match="'_lock'"):
        DemoStorage(base=base, changes=changes)


@contextmanager
def filled(storage: str, place: Path) -> Iterator[Database]:
    with Database(contender(storage, place)) as database:
        with database.db.transaction() as connection:
            connection.root()["item"] = Item(b"a" * 1000)
        yield database


def content(database: Database) -> bytes:
    with database.db.transaction() as connection:
        found: bytes = connection.root()["item"].content
    return found


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
    with Database(contender(demo(SQLITE), tmp_path)) as database:
        assert len(database.db.storage.base) == 0
        assert "RelStorage cache" in database.empty_caches()


def test_the_base_of_a_demostorage_is_read_cold_after_clearing(tmp_path: Path) -> None:
    with filled(SQLITE, tmp_path):
        pass
    with Database(contender(demo(SQLITE), tmp_path)) as database:
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
    """A storage that is a name, as far as a layer cares."""

    changes: Any = None
    base: Any = None

    def tpc_begin(self) -> None: ...


class CountingLayer(Layer):
    storage_class = "tests.contenders.test_wrappers.Counting"
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
def test_the_use_of_two_caches_is_known_where_both_are(
    own: CacheUse | None,
    of_changes: CacheUse | None,
    of_base: CacheUse | None,
    expected: CacheUse | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("zodbshootout.contenders.layer.known_layers", lambda: [CountingLayer])
    layer = CountingLayer(Counting(Counting(), Counting()))
    changes, base = layer.inner
    for each, use in ((layer, own), (changes, of_changes), (base, of_base)):
        monkeypatch.setattr(each, "use", use)
    assert layer.combined_cache_use() == expected


def test_blobs_of_a_blobstorage_over_relstorage_are_not_supported(tmp_path: Path) -> None:
    with Database(contender(blobs(SQLITE), tmp_path)) as database:
        assert not database.has_blobs


@pytest.mark.parametrize("storage", [blobs(SQLITE), zlib(blobs(SQLITE)), demo(FS, CHANGES)])
def test_what_is_known_not_to_pack_does_not(storage: str, tmp_path: Path) -> None:
    with filled(storage, tmp_path) as database:
        assert "cannot pack" in str(database.pack_flaw())
        with pytest.raises(AttributeError):
            database.pack()


@pytest.mark.parametrize(
    "storage", [FS, zlib(FS), zlib(SQLITE), zlib(blobs(FS)), blobs(MAPPING), demo(), demo(SQLITE)]
)
def test_other_wrapped_storages_can_be_packed(storage: str, tmp_path: Path) -> None:
    with filled(storage, tmp_path) as database:
        assert database.pack_flaw() is None
        database.pack()
        assert content(database) == b"a" * 1000


@pytest.mark.parametrize("name", ["conflicts", "conflicts_map"])
def test_serverzlibstorage_resolves_no_conflict_of_a_contender(name: str, tmp_path: Path) -> None:
    found = contender(in_("serverzlibstorage", FS), tmp_path)
    assert "ServerZlibStorage compresses what it has resolved" in str(
        benchmarks()[name].refusal(found, THREADS)
    )
    with Database(found) as database:
        with database.db.transaction() as connection:
            connection.root()["tally"] = Tally(b"a" * 1000)
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


def test_the_base_of_a_demostorage_is_not_destroyed(tmp_path: Path) -> None:
    with filled(demo(FS, CHANGES), tmp_path) as database:
        assert database.contender.zap_obstacle == "DemoStorage: its base stays as it is"
        with pytest.raises(NotZapped, match="DemoStorage cannot be zapped: its base stays as it"):
            database.zap()
        assert content(database) == b"a" * 1000


def test_a_server_that_holds_a_demostorage_in_memory_cannot_be_restarted(tmp_path: Path) -> None:
    for storage, sharing in (
        (zlib(demo(FS)), Sharing.VOLATILE),
        (demo(FS, CHANGES), Sharing.EXCLUSIVE),
    ):
        text = f"{IMPORTS}<zeoserver main>\n{storage}</zeoserver>\n"
        names = {"scratch": str(tmp_path), "main": "127.0.0.1:1", "main_port": "1"}
        (server,) = parse(Source(tmp_path / "x.conf", text), names).servers
        assert sharing_of(server) is sharing


@pytest.mark.parametrize(
    ("servers", "restarted", "left"),
    [
        (("postgresqlserver", "memcachedserver"), True, ("operating system",)),
        (("postgresqlserver",), False, ("PostgreSQL server", "operating system")),
        (("zeoserver",), True, ("PostgreSQL server", "operating system")),
    ],
)
def test_the_cache_of_a_server_is_left_unless_that_is_restarted(
    servers: tuple[str, ...],
    restarted: bool,
    left: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "zodbshootout.contenders.memory.MappingStorageLayer.caches_left",
        lambda layer: ("PostgreSQL server", "operating system"),
    )
    found = replace(contender(MAPPING, tmp_path), servers=servers, restarted=restarted)
    with Database(found) as database:
        assert database.caches_left() == left


def test_a_contender_knows_the_private_servers_that_it_needs(tmp_path: Path) -> None:
    text = (
        "<zeoserver front>\n<zeoclient>\nserver $main\n</zeoclient>\n</zeoserver>\n"
        f"<zeoserver main>\n{FS}</zeoserver>\n"
        "<memcachedserver mc>\n</memcachedserver>\n"
        "<zodb a>\n<zeoclient>\nserver $front\n</zeoclient>\n</zodb>\n"
        f"<zodb b>\n{MAPPING}</zodb>\n"
    )
    names = {"scratch": str(tmp_path), "front": "127.0.0.1:1", "main": "127.0.0.1:2"}
    a, b = contenders_of(parse(Source(tmp_path / "x.conf", text), names))
    assert (a.servers, b.servers) == (("zeoserver", "zeoserver"), ())
    assert not a.restarted
