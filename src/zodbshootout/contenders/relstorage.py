from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from zodbshootout.contenders import cache_servers
from zodbshootout.contenders.blob_files import BlobRevision, forget
from zodbshootout.contenders.layer import (
    OPERATING_SYSTEM,
    SERVER,
    CacheUse,
    Layer,
    installed_versions,
)
from zodbshootout.contenders.sql_servers import SQLITE, product_of
from zodbshootout.model import CrewShape, Unit
from zodbshootout.servers.address import accepts

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
_EXTRAS = {
    "PostgreSQLAdapterFactory": "postgresql",
    "MySQLAdapterFactory": "mysql",
    "OracleAdapterFactory": "oracle",
}
_TWO_DRIVERS = {"Sqlite3AdapterFactory": "sqlite3", "MySQLAdapterFactory": "MySQLdb"}
"""Modules for which RelStorage has two drivers of the same rank, of that name and for gevent."""

_SQLITE = "Sqlite3AdapterFactory"
_MYSQL = "MySQLAdapterFactory"
_NOT_ITS_MYSQL = re.compile(
    r"Error: \(?(1005\b.*object_state.*errno: 150\b|1064\b.*'AS excluded\b|3780\b.*'object_state_"
    r"|invalid literal for int\(\).*\+maria)"  # a version that RelStorage cannot read
)
"""How RelStorage 4.3 fails on MariaDB, and on MySQL from 9.0 on, in the words of those servers."""
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
    serves_threads = False
    holds_changes = False
    distributions = ("RelStorage",)

    def empty_cache(self) -> tuple[str, ...]:
        # Without load_persistent=False the files of cache-local-dir would fill it again at once.
        self.storage._cache.clear(load_persistent=False)
        memcached = ("memcached",) if self.storage._options.cache_servers else ()
        return ("RelStorage cache", *memcached)

    def caches_left(self) -> tuple[str, ...]:
        product = product_of(self.storage._adapter)
        if product is None:
            return (*super().caches_left(), OPERATING_SYSTEM)
        kind = "page cache" if product.name == SQLITE else SERVER
        return (f"{product.name} {kind}", OPERATING_SYSTEM)

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
        names = [
            dist
            for name, dists in _DRIVER_DISTRIBUTIONS.items()
            if name in driver
            for dist in dists
        ]
        options = self.storage._options
        if options.cache_servers:
            names += _MEMCACHED_DISTRIBUTIONS.get(options.cache_module_name, ())
        found = super().versions() | installed_versions(tuple(names))
        product = product_of(self.storage._adapter)
        if product is not None and product.version is not None:
            found[product.name] = product.version
        told = cache_servers.versions(_addresses(options.cache_servers))
        if told:
            found["memcached"] = ", ".join(told)
        return found

    def driver(self) -> str:
        return str(self.storage._adapter.driver.__name__)

    def corrections(self) -> tuple[str, ...]:
        return tuple(getattr(self.storage._adapter, "corrections", ()))

    @classmethod
    def refusal(cls, section: Any, shape: CrewShape) -> str | None:
        driver = getattr(section.config.adapter.config, "driver", None)
        if driver == "psycopg2" and shape.unit is Unit.GREENLET:
            return "the driver psycopg2 refuses to run with greenlets; use gevent psycopg2"
        if driver == "gevent psycopg2" and shape.unit is not Unit.GREENLET:
            return "the driver gevent psycopg2 refuses to run without --gevent; use psycopg2"
        return None

    @classmethod
    def settle(cls, section: Any) -> None:
        # Where gevent is installed RelStorage takes now the one and now the other.
        adapter = section.config.adapter
        driver = _TWO_DRIVERS.get(_kind(adapter))
        if driver and adapter.config.driver == "auto" and find_spec(driver):
            adapter.config.driver = f"gevent {driver}" if _patched_by_gevent() else driver

    @classmethod
    def advice(cls, section: Any, cause: str) -> str | None:
        if type(section.config.adapter).__name__ != _MYSQL or not _NOT_ITS_MYSQL.search(cause):
            return None
        return "for this server write '%import zodbshootout.mysql' and <mysql-or-mariadb>"

    @classmethod
    def retry_flaw(cls, section: Any) -> str | None:
        if _kind(section.config.adapter) != _SQLITE or version("RelStorage") not in _LEAKY:
            return None
        return (
            f"RelStorage {version('RelStorage')} on SQLite commits what a refused transaction has "
            "stored together with the next one"
        )

    @classmethod
    def absence(cls, section: Any) -> str | None:
        # Without this RelStorage would be measured as if there were a memcached.
        for address in _addresses(getattr(section.config, "cache_servers", None)):
            if not accepts(address):
                return cache_servers.absence(address)
        return None

    @classmethod
    def installation(cls, section: Any) -> str | None:
        adapter = section.config.adapter
        extra = _EXTRAS.get(_kind(adapter))
        if extra is None:
            return None
        driver = adapter.config.driver
        which = "no driver" if driver == "auto" else f"the driver {driver!r} is not"
        verb = "for it is installed" if driver == "auto" else "installed"
        return f"<{extra}>: {which} {verb}; install it: pip install 'zodbshootout[{extra}]'"


def _kind(adapter: Any) -> str:
    """Return the class name of RelStorage's own section that *adapter* is or derives from."""
    own = (cls.__name__ for cls in type(adapter).__mro__ if cls.__module__ == "relstorage.config")
    return next(own, type(adapter).__name__)


def _addresses(servers: str | Sequence[str] | None) -> list[cache_servers.Address]:
    """Return where the servers of ``cache-servers`` are, as far as one can connect to them."""
    words = servers.split() if isinstance(servers, str) else servers or ()
    return [address for address in map(cache_servers.address_of, words) if address is not None]


def _patched_by_gevent() -> bool:
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched("threading"))


LAYERS = (RelStorageLayer,)
