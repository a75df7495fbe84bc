"""Decisions before a RelStorage is opened, and facts about an open one."""

from __future__ import annotations

from contextlib import nullcontext
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest
from relstorage import config

from zodbshootout.client import storage_types as storages
from zodbshootout.client.storage_types import relstorage
from zodbshootout.client.storage_types.relstorage import RelStorageType
from zodbshootout.client.storage_types.zodburi import _with_driver
from zodbshootout.model.outcome import Unsupported
from zodbshootout.model.storage_facts import StorageInfo
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


@pytest.mark.parametrize(
    ("driver", "patched", "refused"),
    [
        ("psycopg2", True, "the driver psycopg2 refuses to run with greenlets; use gevent"),
        ("psycopg2", False, None),
        ("gevent psycopg2", False, "the driver gevent psycopg2 refuses to run without --gevent"),
        ("gevent psycopg2", True, None),
        ("auto", True, None),
        ("pg8000", True, None),
    ],
)
@pytest.mark.parametrize("is_uri", [False, True])
def test_a_psycopg2_driver_runs_either_with_or_without_greenlets(
    driver: str, patched: bool, refused: str | None, is_uri: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relstorage, "_patched_by_gevent", lambda: patched)
    adapter = config.PostgreSQLAdapterFactory(Settings(driver=driver))
    section = config.RelStorageFactory(Settings(adapter=adapter))
    with pytest.raises(Unsupported, match=refused) if refused else nullcontext():
        if is_uri:
            _with_driver(f"postgres://u:p@h:1/x?driver={driver}")
        else:
            storages.settle(section)


class Adapter:
    connmanager = None


class Sqlite3Adapter(Adapter): ...


class PostgreSQLAdapter(Adapter): ...


def facts(adapter: Any, directory: str | None = None) -> StorageInfo:
    options = SimpleNamespace(
        cache_local_dir=directory, pack_gc=True, pack_prepack_only=False, pack_skip_prepack=False
    )
    return RelStorageType(SimpleNamespace(_adapter=adapter, _options=options)).facts()


@pytest.mark.parametrize(("directory", "setting"), [(None, ""), ("/x", "cache-local-dir")])
def test_a_cache_with_a_directory_is_persistent(directory: str | None, setting: str) -> None:
    assert facts(Adapter(), directory).persistent_cache == setting


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
    flaw = facts(adapter).retry_flaw
    assert (flaw is not None) == flawed
    assert not flawed or f"RelStorage {version} on SQLite" in str(flaw)
