"""Which database server is behind an adapter, and what it says of itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from zodbshootout.client.storage_info import OPERATING_SYSTEM, Cache, Place
from zodbshootout.client.storages.relstorage import RelStorageType
from zodbshootout.client.storages.sql_servers import Product, product_of


class Refused(Exception):  # noqa: N818
    """What the driver raises."""


class Adapter:
    """Of a driver whose server answers one question."""

    def __init__(self, question: str = "", answer: Any = None) -> None:
        self.driver = SimpleNamespace(driver_module=SimpleNamespace(Error=Refused), __name__="x")
        self.connmanager = SimpleNamespace(open_and_call=self.call)
        self.question, self.answer = question, answer

    def call(self, callback: Callable[[Any, Any], str]) -> str:
        return callback(None, self)

    def execute(self, question: str) -> None:
        if question != self.question:
            raise Refused(question)

    def fetchone(self) -> tuple[Any]:
        return (self.answer,)


class PostgreSQLAdapter(Adapter): ...


class MySQLAdapter(Adapter): ...


class CorrectedAdapter(MySQLAdapter): ...


class OracleAdapter(Adapter): ...


class Sqlite3Adapter(Adapter): ...


SHOW, SELECT = "SHOW server_version", "SELECT version()"
MARIADB = "10.11.6-MariaDB-0+deb12u1"


@pytest.mark.parametrize(
    ("adapter", "product", "left"),
    [
        (PostgreSQLAdapter(SHOW, "15.18 (Debian)"), ("PostgreSQL", "15.18 (Debian)"), "server"),
        (PostgreSQLAdapter(), ("PostgreSQL", None), "server"),
        (MySQLAdapter(SELECT, "8.0.36"), ("MySQL", "8.0.36"), "server"),
        (MySQLAdapter(SELECT, b"8.0.36"), ("MySQL", "8.0.36"), "server"),
        (CorrectedAdapter(SELECT, MARIADB), ("MariaDB", MARIADB), "server"),
        (MySQLAdapter(), ("MySQL", None), "server"),
        (OracleAdapter(), ("Oracle", None), "server"),
        (Sqlite3Adapter(), ("SQLite", sqlite3.sqlite_version), "page cache"),
    ],
)
def test_what_a_server_says_of_itself_and_whose_cache_is_left(
    adapter: Adapter, product: tuple[str, str | None], left: str
) -> None:
    assert product_of(adapter) == Product(*product)
    opened = RelStorageType(SimpleNamespace(_adapter=adapter))
    first, last = opened.caches_left()
    assert (str(first), last) == (f"{product[0]} {left}", OPERATING_SYSTEM)
    assert (first.place is Place.SERVER) == (left == "server")


def test_an_adapter_that_nobody_knows_connects_to_what_nobody_knows() -> None:
    assert product_of(Adapter()) is None
    opened = RelStorageType(SimpleNamespace(_adapter=Adapter()))
    assert opened.caches_left() == (Cache("types.SimpleNamespace", Place.UNKNOWN), OPERATING_SYSTEM)
    assert str(opened.caches_left()[0]) == "unknown: types.SimpleNamespace"


def test_a_version_that_is_not_told_is_left_out() -> None:
    options = SimpleNamespace(cache_servers=(), cache_module_name="")
    for adapter, told in ((PostgreSQLAdapter(), {}), (MySQLAdapter(SELECT, "9"), {"MySQL": "9"})):
        versions = RelStorageType(SimpleNamespace(_adapter=adapter, _options=options)).versions()
        assert {key: versions[key] for key in versions if key != "RelStorage"} == told


@pytest.mark.parametrize(
    ("module", "distribution"),
    [("relstorage.pylibmc_wrapper", "pylibmc"), ("memcache", "python-memcached")],
)
def test_the_client_library_of_memcached_is_one_of_the_versions_where_it_is_used(
    module: str, distribution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zodbshootout.client.storage_info._version", lambda name: f"of {name}")
    options = SimpleNamespace(cache_servers="udp:x", cache_module_name=module)
    storage = SimpleNamespace(_adapter=Adapter(), _options=options)
    assert RelStorageType(storage).versions() == {
        "RelStorage": "of RelStorage",
        distribution: f"of {distribution}",
    }
    options.cache_servers = ()
    assert set(RelStorageType(storage).versions()) == {"RelStorage"}
