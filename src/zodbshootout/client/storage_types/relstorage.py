from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ZODB.utils import u64

from zodbshootout.client.reachability import Address, Requirement, host_and_port, is_here
from zodbshootout.client.storage_types import (
    DATABASE,
    MEMCACHED,
    PRIVATE_DSN,
    SERVER,
    SERVER_DSN,
    BlobRevision,
    PrivateSection,
    StorageType,
    class_names,
    remove_cached_blobs,
    size_of_blobs,
)
from zodbshootout.client.storage_types.relstorage_servers import (
    SQLITE,
    driver_of,
    kind_of,
    link_of,
    memcached_addresses,
    memcached_versions,
    product_of,
    promise_of,
    size_of,
    vacuum,
)
from zodbshootout.model.outcome import Unsupported
from zodbshootout.model.storage_facts import (
    OPERATING_SYSTEM,
    Advice,
    CacheUse,
    DiskSize,
    Link,
    Promise,
    StorageInfo,
    server_cache,
)
from zodbshootout.versions import installed_versions

_ADAPTERS = {
    "PostgreSQLAdapterFactory": ("postgresql", "psycopg2-binary"),
    "MySQLAdapterFactory": ("mysql", "mysqlclient"),
    "OracleAdapterFactory": ("oracle", "cx_Oracle"),
}
"""The section's name and the package of the preferred driver, by the section's class."""
_SERVER_LINES = {
    "Sqlite3AdapterFactory": "",
    "MySQLAdapterFactory": "host $db_host, port $db_port",
    "OracleAdapterFactory": "dsn $db/SERVICE",
}
"""How the section of a database other than PostgreSQL refers to its server ``db``, by class."""
_DRIVERS = {
    "mysqldb": ("mysqlclient",),
    "pymysql": ("PyMySQL",),
    "mysql connector/python": ("mysql-connector-python",),
    "psycopg2cffi": ("psycopg2cffi",),
    "psycopg2": ("psycopg2-binary", "psycopg2"),
    "pg8000": ("pg8000",),
    "cx_oracle": ("cx_Oracle",),
}
"""The packages that may contain a driver, by a part of the driver's lower-case name."""
_MEMCACHED_DISTRIBUTIONS = {
    "relstorage.pylibmc_wrapper": ("pylibmc",),
    "memcache": ("python-memcached",),
}
"""The package with the client library, by ``cache-module-name``."""
_TWO_DRIVERS = {
    "relstorage.config.Sqlite3AdapterFactory": "sqlite3",
    "relstorage.config.MySQLAdapterFactory": "MySQLdb",
    "sqlite": "sqlite3",
    "mysql": "MySQLdb",
}
"""The modules for which RelStorage has two drivers of equal rank: one with the module's name, and
one for gevent.  The keys are classes of adapters' sections, and schemes of URIs."""
_LEAKY = frozenset({"4.3.0"})
"""Versions of RelStorage that, on SQLite, commit what a refused transaction has stored.

Client A reads object R, client B commits a change of R, then A changes object S and calls
readCurrent on R.  A's commit is refused, but A's next transaction, on another object, commits S.
"""
_LEAK = (
    "RelStorage {} on SQLite commits what a refused transaction stored, as part of the next "
    "transaction"
)
_NOTHING_TO_PACK = "pack-skip-prepack: without a prepack, a pack has nothing to remove"
_ONE_UNDO_AT_A_TIME = "RelStorage refuses to undo while another client undoes or packs"
_OUR_SECTION = Advice(
    r"Error: \(?(1005\b.*object_state.*errno: 150\b|1064\b.*'AS excluded\b|3780\b.*'object_state_"
    r"|invalid literal for int\(\).*\+maria)",  # a version that RelStorage cannot read
    "for this server write '%import zodbshootout.mysql' and <mysql-or-mariadb>",
)
"""The advice for errors of RelStorage 4.3 on MariaDB, and on MySQL 9.0 or later."""
_STANDBY = Advice(
    "cannot set transaction read-write mode during recovery",
    "the server is a standby, which is read only: write 'read-only true' and 'create-schema false' "
    "in <relstorage>",
)
"""The advice for a server that accepts no writes because it repeats those of another server."""
_PACKET = Advice(
    r"Error: \(?(1153|2006|2013|2020)\b",
    "records have to be smaller than the server's max_allowed_packet; set it for a private server "
    "in <settings>, for example 'max_allowed_packet 64M'",
)
"""The advice for too large packets; some of the errors also occur if a MySQL server has ended."""


