"""Servers accept as many connections as the clients of the run's largest crew open."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import pytest

from tests.servers.conftest import MakeServer
from zodbshootout.cli.main import main
from zodbshootout.errors import BAD_USAGE, UserError

KINDS = {
    "memcachedserver": ("--conn-limit=1024", "--conn-limit=3000"),
    "mysqlserver": ("--max-connections=300", "--max-connections=3000"),
    "postgresqlserver": ("max_connections=300", "max_connections=3000"),
}


@pytest.mark.parametrize(("kind", "words"), KINDS.items())
def test_a_server_accepts_three_connections_of_each_client(
    kind: str, words: tuple[str, str], make_server: MakeServer, programs: str
) -> None:
    for clients, word in zip((10, 1000), words, strict=True):
        server = make_server(f"<{kind} it>\nprograms {programs}\n</{kind}>\n", clients=clients)
        assert word in server.command()


@pytest.mark.parametrize(
    ("kind", "limit", "refusal"),
    [
        ("memcachedserver", resource.RLIMIT_NOFILE, "3100 open files"),
        ("mysqlserver", resource.RLIMIT_NOFILE, "3850 open files"),
        ("postgresqlserver", resource.RLIMIT_NPROC, "3100 processes"),
    ],
)
def test_clients_that_exceed_a_limit_of_the_machine_are_refused(
    kind: str, limit: int, refusal: str, make_server: MakeServer, programs: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def setrlimit(which: int, limits: tuple[int, int]) -> None:
        assert which == limit
        if limits[1] > 2000:
            raise ValueError("not allowed to raise maximum limit")
        allowed.append(limits[0])

    allowed: list[int] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 2000))
    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    text = f"<{kind} it>\nprograms {programs}\n</{kind}>\n"
    with pytest.raises(UserError) as error:
        make_server(text, clients=1000)
    assert str(error.value).endswith(
        f"x.conf:1: server it: for 1000 clients it needs {refusal}, but this machine allows 2000; "
        "use fewer clients (-c), or raise the limit (ulimit)"
    )
    assert allowed == []
    make_server(text, clients=100)
    (soft,) = allowed
    assert 400 <= soft <= 1150


def test_a_limit_that_is_high_enough_is_left_alone(
    make_server: MakeServer, programs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def setrlimit(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    for limits in [(4000, 4000), (resource.RLIM_INFINITY, resource.RLIM_INFINITY)]:
        monkeypatch.setattr(resource, "getrlimit", lambda _, limits=limits: limits)
        make_server(f"<mysqlserver it>\nprograms {programs}\n</mysqlserver>\n", clients=1000)


def test_a_run_with_too_many_clients_for_its_servers_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def setrlimit(*_: Any) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (2000, 2000))
    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    path = tmp_path / "x.conf"
    path.write_text(
        "%import ZEO\n<zeoserver it>\n<mappingstorage>\n</mappingstorage>\n</zeoserver>\n"
        "<zodb one>\n<clientstorage>\nserver $it\n</clientstorage>\n</zodb>\n"
    )
    assert main([str(path), "tpc", "-c", "1,1000"]) == BAD_USAGE
    refusal = "x.conf:2: server it: for 1000 clients it needs 3100 open files"
    assert refusal in capsys.readouterr().err.splitlines()[-1]
