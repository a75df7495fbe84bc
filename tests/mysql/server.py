"""A server that knows no SQL but records its statements, and a driver that talks to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from relstorage.adapters.mysql.drivers import MySQLDialect

DEBIAN_12 = "10.11.19-MariaDB-0+deb12u1"
DEBIAN_SID = "9.7.4-2"
_NAMED = re.compile(r"\s*(CREATE|DROP) TABLE (\w+)")


class FakeServer:
    """A server that keeps a list of its tables and of all statements."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.statements: list[str] = []
        self.tables: set[str] = set()
        self.connections = 0

    def answer(self, statement: str) -> tuple[Sequence[str], list[tuple[str, ...]]]:
        """Return the names of columns, and rows."""
        self.statements.append(statement)
        if named := _NAMED.match(statement):
            self.tables.add(named[2])
            if named[1] == "DROP":
                self.tables.remove(named[2])
        if "version()" in statement:
            return ("version()",), [(self.version,)]
        if "TABLE STATUS" in statement:
            return ("Name", "Engine"), [(table, "InnoDB") for table in sorted(self.tables)]
        return ("is_empty",), []

    def made(self, table: str) -> list[str]:
        """Return the statements that created *table*, in order."""
        return [statement for statement in self.statements if f"CREATE TABLE {table} " in statement]


class _Cursor:
    def __init__(self, connection: _Connection) -> None:
        self.connection = connection
        self._rows: list[tuple[str, ...]] = []
        self.description: list[tuple[Any, ...]] = []

    def execute(self, statement: str, parameters: Any = None) -> None:
        columns, self._rows = self.connection.server.answer(statement)
        self.description = [(name, *[None] * 6) for name in columns]

    def fetchone(self) -> tuple[str, ...] | None:
        return self._rows[0] if self._rows else None

    def fetchall(self) -> list[tuple[str, ...]]:
        return self._rows

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self._rows)

    def close(self) -> None:
        pass


class _Connection:
    def __init__(self, server: FakeServer) -> None:
        self.server = server

    def close(self) -> None:
        pass


class FakeDriver:
    """The part of a driver that RelStorage uses before it stores or loads anything."""

    __name__ = "fake"
    Binary = bytes
    dialect = MySQLDialect()
    supports_64bit_unsigned_id = True
    cursor_arraysize = 64
    close_exceptions = disconnected_exceptions = lock_exceptions = ()
    use_replica_exceptions = illegal_operation_exceptions = ()

    def __init__(self, server: FakeServer) -> None:
        self.server = server

    def connect(self, **parameters: Any) -> _Connection:
        self.server.connections += 1
        return _Connection(self.server)

    def cursor(self, connection: _Connection, server_side: bool = False) -> _Cursor:
        return _Cursor(connection)

    def nothing(self, *_: Any) -> None:
        pass

    set_autocommit = commit = rollback = synchronize_cursor_for_rollback = nothing

    def always(self, _: Any) -> bool:
        return True

    connection_may_need_rollback = connection_may_need_commit = always