_PRIVATE = (
    PrivateSection(
        ("relstorage",),
        paths=("blob-dir", "cache-local-dir"),
        left_out=(
            "replica-conf", "ro-replica-conf", "replica-timeout", "revert_when_stale",
            "create-schema",
        ),
        values_with={"cache-servers": {"cache-servers": f"${{{MEMCACHED}}}"}},
    ),
    PrivateSection(
        ("postgresql",),
        values={"dsn": PRIVATE_DSN},
        server="postgresqlserver",
        location=("dsn",),
        dsn="dsn",
    ),
    PrivateSection(
        ("mysql", "mysql-or-mariadb"),
        left_out=("unix_socket", "named_pipe", "read_default_file", "read_default_group"),
        values={
            "host": f"${{{SERVER}_host}}",
            "port": f"${{{SERVER}_port}}",
            "db": DATABASE,
            "user": "zodbshootout",
            "passwd": f"${{{SERVER}_password}}",
        },
        server="mysqlserver",
        location=("host", "port", "unix_socket", "db", "read_default_file", "read_default_group"),
        becomes="mysql-or-mariadb",
        package="zodbshootout.mysql",
    ),
    PrivateSection(("sqlite3",), paths=("data-dir",)),
    PrivateSection(("pragmas",)),
)  # fmt: skip

# RelStorage appends "application_name='...'" to a DSN that lacks it; pg8000 takes only settings.
_URL = re.compile(r"postgres(ql)?://")
_URL_FLAW = (
    "dsn: RelStorage cannot connect with this URL; write 'host=HOST dbname=NAME user=USER "
    "password=PASSWORD' instead, or, with psycopg2, add '?application_name=zodb' to the URL"
)


