from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from zodbshootout.client.distributions import installed_versions
from zodbshootout.client.storage_info import OPERATING_SYSTEM, Cache, CacheUse, server_cache
from zodbshootout.client.storages import cache_servers
from zodbshootout.client.storages.blob_files import BlobRevision, forget
from zodbshootout.client.storages.open_storage import OpenStorage, class_names
from zodbshootout.client.storages.sql_servers import SQLITE, driver_of, kind_of, product_of

_DRIVER_DISTRIBUTIONS = {
    "MySQLdb": ("mysqlclient",),
    "PyMySQL": ("PyMySQL",),
    "MySQL Connector/Python": ("mysql-connector-python",),
    "psycopg2": ("psycopg2-binary", "psycopg2"),
    "pg8000": ("pg8000",),
    "cx_Oracle": ("cx_Oracle",),
}
_MEMCACHED_DISTRIBUTIONS = {
    "relstorage.pylibmc_wrapper": ("pylibmc",),
    "memcache": ("python-memcached",),
}
"""What brings the client library, by what ``cache-module-name`` says."""
_TWO_DRIVERS = {
    "relstorage.config.Sqlite3AdapterFactory": "sqlite3",
    "relstorage.config.MySQLAdapterFactory": "MySQLdb",
    "sqlite": "sqlite3",
    "mysql": "MySQLdb",
}
"""Modules for which RelStorage has two drivers of the same rank, of that name and for gevent, by
the class of the adapter's section and by the scheme of a URI."""
_LEAKY = frozenset({"4.3.0"})
"""Versions of which it was seen that stores outlive their transaction in SQLite.

Client A reads object R, client B commits a change of R, A changes object S and calls readCurrent
on R.  A is refused; its next transaction, which is about another object, commits S.
"""


class OpenRelStorage(OpenStorage):
    """RelStorage, with its cache in memory and, with ``cache-local-dir``, in files."""

    storage_class = "relstorage.storage.RelStorage"
    section_classes = ("relstorage.config.RelStorageFactory",)
    distributions = ("RelStorage",)

    def own_caches(self) -> tuple[Cache, ...]:
        memcached = (Cache("memcached"),) if self.storage._options.cache_servers else ()
        return (Cache("RelStorage cache"), *memcached)

    def empty_caches(self) -> None:
        # Without load_persistent=False the files of cache-local-dir would fill it again at once.
        self.storage._cache.clear(load_persistent=False)

    def caches_left(self) -> tuple[Cache, ...]:
        product = product_of(self.storage._adapter)
        if product is None:
            return (*super().caches_left(), OPERATING_SYSTEM)
        if product.name == SQLITE:
            return (Cache("SQLite page cache"), OPERATING_SYSTEM)
        return (server_cache(product.name), OPERATING_SYSTEM)

    def forget_blobs(self, blobs: Sequence[BlobRevision]) -> tuple[Cache, ...]:
        options = self.storage._options
        if not options.blob_dir or options.shared_blob_dir:
            return ()
        forget(self.storage.blobhelper.fshelper, blobs)
        return (Cache("RelStorage blob cache"),)

    def zap(self, db: Any) -> bool:
        self.storage.zap_all()
        db.close()
        return True

    def cache_use(self) -> CacheUse:
        statistics = self.storage._cache.stats()
        # Before RelStorage 3 it looks for its checkpoints there when it polls: as a connection is
        # opened, and as a transaction begins.
        polls = 2 if hasattr(self.storage._cache, "checkpoints_key") else 0
        return CacheUse(statistics["hits"], statistics["misses"], polls)

    def versions(self) -> dict[str, str]:
        driver = self.driver()
        names = [
            dist
            for name, dists in _DRIVER_DISTRIBUTIONS.items()
            if name in driver
            for dist in dists
        ]
        options = self.storage._options
        if options.cache_servers:
            names += _MEMCACHED_DISTRIBUTIONS.get(options.cache_module_name, ())
        found = {**super().versions(), **installed_versions(names)}
        product = product_of(self.storage._adapter)
        if product is not None and product.version is not None:
            found[product.name] = product.version
        told = cache_servers.versions(cache_servers.addresses(options.cache_servers))
        if told:
            found["memcached"] = ", ".join(told)
        return found

    def driver(self) -> str:
        driver = driver_of(self.storage._adapter)
        return "" if driver is None else str(driver.__name__)

    def corrections(self) -> tuple[str, ...]:
        return tuple(getattr(self.storage._adapter, "corrections", ()))

    def retry_flaw(self) -> str | None:
        if kind_of(self.storage._adapter) != SQLITE or version("RelStorage") not in _LEAKY:
            return None
        return (
            f"RelStorage {version('RelStorage')} on SQLite commits what a refused transaction has "
            "stored together with the next one"
        )

    @classmethod
    def settle(cls, section: Any) -> None:
        adapter = section.config.adapter
        if adapter.config.driver == "auto":
            chosen = map(suitable_driver, class_names(type(adapter)))
            adapter.config.driver = next(filter(None, chosen), "auto")


def suitable_driver(kind: str) -> str | None:
    """Return the driver to take where none is named, ``None`` where RelStorage is to choose.

    *kind* is the class of an adapter's section, or the scheme of a URI.
    """
    # Where gevent is installed RelStorage takes either, as it happens.
    driver = _TWO_DRIVERS.get(kind)
    if driver is None or find_spec(driver) is None:
        return None
    return f"gevent {driver}" if _patched_by_gevent() else driver


def _patched_by_gevent() -> bool:
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched("threading"))


STORAGES = (OpenRelStorage,)
