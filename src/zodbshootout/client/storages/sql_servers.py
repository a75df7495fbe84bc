"""The database servers behind RelStorage's adapters, and their versions."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

SQLITE = "SQLite"
_MYSQL = "MySQL"
_MARIADB = "MariaDB"

_PRODUCTS = {
    "Sqlite3Adapter": SQLITE,
    "PostgreSQLAdapter": "PostgreSQL",
    "MySQLAdapter": _MYSQL,
    "OracleAdapter": "Oracle",
}
"""The product that an adapter connects to, by the name of its class or of a base class."""

_QUERIES = {
    "PostgreSQL": "SHOW server_version",
    _MYSQL: "SELECT version()",
    "Oracle": "SELECT version FROM product_component_version WHERE product LIKE 'Oracle%'",
}


@dataclass(frozen=True)
class Product:
    """A database."""

    name: str
    """``PostgreSQL``, ``MySQL``, ``MariaDB``, ``Oracle`` or ``SQLite``."""
    version: str | None
    """``None`` if the server does not reveal it."""


def kind_of(adapter: Any) -> str | None:
    """Return the product that an adapter is made for (MySQL for MariaDB), ``None`` if unknown."""
    names = (_PRODUCTS.get(cls.__name__) for cls in type(adapter).__mro__)
    return next((name for name in names if name is not None), None)


def driver_of(adapter: Any) -> Any:
    """Return the driver of an open RelStorage adapter, ``None`` if it has none.

    Before RelStorage 3 an adapter does not keep it; the function that connects to PostgreSQL is a
    method of the driver.
    """
    connect = getattr(adapter.connmanager, "_db_connect_with_isolation", None)
    return getattr(adapter, "driver", None) or getattr(connect, "__self__", None)


def product_of(adapter: Any) -> Product | None:
    """Return the product that an open RelStorage adapter connects to, or ``None`` if unknown.

    Asks the server for its version, in a connection of its own.
    """
    name = kind_of(adapter)
    if name is None:
        return None
    if name == SQLITE:
        return Product(name, sqlite3.sqlite_version)
    version = _result(adapter, _QUERIES[name])
    if name == _MYSQL and version is not None and _MARIADB.lower() in version.lower():
        name = _MARIADB
    return Product(name, version)


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