class RelStorageType(StorageType):
    """RelStorage, whose cache is in memory and, if ``cache-local-dir`` is set, also in files."""

    storage_class = "relstorage.storage.RelStorage"
    section_classes = ("relstorage.config.RelStorageFactory",)
    private = _PRIVATE
    serves_threads = False
    distributions = ("RelStorage",)

    @classmethod
    def requirements(cls, section: Any) -> Sequence[Requirement]:
        # Without this check, RelStorage would silently run without the memcached.
        servers = memcached_addresses(getattr(section.config, "cache_servers", None))
        return [Requirement((address,), _no_memcached(address)) for address in servers]

    @classmethod
    def installation(cls, section: Any) -> str | None:
        name, preferred = _ADAPTERS.get(_adapter_class(section), ("", ""))
        if not name:
            return None
        driver = section.config.adapter.config.driver
        package = (*_driver_packages(driver), preferred)[0]
        missing = f"the driver {driver!r} is not installed"
        if driver == "auto":
            missing = "no driver for it is installed"
        return f"<{name}>: {missing}; install it: pip install {package}"

    @classmethod
    def advice(cls, section: Any) -> Sequence[Advice]:
        if _adapter_class(section) != "MySQLAdapterFactory":
            return [_STANDBY]
        is_theirs = type(section.config.adapter).__name__ == "MySQLAdapterFactory"
        return [_OUR_SECTION, _PACKET] if is_theirs else [_PACKET]

    @classmethod
    def mistake(cls, section: Any) -> tuple[str, str] | None:
        if section.config.adapter is None:
            start = f"<relstorage {section.name or ''}".rstrip() + ">"
            return start, f"{start} contains no database, such as <postgresql>"
        driver = getattr(section.config.adapter.config, "driver", None) or "auto"
        dsn = getattr(section.config.adapter.config, "dsn", None) or ""
        if _URL.match(dsn) and ("application_name" not in dsn or "pg8000" in driver.lower()):
            return "dsn", _URL_FLAW
        known = _known_drivers(_adapter_class(section)) if driver != "auto" else {}
        if not known or driver.lower() in map(str.lower, known):
            return None
        # Users may have named the package of a driver instead of the driver.
        parts = [part for part, packages in _DRIVERS.items() if driver in packages]
        advice = next((f"did you mean {name}?" for name in known if name.lower() in parts), "")
        there = sorted(name for name in known if known[name]) or sorted(known)
        advice = advice or f"there are {', '.join(there)}"
        return "driver", f"there is no driver {driver!r}; {advice}"

    @classmethod
    def settle(cls, section: Any) -> None:
        adapter = section.config.adapter
        check_driver(adapter.config.driver)
        if adapter.config.driver == "auto":
            suitable = map(suitable_driver, class_names(type(adapter)))
            adapter.config.driver = next(filter(None, suitable), "auto")

    @classmethod
    def server_line(cls, section: Any) -> str:
        line = _SERVER_LINES.get(_adapter_class(section), SERVER_DSN)
        return line or ("cache-servers $db" if section.config.cache_servers else "")

    def run_sql(self, statements: Sequence[str]) -> bool:
        def run(_: Any, cursor: Any) -> None:
            for statement in statements:
                cursor.execute(statement)

        self.storage._adapter.connmanager.open_and_call(run)
        return True

    def promise(self) -> Promise:
        return promise_of(self.storage._adapter)

    def link(self) -> Link:
        return link_of(self.storage._adapter)

    def facts(self) -> StorageInfo:
        adapter, options = self.storage._adapter, self.storage._options
        is_sqlite, release = kind_of(adapter) == SQLITE, version("RelStorage")
        return StorageInfo(
            driver=_driver_name(adapter),
            corrections=tuple(getattr(adapter, "corrections", ())),
            # On SQLite, RelStorage drops the setting.
            persistent_cache="cache-local-dir" if options.cache_local_dir else "",
            collects_garbage=bool(options.pack_gc) and not options.pack_prepack_only,
            only_prepacks=bool(options.pack_prepack_only),
            pack_flaw=_NOTHING_TO_PACK if options.pack_skip_prepack else None,
            undo_flaw=None if is_sqlite else _ONE_UNDO_AT_A_TIME,
            retry_flaw=_LEAK.format(release) if is_sqlite and release in _LEAKY else None,
        )

    def start_files(self) -> Sequence[Path]:
        if not self.storage._options.cache_local_dir:
            return []
        from relstorage.cache.persistence import sqlite_files

        path, _ = sqlite_files(self.storage._options, self.storage._cache.local_client.prefix)
        return [Path(path)]

    def disk_size(self, *, blobs: bool) -> DiskSize:
        options = self.storage._options
        in_files = blobs and options.shared_blob_dir
        size = size_of(self.storage._adapter, blobs=blobs and not in_files)
        return replace(size, blobs=size_of_blobs(options.blob_dir)) if in_files else size

    def own_caches(self) -> tuple[str, ...]:
        memcached = ("memcached",) if self.storage._options.cache_servers else ()
        return ("RelStorage cache", *memcached)

    def empty_caches(self) -> None:
        # Without load_persistent=False, files of cache-local-dir would refill the cache at once.
        self.storage._cache.clear(load_persistent=False)

    def caches_left(self) -> tuple[str, ...]:
        product, _ = product_of(self.storage._adapter)
        if product is None:
            return (*super().caches_left(), OPERATING_SYSTEM)
        if product == SQLITE:
            return ("SQLite page cache", OPERATING_SYSTEM)
        return (server_cache(product), OPERATING_SYSTEM)

    def forget_blobs(self, blobs: Sequence[BlobRevision]) -> tuple[str, ...]:
        options = self.storage._options
        if not options.blob_dir or options.shared_blob_dir:
            return ()
        remove_cached_blobs(self.storage.blobhelper.fshelper, blobs)
        return ("RelStorage blob cache",)

    def existing(self, oids: Sequence[bytes]) -> int:
        adapter = self.storage._adapter

        def count(_: Any, cursor: Any) -> int:
            return len(adapter.mover.current_object_tids(cursor, list(map(u64, oids))))

        return int(adapter.connmanager.open_and_call(count))

    def zap(self, db: Any) -> bool:
        self.storage.zap_all()
        db.close()
        return True

    def cache_use(self) -> CacheUse:
        statistics = self.storage._cache.stats()
        # RelStorage before 3 looks up its checkpoints in the cache when it polls: when a
        # connection is opened, and when a transaction begins.
        polls = 2 if hasattr(self.storage._cache, "checkpoints_key") else 0
        return CacheUse(statistics["hits"], statistics["misses"], polls)

    def versions(self) -> dict[str, str]:
        options = self.storage._options
        names = _driver_packages(_driver_name(self.storage._adapter))
        if options.cache_servers:
            names += _MEMCACHED_DISTRIBUTIONS.get(options.cache_module_name, ())
        versions = {**super().versions(), **installed_versions(names)}
        product, product_version = product_of(self.storage._adapter)
        if product is not None and product_version is not None:
            versions[product] = product_version
        memcached = memcached_versions(memcached_addresses(options.cache_servers))
        if memcached:
            versions["memcached"] = ", ".join(memcached)
        return versions

    def forget_pack(self) -> tuple[str, ...]:
        if self.storage.keep_history:
            return ()
        # If more objects have changed than a batch holds, RelStorage 4.3.0 cannot pack again,
        # because it inserts new rows while old rows with the same keys still exist:
        # https://github.com/zodb/relstorage/issues/482
        self.run_sql(["DELETE FROM object_refs_added", "DELETE FROM object_ref"])
        return ("RelStorage object_ref",)

    def vacuum(self) -> bool:
        return vacuum(self.storage._adapter)


