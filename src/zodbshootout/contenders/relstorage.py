from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from zodbshootout.contenders.blob_files import BlobRevision, forget
from zodbshootout.contenders.layer import CacheUse, Layer, installed_versions

_DRIVER_DISTRIBUTIONS = {
    "MySQLdb": ("mysqlclient",),
    "PyMySQL": ("PyMySQL",),
    "MySQL Connector/Python": ("mysql-connector-python",),
    "psycopg2": ("psycopg2-binary", "psycopg2"),
    "pg8000": ("pg8000",),
    "cx_Oracle": ("cx_Oracle",),
}
_EXTRAS = {
    "PostgreSQLAdapterFactory": "postgresql",
    "MySQLAdapterFactory": "mysql",
    "OracleAdapterFactory": "oracle",
}

_SQLITE = "Sqlite3AdapterFactory"
_LEAKY = frozenset({"4.3.0"})
"""Versions of which it was seen that stores outlive their transaction in SQLite.

Client A reads object R, client B commits a change of R, A changes object S and calls readCurrent
on R.  A is refused; its next transaction, which is about another object, commits S.
"""


class RelStorageLayer(Layer):
    """RelStorage, with its cache in memory and, with ``cache-local-dir``, in files."""

    storage_class = "relstorage.storage.RelStorage"
    section_classes = ("relstorage.config.RelStorageFactory",)
    prefetches = True
    distributions = ("RelStorage",)

    def empty_cache(self) -> tuple[str, ...]:
        # Without load_persistent=False the files of cache-local-dir would fill it again at once.
        self.storage._cache.clear(load_persistent=False)
        memcached = ("memcached",) if self.storage._options.cache_servers else ()
        return ("RelStorage cache", *memcached)

    def forget_blobs(self, blobs: Sequence[BlobRevision]) -> tuple[str, ...]:
        options = self.storage._options
        if not options.blob_dir or options.shared_blob_dir:
            return ()
        forget(self.storage.blobhelper.fshelper, blobs)
        return ("RelStorage blob cache",)

    def zap(self, db: Any) -> bool:
        self.storage.zap_all()
        db.close()
        return True

    def cache_use(self) -> CacheUse:
        statistics = self.storage._cache.stats()
        return CacheUse(statistics["hits"], statistics["misses"])

    def versions(self) -> dict[str, str]:
        driver = self.driver()
        names = (
            dist
            for name, dists in _DRIVER_DISTRIBUTIONS.items()
            if name in driver
            for dist in dists
        )
        return super().versions() | installed_versions(tuple(names))

    def driver(self) -> str:
        return str(self.storage._adapter.driver.__name__)

    @classmethod
    def settle(cls, section: Any) -> None:
        # Where gevent is installed, RelStorage has two drivers of the same rank for SQLite and
        # takes now the one and now the other.
        adapter = section.config.adapter
        if type(adapter).__name__ == _SQLITE and adapter.config.driver == "auto":
            adapter.config.driver = "gevent sqlite3" if _patched_by_gevent() else "sqlite3"

    @classmethod
    def retry_flaw(cls, section: Any) -> str | None:
        if type(section.config.adapter).__name__ != _SQLITE or version("RelStorage") not in _LEAKY:
            return None
        return (
            f"RelStorage {version('RelStorage')} on SQLite commits what a refused transaction has "
            "stored together with the next one"
        )

    @classmethod
    def installation(cls, section: Any) -> str | None:
        adapter = section.config.adapter
        extra = _EXTRAS.get(type(adapter).__name__)
        if extra is None:
            return None
        driver = adapter.config.driver
        which = "no driver" if driver == "auto" else f"the driver {driver!r} is not"
        verb = "for it is installed" if driver == "auto" else "installed"
        return f"<{extra}>: {which} {verb}; install it: pip install 'zodbshootout[{extra}]'"


def _patched_by_gevent() -> bool:
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched("threading"))


LAYERS = (RelStorageLayer,)
