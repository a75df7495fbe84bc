"""Ask databases and memcached servers for facts, and vacuum databases."""

from __future__ import annotations

import re
import sqlite3
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from zodbshootout.client.reachability import Address, connect
from zodbshootout.model.outcome import CheckFailed
from zodbshootout.model.storage_facts import DiskSize, Durability, Link, Promise

SQLITE = "SQLite"
POSTGRESQL = "PostgreSQL"
_PRODUCTS = {
    "Sqlite3Adapter": SQLITE,
    "PostgreSQLAdapter": POSTGRESQL,
    "MySQLAdapter": "MySQL",
    "OracleAdapter": "Oracle",
}
"""The products of adapters, by class name; a subclass has the product of its base class."""
VERSION_QUERIES = {
    POSTGRESQL: "SHOW server_version",
    "MySQL": "SELECT version()",
    "Oracle": "SELECT version FROM product_component_version WHERE product LIKE 'Oracle%'",
}
"""The queries for the version of a server, by product."""
# The sizes in information_schema.tables are only estimates, renewed now and then.
_MYSQL_FILES = (
    "SELECT sum(file_size) FROM /*M! information_schema.innodb_sys_tablespaces */ "
    "/*!80000 information_schema.innodb_tablespaces */ "
    "WHERE substring_index(name, '/', 1) = database()"
)
_SIZE_QUERIES = {
    SQLITE: {
        "whole": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
        "blobs": "SELECT coalesce(sum(length(chunk)), 0) FROM blob_chunk",
    },
    POSTGRESQL: {
        "whole": "SELECT pg_database_size(current_database())",
        "blobs": "SELECT sum(pg_total_relation_size(to_regclass(name))) FROM unnest(ARRAY["
        "'pg_catalog.pg_largeobject', 'blob_chunk', 'blob_state', 'blob_history']) AS name",
        "log": "SELECT pg_current_wal_insert_lsn() - '0/0'",
    },
    "MySQL": {
        "whole": _MYSQL_FILES,
        "blobs": f"{_MYSQL_FILES} AND substring_index(name, '/', -1) = 'blob_chunk'",
        "log": "SHOW GLOBAL STATUS LIKE 'Innodb_os_log_written'",
    },
}
"""By product, queries for sizes in bytes: of the database, of its blobs, and of all writes to the
server's log."""
VACUUM = "VACUUM (ANALYZE)"
"""The statement that vacuums a database of PostgreSQL."""
_MYSQL_TABLES = (
    "SELECT table_name FROM information_schema.tables "
    "WHERE table_schema = database() AND table_type = 'BASE TABLE'"
)
_LEVELS = {"0": "OFF", "1": "NORMAL", "2": "FULL", "3": "EXTRA"}
"""SQLite's names for the values of ``PRAGMA synchronous``."""
_MEMCACHED = re.compile(r"((inet6?|tcp):)?(?P<host>\[[^]]+\]|[^:\[\]/]+)(:(?P<port>\d+))?(:\d+)?")
"""A memcached server in pylibmc's notation, which may end with a weight."""
MEMCACHED_PORT = 11211


def kind_of(adapter: Any) -> str | None:
    """Return the product that an adapter is made for (MySQL for MariaDB), or ``None``."""
    names = (_PRODUCTS.get(cls.__name__) for cls in type(adapter).__mro__)
    return next((name for name in names if name is not None), None)


def driver_of(adapter: Any) -> Any:
    """Return the driver of an open RelStorage adapter, or ``None`` if it has none.

    Before RelStorage 3, adapters have no attribute for the driver.  With PostgreSQL, the
    connection manager then has an attribute that is a bound method of the driver.  The driver is
    taken from this bound method.
    """
    open_connection = getattr(adapter.connmanager, "_db_connect_with_isolation", None)
    return getattr(adapter, "driver", None) or getattr(open_connection, "__self__", None)


def product_of(adapter: Any) -> tuple[str | None, str | None]:
    """Return the product that an open adapter connects to, and its version; ``None`` if unknown.

    This opens another connection to ask the server for the version.
    """
    name = kind_of(adapter)
    if name is None:
        return None, None
    if name == SQLITE:
        return name, sqlite3.sqlite_version
    answers = _answers(adapter, VERSION_QUERIES[name])
    version = answers[0] if answers else None
    if name == "MySQL" and "mariadb" in (version or "").lower():
        name = "MariaDB"
    return name, version


def size_of(adapter: Any, *, blobs: bool) -> DiskSize:
    """Return the bytes that the database of an open adapter takes on disk, if known."""
    return size_of_product(kind_of(adapter), partial(_answers, adapter), blobs=blobs)


