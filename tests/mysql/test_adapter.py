from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from relstorage.adapters.mysql import MySQLAdapter
from relstorage.adapters.mysql.schema import MySQLSchemaInstaller
from relstorage.options import Options

from tests.mysql.server import DEBIAN_12, DEBIAN_SID, FakeDriver, FakeServer
from zodbshootout.config.configuration import parse
from zodbshootout.config.source import Source
from zodbshootout.mysql.adapter import SchemaInstaller

NO_KEYS = "object_state without inline foreign keys"
AS_MYSQL = "MariaDB 10.11.19 reported as MySQL 5.7.44"
IMPORT = "%import zodbshootout.mysql\n"


def adapter_for(
    server: FakeServer,
    monkeypatch: pytest.MonkeyPatch,
    *,
    keep_history: bool,
    imports: str = IMPORT,
    section: str = "mysql-or-mariadb",
) -> Any:
    """Return the adapter of a configuration section, connected to *server*."""
    monkeypatch.setattr(MySQLAdapter, "_select_driver", lambda _: FakeDriver(server))
    text = (
        f"{imports}<zodb x>\n<relstorage>\n<{section}>\nhost here\nport 1234\npasswd secret\n"
        f"</{section}>\n</relstorage>\n</zodb>\n"
    )
    ((_, database),) = parse(Source(Path("x.conf"), text), {}).contenders
    return database.config.storage.config.adapter.create(Options(keep_history=keep_history))


@pytest.mark.parametrize(
    ("version", "keep_history", "corrections"),
    [
        (DEBIAN_12, True, (NO_KEYS, AS_MYSQL)),
        (DEBIAN_12, False, (AS_MYSQL,)),
        ("10.4.34-MariaDB", True, ("MariaDB 10.4.34 reported as MySQL 5.7.44",)),
        (DEBIAN_SID, True, (NO_KEYS,)),
        (DEBIAN_SID, False, ()),
        ("8.4.6", True, ()),
        ("8.4.6", False, ()),
    ],
)
def test_an_adapter_makes_and_records_only_the_corrections_the_server_needs(
    version: str,
    keep_history: bool,
    corrections: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = FakeServer(version)
    adapter = adapter_for(server, monkeypatch, keep_history=keep_history)
    adapter.schema.prepare()
    (statement,) = server.made("object_state")
    assert ("REFERENCES" in statement) == (keep_history and NO_KEYS not in corrections)
    assert adapter.corrections == corrections
    assert adapter.server_version == version


def test_all_statements_but_one_are_those_of_relstorage(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = FakeServer(DEBIAN_SID), FakeServer(DEBIAN_SID)
    adapter_for(ours, monkeypatch, keep_history=True).schema.prepare()
    plain = adapter_for(
        theirs, monkeypatch, keep_history=True, imports="%import relstorage\n", section="mysql"
    )
    assert type(plain) is MySQLAdapter
    plain.schema.prepare()
    # Our adapter asks for the version before it makes the table, RelStorage's afterwards.
    assert sorted(set(theirs.statements) - set(ours.statements)) == theirs.made("object_state")
    assert sorted(set(ours.statements) - set(theirs.statements)) == ours.made("object_state")


def test_the_corrections_hold_in_every_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer(DEBIAN_12)
    adapter = adapter_for(server, monkeypatch, keep_history=True)
    another = adapter.new_instance().new_instance()
    assert another.version_detector is adapter.version_detector
    another.schema.prepare()
    assert another.corrections == adapter.corrections == (NO_KEYS, AS_MYSQL)
    assert "REFERENCES" not in server.made("object_state")[0]


def test_the_corrections_hold_after_zap_all(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer(DEBIAN_12)
    adapter_for(server, monkeypatch, keep_history=True).schema.prepare()
    # Another process zaps, and the tables exist when it starts.
    adapter = adapter_for(server, monkeypatch, keep_history=True)
    adapter.schema.prepare()
    adapter.schema.zap_all()
    first, second = server.made("object_state")
    assert second == first
    assert "REFERENCES" not in second
    assert adapter.corrections == (NO_KEYS, AS_MYSQL)


def test_an_adapter_asks_the_server_for_its_version_only_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = FakeServer(DEBIAN_12)
    adapter = adapter_for(server, monkeypatch, keep_history=True)  # as with create-schema false
    assert server.connections == 0
    assert adapter.corrections == (NO_KEYS, AS_MYSQL)
    assert adapter.new_instance().server_version == DEBIAN_12
    assert server.connections == 1


def test_no_correction_is_recorded_if_relstorage_has_no_inline_references(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, free = MySQLSchemaInstaller.CREATE_OBJECT_STATE_TMPLS
    monkeypatch.setattr(MySQLSchemaInstaller, "CREATE_OBJECT_STATE_TMPLS", (free, free))
    adapter = adapter_for(FakeServer(DEBIAN_SID), monkeypatch, keep_history=True)
    adapter.schema.prepare()
    assert adapter.corrections == ()


def test_no_correction_is_recorded_if_relstorage_has_no_template(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def make(_: Any, cursor: Any) -> None:
        cursor.execute("CREATE TABLE object_state (tid BIGINT UNSIGNED)")

    base = MySQLSchemaInstaller.__mro__[1]
    monkeypatch.setattr(base, "_create_object_state", make)
    monkeypatch.delattr(base, "CREATE_OBJECT_STATE_TMPL")
    adapter = adapter_for(FakeServer(DEBIAN_SID), monkeypatch, keep_history=True)
    adapter.schema.prepare()
    assert adapter.corrections == ()


@pytest.mark.parametrize("keep_history", [True, False])
def test_stored_procedures_are_relstorages_even_if_our_installer_comes_first(
    keep_history: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = adapter_for(FakeServer(DEBIAN_12), monkeypatch, keep_history=keep_history)
    parts = {
        "driver": adapter.driver,
        "connmanager": adapter.connmanager,
        "runner": adapter.runner,
        "keep_history": keep_history,
        "version_detector": adapter.version_detector,
    }
    monkeypatch.setattr(MySQLSchemaInstaller, "_PROCEDURES", {})
    ours, plain = SchemaInstaller(**parts), MySQLSchemaInstaller(**parts)
    assert "lock_objects_and_detect_conflicts" in plain.procedures
    assert ours.procedures == plain.procedures


@pytest.mark.parametrize(
    "imports",
    [IMPORT, f"%import relstorage\n{IMPORT}", f"{IMPORT}%import relstorage\n"],
)
def test_the_section_accepts_the_keys_of_mysql(
    imports: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = FakeServer(DEBIAN_12)
    adapter = adapter_for(server, monkeypatch, keep_history=False, imports=imports)
    assert adapter._params == {"host": "here", "port": 1234, "passwd": "secret"}
    assert "secret" not in str(adapter)