def _adapter_class(section: Any) -> str:
    """Return the class name of an adapter's section.

    If the class is not RelStorage's own, return the name of its base class in RelStorage.
    """
    classes = type(section.config.adapter).__mro__
    return next((c.__name__ for c in classes if c.__module__ == "relstorage.config"), "")


def _known_drivers(adapter_class: str) -> dict[str, bool]:
    """Return an adapter's drivers, and whether each is available; empty if they are unknown."""
    database = adapter_class.removesuffix("AdapterFactory").lower().removesuffix("3")
    try:
        drivers = import_module(f"relstorage.adapters.{database}.drivers")
        return {f.driver_name: f.check_availability() for f in drivers.known_driver_factories()}
    except (ImportError, AttributeError):
        return {}


def _driver_name(adapter: Any) -> str:
    driver = driver_of(adapter)
    return "" if driver is None else str(driver.__name__)


def _driver_packages(driver: str) -> tuple[str, ...]:
    return next((packages for part, packages in _DRIVERS.items() if part in driver.lower()), ())


def suitable_driver(kind: str) -> str | None:
    """Return the driver to use if none is named, or ``None`` to let RelStorage choose.

    *kind* is the class of an adapter's section, or the scheme of a URI.
    """
    # With gevent installed, RelStorage picks one of its two drivers by chance.
    driver = _TWO_DRIVERS.get(kind)
    if driver is None or find_spec(driver) is None:
        return None
    return f"gevent {driver}" if _patched_by_gevent() else driver


def check_driver(driver: str) -> None:
    """Check that a driver runs in this process, which gevent may have patched.

    :raises Unsupported: if the driver refuses to run here
    """
    refused = None
    if driver == "psycopg2" and _patched_by_gevent():
        refused = "with greenlets; use gevent psycopg2"
    elif driver == "gevent psycopg2" and not _patched_by_gevent():
        refused = "without --gevent; use psycopg2"
    if refused:
        raise Unsupported(f"the driver {driver} refuses to run {refused}")


def _patched_by_gevent() -> bool:
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched("threading"))


def _no_memcached(address: Address) -> str:
    if isinstance(address, str):
        return f"no memcached at {address}; start one there: memcached -s {address}"
    host, port = address
    place = host_and_port(host, port)
    if not is_here(address):
        return f"no memcached at {place}; start one there, or name another in cache-servers"
    return f"no memcached at {place}; start one there: memcached -l {host} -p {port}"


STORAGES = (RelStorageType,)