def size_of_product(
    product: str | None, ask: Callable[..., list[str] | None], *, blobs: bool
) -> DiskSize:
    """Return the bytes that a database takes on disk; *ask* returns the answers to queries."""
    queries = dict(_SIZE_QUERIES.get(product or "", {}))
    if not blobs:
        queries.pop("blobs", None)
    answers = ask(*queries.values()) or ()
    sizes = {name: int(text) for name, text in zip(queries, answers) if text != "None"}
    if "whole" not in sizes:
        return DiskSize()
    in_tables = sizes.get("blobs")
    return DiskSize(sizes["whole"] - (in_tables or 0), in_tables, sizes.get("log"))


def vacuum(adapter: Any) -> bool:
    """Vacuum the database of an open adapter; return whether a way to do so is known.

    Exceptions of the adapter's driver propagate.
    """
    vacuum_product = _VACUUMS.get(kind_of(adapter) or "")
    if vacuum_product is None:
        return False
    adapter.connmanager.open_and_call(vacuum_product)
    return True


def _vacuum_sqlite(_: Any, cursor: Any) -> None:
    cursor.execute("VACUUM")


def _vacuum_postgresql(connection: Any, cursor: Any) -> None:
    connection.rollback()
    connection.autocommit = True
    cursor.execute(VACUUM)


def _optimize_tables(_: Any, cursor: Any) -> None:
    """Optimize all tables; MySQL and MariaDB report errors as rows of the result."""
    cursor.execute(_MYSQL_TABLES)
    for (table,) in cursor.fetchall():
        cursor.execute(f"OPTIMIZE TABLE `{_text(table)}`")
        for _, _, kind, message in cursor.fetchall():
            if _text(kind).lower() == "error":
                raise CheckFailed(f"OPTIMIZE TABLE {_text(table)}: {_text(message)}")


_VACUUMS: Mapping[str, Callable[[Any, Any], None]] = {
    SQLITE: _vacuum_sqlite,
    POSTGRESQL: _vacuum_postgresql,
    "MySQL": _optimize_tables,
}
"""By product, a function that vacuums a database, given a connection and a cursor."""


def promise_of(adapter: Any) -> Promise:
    """Ask the database, on a new connection, for the durability of a commit."""
    return promise_of_product(kind_of(adapter), partial(_answers, adapter))


def promise_of_product(product: str | None, ask: Callable[..., list[str] | None]) -> Promise:
    """Return the durability of a commit in a database.

    *ask* returns the answers to queries.  It must open a connection as the storage does, because a
    DSN, a user or a pragma may change the settings of a connection.
    """
    name = product or "an unknown adapter"
    queries, syncs = _SYNCING.get(name, ((), None))
    answers = ask(*queries)
    if not answers or syncs is None:
        return Durability.UNKNOWN, name
    synced, detail = syncs(*answers)
    return Durability.SYNCED if synced else Durability.MAY_LOSE, detail


def _sqlite(synchronous: str, journal: str) -> tuple[bool, str]:
    """Return whether SQLite syncs each commit (https://www.sqlite.org/pragma.html)."""
    level, is_wal = _LEVELS.get(synchronous, synchronous), journal == "wal"
    # Without WAL, a commit ends with a change of the directory, which only EXTRA syncs.
    synced = level in {"FULL", "EXTRA"} if is_wal else level == "EXTRA"
    return synced, f"synchronous {level}{'' if is_wal else f', journal_mode {journal}'}"


def _postgresql(fsync: str, synchronous_commit: str) -> tuple[bool, str]:
    if fsync == "off":
        return False, "fsync off, which may even corrupt the database"
    return synchronous_commit != "off", f"synchronous_commit {synchronous_commit}"


def _mysql(flush_log: str, log_bin: str, sync_binlog: str) -> tuple[bool, str]:
    """Return whether InnoDB and the binary log, if there is one, sync each commit."""
    settings = [("innodb_flush_log_at_trx_commit", flush_log)]
    if log_bin == "1":
        settings.append(("sync_binlog", sync_binlog))
    lax = [setting for setting in settings if setting[1] != "1"]
    return not lax, ", ".join(" ".join(setting) for setting in lax or settings)


_SYNCING: Mapping[str, tuple[Sequence[str], Callable[..., tuple[bool, str]]]] = {
    SQLITE: (("PRAGMA synchronous", "PRAGMA journal_mode"), _sqlite),
    POSTGRESQL: (("SHOW fsync", "SHOW synchronous_commit"), _postgresql),
    "MySQL": (
        (
            "SELECT @@innodb_flush_log_at_trx_commit",
            "SELECT @@log_bin",
            "SELECT @@sync_binlog",
        ),
        _mysql,
    ),
}
"""By product, queries on whether commits are synced, and a function that judges the answers."""


