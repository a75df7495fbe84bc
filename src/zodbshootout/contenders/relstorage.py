from __future__ import annotations

import sys
from typing import Any

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


class RelStorageLayer(Layer):
    """RelStorage, with its cache in memory and, with ``cache-local-dir``, in files."""

    storage_class = "relstorage.storage.RelStorage"
    section_classes = ("relstorage.config.RelStorageFactory",)
    prefetches = True
    distributions = ("RelStorage",)

    def empty_cache(self) -> tuple[str, ...]:
        # Without load_persistent=False the files of cache-local-dir would fill it again at once.
        self.storage._cache.clear(load_persistent=False)
        return ("RelStorage cache",)

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
        if type(adapter).__name__ == "Sqlite3AdapterFactory" and adapter.config.driver == "auto":
            adapter.config.driver = "gevent sqlite3" if _patched_by_gevent() else "sqlite3"

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
