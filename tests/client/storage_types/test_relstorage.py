"""Decisions before a RelStorage is opened, and facts about an open one."""

from __future__ import annotations

from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest
from relstorage import config

from zodbshootout.client import storage_types as storages
from zodbshootout.client.storage_types import relstorage
from zodbshootout.client.storage_types.relstorage import RelStorageType
from zodbshootout.mysql.factory import MySQLOrMariaDBAdapterFactory


class Settings(SimpleNamespace):
    def getSectionName(self) -> str:  # noqa: N802
        return "x"


@pytest.mark.parametrize("adapter", [config.MySQLAdapterFactory, MySQLOrMariaDBAdapterFactory])
@pytest.mark.parametrize(
    ("configured", "installed", "patched", "chosen"),
    [
        ("auto", True, False, "MySQLdb"),
        ("auto", True, True, "gevent MySQLdb"),
        ("auto", False, False, "auto"),
        ("PyMySQL", True, True, "PyMySQL"),
    ],
)
def test_auto_becomes_the_mysqldb_driver_that_suits_if_it_is_installed(
    adapter: Any,
    configured: str,
    installed: bool,
    patched: bool,
    chosen: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    specs: dict[str, Any] = {"MySQLdb": find_spec("sys") if installed else None}
    monkeypatch.setattr(relstorage, "find_spec", specs.__getitem__)
    monkeypatch.setattr(relstorage, "_patched_by_gevent", lambda: patched)
    section = config.RelStorageFactory(Settings(adapter=adapter(Settings(driver=configured))))
    storages.settle(section)
    assert section.config.adapter.config.driver == chosen


def test_relstorage_chooses_the_driver_if_it_ranks_all_of_them() -> None:
    section = config.RelStorageFactory(
        Settings(adapter=config.PostgreSQLAdapterFactory(Settings(driver="auto")))
    )
    storages.settle(section)
    assert section.config.adapter.config.driver == "auto"


def test_corrections_are_those_of_the_adapter_or_none() -> None:
    ours = SimpleNamespace(_adapter=SimpleNamespace(corrections=("this", "that")))
    plain = SimpleNamespace(_adapter=SimpleNamespace())
    assert RelStorageType(ours).corrections() == ("this", "that")
    assert RelStorageType(plain).corrections() == ()


class Sqlite3Adapter: ...


class PostgreSQLAdapter: ...


@pytest.mark.parametrize(
    ("adapter", "version", "flawed"),
    [
        (Sqlite3Adapter(), "4.3.0", True),
        (Sqlite3Adapter(), "4.3.1", False),
        (PostgreSQLAdapter(), "4.3.0", False),
    ],
)
def test_only_relstorage_before_4_3_1_on_sqlite_has_a_retry_flaw(
    adapter: Any, version: str, flawed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relstorage, "version", lambda _: version)
    flaw = RelStorageType(SimpleNamespace(_adapter=adapter)).retry_flaw()
    assert (flaw is not None) == flawed
    assert not flawed or f"RelStorage {version} on SQLite" in str(flaw)