def link_of(adapter: Any) -> Link:
    """Ask the database, on a new connection, about connections to it."""
    name = kind_of(adapter)
    if name not in _LINK_QUERIES:
        return Link()
    encryption = adapter.connmanager.open_and_call(lambda connection, _: encryption_of(connection))
    return link_of_product(name, partial(_answers, adapter), encryption)


def encryption_of(connection: Any) -> str:
    """Return the version of TLS of a driver's connection to PostgreSQL; ``none``, "" if unknown.

    The server itself does not tell it to a user who acts as another role, and not at all if there
    is a pooler in between.
    """
    info: Any = getattr(connection, "info", None)
    if hasattr(info, "ssl_attribute"):  # psycopg2
        return str(info.ssl_attribute("protocol")) if info.ssl_in_use else "none"
    libpq: Any = getattr(connection, "pgconn", None)
    if hasattr(libpq, "ssl_in_use"):  # psycopg
        return "TLS" if libpq.ssl_in_use else "none"
    plain = getattr(connection, "_usock", None)  # pg8000
    if plain is None:
        return ""
    return str(plain.version()) if isinstance(plain, ssl.SSLSocket) else "none"


def link_of_product(
    product: str, ask: Callable[..., list[str] | None], encryption: str = ""
) -> Link:
    """Return what a database tells about connections to it.

    *ask* is as in :func:`promise_of_product`; *encryption* is used if the database does not tell.
    """
    queries = _LINK_QUERIES[product]
    answers = ask(*queries.values())
    if answers is None:
        return Link(encryption)
    told = dict(zip(queries, answers))
    seconds, name = float(told["idle_s"]), _IDLE_SETTINGS[product]
    idle_limit = f"{name} {seconds:g} s" if 0 < seconds < IDLE_FOR_LONG else ""
    encryption = (told["encryption"] or "none") if "encryption" in told else encryption
    return Link(encryption, idle_limit, int(told["max_connections"]))


IDLE_FOR_LONG = 3600.0
"""Seconds: a server that closes connections only after this time closes none during a run."""
_IDLE_SETTINGS = {POSTGRESQL: "idle_session_timeout", "MySQL": "wait_timeout"}
_LINK_QUERIES = {
    POSTGRESQL: {
        "idle_s": "SELECT coalesce(extract(epoch FROM "
        "current_setting('idle_session_timeout', true)::interval), 0)",
        "max_connections": "SHOW max_connections",
    },
    "MySQL": {
        "encryption": "SHOW SESSION STATUS LIKE 'Ssl_version'",
        "idle_s": "SELECT @@wait_timeout",
        "max_connections": "SELECT @@max_connections",
    },
}
"""By product, queries about the connection that asks."""


def _answers(adapter: Any, *queries: str) -> list[str] | None:
    """Return one value for each query, or ``None`` if any query fails."""

    def execute(_: Any, cursor: Any) -> list[str]:
        return [_answer(cursor, query) for query in queries]

    try:
        return list(adapter.connmanager.open_and_call(execute))
    except Exception:  # noqa: BLE001 - forbidden queries raise exceptions of drivers
        return None


def _answer(cursor: Any, query: str) -> str:
    cursor.execute(query)
    return _text(cursor.fetchone()[-1])  # SHOW STATUS returns the name first


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def memcached_addresses(servers: str | Sequence[str] | None) -> list[Address]:
    """Return the addresses of TCP and Unix sockets in a value of ``cache-servers``."""
    words = servers.split() if isinstance(servers, str) else servers or ()
    return [address for address in map(memcached_address, words) if address is not None]


def memcached_address(server: str) -> Address | None:
    """Return a memcached's address, or ``None`` if it uses neither TCP nor a Unix socket."""
    path = server.removeprefix("unix:")
    if path.startswith("/"):
        return path
    match = _MEMCACHED.fullmatch(server)
    return (match["host"].strip("[]"), int(match["port"] or MEMCACHED_PORT)) if match else None


def memcached_versions(servers: Iterable[Address]) -> list[str]:
    """Return the distinct versions of the servers that answer."""
    return sorted({version for version in map(version_of, servers) if version is not None})


def version_of(address: Address) -> str | None:
    """Return the version of a memcached, or ``None`` if it does not answer."""
    try:
        with connect(address) as connection:
            connection.sendall(b"version\r\n")
            answer = connection.makefile("rb").readline()
    except OSError:
        return None
    word, _, version = answer.decode("ascii", "replace").strip().partition(" ")
    return version if word == "VERSION" and version else None
