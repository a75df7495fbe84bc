"""The servers that RelStorage uses, a database and memcached: their addresses and versions."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from zodbshootout.client.storage_info import Address, connect

SQLITE = "SQLite"
_PRODUCTS = {
    "Sqlite3Adapter": SQLITE,
    "PostgreSQLAdapter": "PostgreSQL",
    "MySQLAdapter": "MySQL",
    "OracleAdapter": "Oracle",
}
"""The product that an adapter is made for, by the name of its class or of a base class."""
_QUERIES = {
    "PostgreSQL": "SHOW server_version",
    "MySQL": "SELECT version()",
    "Oracle": "SELECT version FROM product_component_version WHERE product LIKE 'Oracle%'",
}

MEMCACHED_PORT = 11211
_NETWORK = re.compile(
    r"((inet6?|tcp):)?(?P<host>\[[^]]+\]|[^:\[\]/]+)(:(?P<port>\d+))?(:\d+)?"  # and a weight
)


def kind_of(adapter: Any) -> str | None:
    """Return the product that an adapter is made for (MySQL for MariaDB), or ``None``."""
    names = (_PRODUCTS.get(cls.__name__) for cls in type(adapter).__mro__)
    return next((name for name in names if name is not None), None)


def driver_of(adapter: Any) -> Any:
    """Return the driver of an open RelStorage adapter, or ``None`` if it has none.

    Adapters before RelStorage 3 have no attribute for it, but that for PostgreSQL keeps the method
    of the driver that opens connections.
    """
    open_connection = getattr(adapter.connmanager, "_db_connect_with_isolation", None)
    return getattr(adapter, "driver", None) or getattr(open_connection, "__self__", None)


def product_of(adapter: Any) -> tuple[str | None, str | None]:
    """Return the product that an open adapter connects to, and its version; ``None`` if unknown.

    This opens another connection to ask the server for its version.
    """
    name = kind_of(adapter)
    if name is None:
        return None, None
    if name == SQLITE:
        return name, sqlite3.sqlite_version
    version = _result(adapter, _QUERIES[name])
    if name == "MySQL" and "mariadb" in (version or "").lower():
        name = "MariaDB"
    return name, version


def _result(adapter: Any, query: str) -> str | None:
    def execute(_: Any, cursor: Any) -> str:
        cursor.execute(query)
        value = cursor.fetchone()[0]
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)

    try:
        result: str = adapter.connmanager.open_and_call(execute)
    except driver_of(adapter).driver_module.Error:  # the query may be forbidden
        return None
    return result


def memcached_addresses(servers: str | Sequence[str] | None) -> list[Address]:
    """Return the addresses in the value of ``cache-servers``, except those of other protocols."""
    words = servers.split() if isinstance(servers, str) else servers or ()
    return [address for address in map(address_of, words) if address is not None]


def address_of(text: str) -> Address | None:
    """Return the address in *text*: TCP or a Unix socket; ``None`` for UDP and other protocols."""
    path = text.removeprefix("unix:")
    if path.startswith("/"):
        return path
    match = _NETWORK.fullmatch(text)
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
