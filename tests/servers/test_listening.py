"""Servers that listen on an address other than the usual loopback address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers.clients import USE
from tests.servers.conftest import MakeServer
from zodbshootout.config.source import Source
from zodbshootout.errors import UserError
from zodbshootout.servers import address
from zodbshootout.servers.address import given_names

ELSEWHERE = "listen 203.0.113.1\n"
"""An address that no host has: it is reserved for documentation."""
TEXT = "<zeoserver it>\n{}<mappingstorage>\n</mappingstorage>\n</zeoserver>\n"


def names_of(place: Path, listen: str) -> Mapping[str, str]:
    source = Source(place / "x.conf", TEXT.format(f"listen {listen}\n"))
    with given_names(source, place) as names:
        return dict(names)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let any address pass for one of this host's."""

    @contextmanager
    def reserved_port(_: str) -> Iterator[int]:
        yield 4321

    monkeypatch.setattr(address, "reserved_port", reserved_port)


def test_the_address_of_a_server_is_its_listen_address(tmp_path: Path) -> None:
    names = names_of(tmp_path, "127.0.0.2")
    assert names["it_host"] == "127.0.0.2"
    assert names["it"] == f"127.0.0.2:{names['it_port']}"


@pytest.mark.usefixtures("elsewhere")
def test_an_ipv6_address_is_in_brackets_before_its_port(tmp_path: Path) -> None:
    names = names_of(tmp_path, "2001:db8::1")
    assert (names["it"], names["it_host"]) == ("[2001:db8::1]:4321", "2001:db8::1")


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("0.0.0.0", "clients cannot connect to 0.0.0.0; give listen an address of this host"),
        ("0", "clients cannot connect to 0; give listen an address of this host"),
        ("203.0.113.1", "listen 203.0.113.1 is not an address of this host: Cannot assign"),
        ("no host", "listen no host is not an address of this host: "),
        ("a..b", "listen a..b is not an address of this host: "),
    ],
)
def test_an_address_that_is_not_this_hosts_is_refused(
    address: str, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as error:
        names_of(tmp_path, address)
    assert f"x.conf: server it: {reason}" in str(error.value)


@pytest.mark.usefixtures("elsewhere")
def test_other_hosts_reach_zeo_only_with_a_certificate(make_server: MakeServer) -> None:
    with pytest.raises(UserError, match=r"anyone on that network could use it; set ssl"):
        make_server(TEXT.format(ELSEWHERE))
    server = make_server("%import ZEO\n" + TEXT.format(ELSEWHERE + "ssl true\n") + USE)
    server.directory.path.mkdir()
    server.prepare()
    text = (server.directory.path / "zeo.conf").read_text()
    assert "address 203.0.113.1:4321\n" in text
    assert "<ssl>" in text


@pytest.mark.usefixtures("elsewhere")
def test_other_hosts_reach_databases_only_with_a_password(
    make_server: MakeServer, programs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = f"<{{}} it>\nprograms {programs}\n{ELSEWHERE}</{{}}>\n"
    postgresql = make_server(section.replace("{}", "postgresqlserver"))
    monkeypatch.setattr(type(postgresql), "create_accounts", lambda _: None)
    (postgresql.directory.path / "data").mkdir(parents=True)
    postgresql.prepare()
    access = (postgresql.directory.path / "pg_hba.conf").read_text()
    assert access == "host all all all scram-sha-256\n"
    assert "listen_addresses=203.0.113.1" in " ".join(postgresql.command())
    mysql = make_server(section.replace("{}", "mysqlserver"))
    mysql.create_accounts()  # type: ignore[attr-defined]
    accounts = (mysql.directory.path / "accounts.sql").read_text()
    assert "CREATE USER IF NOT EXISTS 'zodbshootout'@'%'" in accounts
    assert f"IDENTIFIED BY '{mysql.password}'" in accounts
