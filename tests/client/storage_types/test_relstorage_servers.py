"""The servers behind a RelStorage: their addresses and reported versions."""

from __future__ import annotations

import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from zodbshootout.client import reachability
from zodbshootout.client.database import Database
from zodbshootout.client.reachability import Address
from zodbshootout.client.storage_types.relstorage import RelStorageType
from zodbshootout.client.storage_types.relstorage_servers import (
    memcached_address,
    memcached_versions,
    product_of,
    promise_of,
    vacuum,
    version_of,
)
from zodbshootout.model.outcome import CheckFailed
from zodbshootout.model.specification import Storage
from zodbshootout.model.storage_facts import OPERATING_SYSTEM, Durability


class Refused(Exception):  # noqa: N818
    """The exception that the driver raises."""


class Adapter:
    """An adapter with a driver whose server answers one query, or several."""

    def __init__(self, query: str = "", answer: Any = None, **answers: Any) -> None:
        self.driver = SimpleNamespace(driver_module=SimpleNamespace(Error=Refused), __name__="x")
        self.connmanager = SimpleNamespace(open_and_call=self.call)
        self.answers = {query: answer, **answers}
        self.answer: Any = None

    def call(self, callback: Callable[[Any, Any], str]) -> str:
        return callback(None, self)

    def execute(self, query: str) -> None:
        setting = query.rpartition(" ")[2].removeprefix("@@")
        known = query if query in self.answers else setting
        if known not in self.answers:
            raise Refused(query)
        self.answer = self.answers[known]

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
def test_an_adapter_has_a_product_a_version_and_a_cache_that_is_left(
    adapter: Adapter, product: tuple[str, str | None], left: str
) -> None:
    assert product_of(adapter) == product
    opened = RelStorageType(SimpleNamespace(_adapter=adapter))
    assert opened.caches_left() == (f"{product[0]} {left}", OPERATING_SYSTEM)


def test_an_unknown_adapter_has_an_unknown_product_and_unknown_caches() -> None:
    assert product_of(Adapter()) == (None, None)
    opened = RelStorageType(SimpleNamespace(_adapter=Adapter()))
    assert opened.caches_left() == ("unknown: types.SimpleNamespace", OPERATING_SYSTEM)


PROMISES = {
    "sqlite": (Sqlite3Adapter(synchronous=2, journal_mode="wal"), "synchronous FULL"),
    "sqlite, extra": (Sqlite3Adapter(synchronous=3, journal_mode="wal"), "synchronous EXTRA"),
    "sqlite, no WAL": (
        Sqlite3Adapter(synchronous=3, journal_mode="delete"),
        "synchronous EXTRA, journal_mode delete",
    ),
    "postgresql": (
        PostgreSQLAdapter(fsync="on", synchronous_commit="remote_write"),
        "synchronous_commit remote_write",
    ),
    "mysql": (
        MySQLAdapter(innodb_flush_log_at_trx_commit=1, log_bin=0, sync_binlog=0),
        "innodb_flush_log_at_trx_commit 1",
    ),
    "mysql, binary log": (
        CorrectedAdapter(innodb_flush_log_at_trx_commit=b"1", log_bin=b"1", sync_binlog=b"1"),
        "innodb_flush_log_at_trx_commit 1, sync_binlog 1",
    ),
}
BROKEN_PROMISES = {
    "sqlite": (Sqlite3Adapter(synchronous=1, journal_mode="wal"), "synchronous NORMAL"),
    "sqlite, off": (Sqlite3Adapter(synchronous=0, journal_mode="wal"), "synchronous OFF"),
    "sqlite, no WAL": (
        Sqlite3Adapter(synchronous=2, journal_mode="delete"),
        "synchronous FULL, journal_mode delete",
    ),
    "postgresql": (
        PostgreSQLAdapter(fsync="on", synchronous_commit="off"),
        "synchronous_commit off",
    ),
    "postgresql, no fsync": (
        PostgreSQLAdapter(fsync="off", synchronous_commit="on"),
        "fsync off, which may even corrupt the database",
    ),
    "mysql": (
        MySQLAdapter(innodb_flush_log_at_trx_commit=2, log_bin=0, sync_binlog=0),
        "innodb_flush_log_at_trx_commit 2",
    ),
    "mysql, binary log": (
        MySQLAdapter(innodb_flush_log_at_trx_commit=1, log_bin=1, sync_binlog=100),
        "sync_binlog 100",
    ),
}


@pytest.mark.parametrize(("adapter", "detail"), PROMISES.values(), ids=list(PROMISES))
def test_these_settings_have_each_commit_synced(adapter: Adapter, detail: str) -> None:
    assert promise_of(adapter) == (Durability.SYNCED, detail)


@pytest.mark.parametrize(("adapter", "detail"), BROKEN_PROMISES.values(), ids=list(BROKEN_PROMISES))
def test_with_these_settings_the_last_commits_may_be_lost(adapter: Adapter, detail: str) -> None:
    assert promise_of(adapter) == (Durability.MAY_LOSE, detail)


@pytest.mark.parametrize(
    "adapter",
    [
        Sqlite3Adapter(synchronous=2),
        PostgreSQLAdapter(fsync="on"),
        MySQLAdapter(innodb_flush_log_at_trx_commit=1),
        OracleAdapter(),
        Adapter(),
    ],
    ids=["sqlite", "postgresql", "mysql", "oracle", "other"],
)
def test_durability_is_unknown_if_a_query_fails(adapter: Adapter) -> None:
    assert promise_of(adapter)[0] is Durability.UNKNOWN


