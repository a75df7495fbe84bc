"""The caches, limits and facts of zodb-pgjsonb, with a storage in memory in its place."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import ZODB
from ZODB.interfaces import IMVCCStorage
from ZODB.MappingStorage import MappingStorage
from ZODB.mvccadapter import MVCCAdapter, MVCCAdapterInstance
from ZODB.utils import z64
from zope.interface import implementer

from zodbshootout.client.database import Database
from zodbshootout.model.specification import ClientKind, CrewShape, Storage
from zodbshootout.model.storage_facts import OPERATING_SYSTEM, PICKLE_CACHE, CacheUse


class Cache(dict[bytes, Any]):
    """A cache that counts."""

    hits = 0
    misses = 0

    def through(self, key: bytes, load: Callable[[], Any]) -> Any:
        """Return what is cached under *key*, after loading it if it is missing."""
        if key in self:
            self.hits += 1
        else:
            self.misses += 1
            self[key] = load()
        return self[key]


class PGJsonbStorageInstance(MVCCAdapterInstance):  # type: ignore[misc]
    """The part of a connection."""

    __module__ = "zodb_pgjsonb.instance"

    def __init__(self, main: PGJsonbStorage) -> None:
        super().__init__(main.adapter)
        self._load_cache = Cache()
        self._main = main

    def load(self, oid: bytes) -> Any:
        inherited = super().load

        def load() -> Any:
            return self._main._shared_cache.through(oid, lambda: inherited(oid))

        return self._load_cache.through(oid, load)

    def prefetch(self, oids: Any) -> None:
        for oid in oids:
            self.load(oid)


@implementer(IMVCCStorage)
class PGJsonbStorage:
    """The part of a DB, which cannot prefetch."""

    __module__ = "zodb_pgjsonb.storage"

    def __init__(self) -> None:
        self.kept = MappingStorage()
        self.adapter = MVCCAdapter(self.kept)
        self._shared_cache = Cache()
        self._warmer = SimpleNamespace(_target_count=100, _delay=0.0, _jitter=0.0)
        self._instance_pool = SimpleNamespace(max_size=10)

    def new_instance(self) -> PGJsonbStorageInstance:
        instance = PGJsonbStorageInstance(self)
        self.adapter._instances.add(instance)
        return instance

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kept, name)

    def clear_caches(self) -> None:
        self._shared_cache.clear()


@pytest.fixture
def database() -> Database:
    return Database(Storage(""), lambda _: ZODB.DB(PGJsonbStorage()))


def read(database: Database) -> None:
    with database.connected() as connection:
        connection._storage.load(z64)


def use(database: Database) -> CacheUse:
    used = database.cache_use()
    assert used is not None
    return used


def test_emptying_reaches_the_caches_of_the_db_and_of_each_connection(database: Database) -> None:
    with database.connected():
        read(database)
    read(database)
    before = use(database)
    assert database.empty_caches() == (PICKLE_CACHE, "zodb-pgjsonb cache")
    assert database.db.storage._warmer._target_count == 0
    with database.connected():
        read(database)
    for hits in (0, 1):
        assert use(database).since(before) == CacheUse(hits, misses=1)
        read(database)
    assert database.facts.knows_caches
    assert database.info().caches_left == ("PostgreSQL server", OPERATING_SYSTEM)


def test_prefetching_is_what_connections_can_do(database: Database) -> None:
    assert not hasattr(database.db.storage, "prefetch")
    assert database.info().prefetches


@pytest.mark.parametrize(("threads", "refused"), [(5, False), (6, True)])
def test_threads_need_two_connections_each(threads: int, refused: bool, database: Database) -> None:
    (limit,) = database.facts.limits
    assert limit.applies_to(CrewShape(threads, ClientKind.THREAD, shared=True)) == refused
    assert "set pool-max-size" in limit.reason
    for unshared in (ClientKind.PROCESS, ClientKind.THREAD):
        assert not limit.applies_to(CrewShape(threads, unshared))


@pytest.mark.parametrize(
    ("warmer", "setting"),
    [
        (None, ("", "")),
        (SimpleNamespace(_delay=0.0, _jitter=0.0), ("cache-warm-pct", "")),
        (
            SimpleNamespace(_delay=15.0, _jitter=30.0),
            ("cache-warm-pct", "it is loaded 15 to 45 s after opening"),
        ),
    ],
)
def test_a_cache_that_is_warmed_is_persistent(
    warmer: Any, setting: tuple[str, str], database: Database
) -> None:
    database.db.storage._warmer = warmer
    facts = database.facts
    assert (facts.persistent_cache, facts.persistent_cache_flaw) == setting
