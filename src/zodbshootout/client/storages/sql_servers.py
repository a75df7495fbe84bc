"""The database servers behind RelStorage's adapters: what they are and of which version."""

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
"""What an adapter connects to, by the name of its class or of one that it is derived from."""

_QUESTIONS = {
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
    """``None`` where it could not be had."""


def kind_of(adapter: Any) -> str | None:
    """Return what an adapter is made for, with MySQL's for MariaDB, ``None`` if not known."""
    names = (_PRODUCTS.get(cls.__name__) for cls in type(adapter).__mro__)
    return next((name for name in names if name is not None), None)


def driver_of(adapter: Any) -> Any:
    """Return the driver of a RelStorage adapter that is open, ``None`` where it has none.

    Before RelStorage 3 an adapter does not keep it; what connects to PostgreSQL is a method of it.
    """
    connect = getattr(adapter.connmanager, "_db_connect_with_isolation", None)
    return getattr(adapter, "driver", None) or getattr(connect, "__self__", None)


def product_of(adapter: Any) -> Product | None:
    """Return what a RelStorage adapter that is open connects to, or ``None`` if that is not known.

    The server is asked, in a connection of its own.
    """
    name = kind_of(adapter)
    if name is None:
        return None
    if name == SQLITE:
        return Product(name, sqlite3.sqlite_version)
    version = _asked(adapter, _QUESTIONS[name])
    if name == _MYSQL and version is not None and _MARIADB.lower() in version.lower():
        name = _MARIADB
    return Product(name, version)


def _asked(adapter: Any, question: str) -> str | None:
    def ask(_: Any, cursor: Any) -> str:
        cursor.execute(question)
        return _text(cursor.fetchone()[0])

    try:
        answer: str = adapter.connmanager.open_and_call(ask)
    except driver_of(adapter).driver_module.Error:  # what the server is asked may be forbidden
        return None
    return answer


def _text(answer: Any) -> str:
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else str(answer)