def test_versions_omit_a_server_that_does_not_report_its_version() -> None:
    options = SimpleNamespace(cache_servers=(), cache_module_name="")
    for adapter, product in (
        (PostgreSQLAdapter(), {}),
        (MySQLAdapter(SELECT, "9"), {"MySQL": "9"}),
    ):
        versions = RelStorageType(SimpleNamespace(_adapter=adapter, _options=options)).versions()
        assert {key: versions[key] for key in versions if key != "RelStorage"} == product


@pytest.mark.parametrize(
    ("module", "distribution"),
    [("relstorage.pylibmc_wrapper", "pylibmc"), ("memcache", "python-memcached")],
)
def test_versions_include_the_memcached_client_library_if_it_is_used(
    module: str, distribution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zodbshootout.versions._version", lambda name: f"of {name}")
    options = SimpleNamespace(cache_servers="udp:x", cache_module_name=module)
    storage = SimpleNamespace(_adapter=Adapter(), _options=options)
    assert RelStorageType(storage).versions() == {
        "RelStorage": "of RelStorage",
        distribution: f"of {distribution}",
    }
    options.cache_servers = ()
    assert set(RelStorageType(storage).versions()) == {"RelStorage"}


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("mc.example.org:11212", ("mc.example.org", 11212)),
        ("127.0.0.1", ("127.0.0.1", 11211)),
        ("localhost:11212:3", ("localhost", 11212)),
        ("inet:localhost:1", ("localhost", 1)),
        ("[::1]:11212", ("::1", 11212)),
        ("[::1]", ("::1", 11211)),
        ("inet6:[::1]:2", ("::1", 2)),
        ("unix:/run/mc.sock", "/run/mc.sock"),
        ("/run/mc.sock", "/run/mc.sock"),
        ("udp:localhost:11211", None),
    ],
)
def test_memcached_addresses_are_read_as_client_libraries_read_them(
    text: str, address: Address | None
) -> None:
    assert memcached_address(text) == address


Answer = Callable[[bytes], bytes]


@contextmanager
def serving(answer: Answer) -> Iterator[tuple[str, int]]:
    """Run a server that answers the first line of every connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(answer(connection.makefile("rb").readline()))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def memcached(version: str) -> Answer:
    return lambda line: (
        f"VERSION {version}\r\n".encode() if line == b"version\r\n" else b"ERROR\r\n"
    )


def unused() -> tuple[str, int]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        address: tuple[str, int] = listener.getsockname()
    return address


def test_each_version_of_several_memcached_servers_is_reported_once() -> None:
    with (
        serving(memcached("1.6.18")) as one,
        serving(memcached("1.6.9")) as another,
        serving(memcached("1.6.18")) as third,
    ):
        assert version_of(one) == "1.6.18"
        assert memcached_versions([one, unused(), another, third]) == ["1.6.18", "1.6.9"]


@pytest.mark.parametrize(
    "answer", [lambda _: b"", lambda _: b"ERROR\r\n", lambda _: b"VERSION\r\n", lambda _: b"\xff"]
)
def test_an_answer_without_a_version_gives_no_version(answer: Answer) -> None:
    with serving(answer) as address:
        assert version_of(address) is None


def test_an_unreachable_or_silent_server_has_no_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert version_of(unused()) is None
    assert version_of(str(tmp_path / "no.sock")) is None
    monkeypatch.setattr(reachability, "TIMEOUT", 0.01)
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        assert version_of(listener.getsockname()) is None


def test_database_info_includes_memcached_if_it_is_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "%import relstorage\n<zodb x>\n<relstorage>\n<sqlite3>\n"
        f"data-dir {tmp_path}/s\n</sqlite3>\n</relstorage>\n</zodb>\n"
    )
    with serving(memcached("1.6.18")) as address, Database(Storage(text)) as database:
        assert "memcached" not in database.info().versions
        options = database.db.storage._options
        monkeypatch.setattr(options, "cache_servers", f"{address[0]}:{address[1]}", raising=False)
        info = database.info()
        assert info.versions["memcached"] == "1.6.18"
        assert "memcached" in database.own_caches()


class Vacuumed:
    """An adapter whose connection and cursor note what is done with them."""

    def __init__(self, kind: str = "note", message: str = "doing recreate") -> None:
        self.connmanager = SimpleNamespace(open_and_call=lambda do: do(self, self))
        self.did: list[str] = []
        self.answer = [(b"x.object_state", b"optimize", kind.encode(), message.encode())]

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "autocommit":
            self.did.append(f"autocommit {value}")

    def rollback(self) -> None:
        self.did.append("rollback")

    def execute(self, query: str) -> None:
        self.did.append(query)

    def fetchall(self) -> list[Any]:
        return self.answer if self.did[-1].startswith("OPTIMIZE") else [(b"object_state",)]


def vacuumed(adapter: str, *answer: str) -> Any:
    """Return an adapter of that class."""
    return type(adapter, (Vacuumed,), {})(*answer)


def test_a_server_vacuums_outside_of_transactions() -> None:
    adapter = vacuumed("PostgreSQLAdapter")
    assert vacuum(adapter)
    assert adapter.did == ["rollback", "autocommit True", "VACUUM (ANALYZE)"]


def test_all_tables_of_mysql_are_optimized_and_its_refusal_is_reported() -> None:
    adapter = vacuumed("MySQLAdapter")
    vacuum(adapter)
    assert adapter.did[1:] == ["OPTIMIZE TABLE `object_state`"]
    with pytest.raises(CheckFailed, match="OPTIMIZE TABLE object_state: disk full"):
        vacuum(vacuumed("MySQLAdapter", "Error", "disk full"))


def test_a_database_whose_vacuum_is_not_known_says_so() -> None:
    assert not vacuum(vacuumed("OracleAdapter"))
    assert not vacuum(SimpleNamespace())
