from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.servers.conftest import MakeServer
from zodbshootout.errors import UserError
from zodbshootout.servers import ServerFailed
from zodbshootout.servers.server import Server


def section(programs: str, more: str = "") -> str:
    return f"<postgresqlserver it>\nprograms {programs}\n{more}</postgresqlserver>\n"


def test_options_of_the_run_come_after_the_settings_of_the_section(
    make_server: MakeServer, programs: str
) -> None:
    settings = "<settings>\nshared_buffers 64MB\nfsync off\nlog_line_prefix %m = '%p'\n</settings>"
    server = make_server(section(programs, f"{settings}\n"))
    assert server.command() == [
        f"{programs}/postgres",
        "-D", f"{server.directory.path}/data",
        "-c", "max_connections=300",
        "-c", "shared_buffers=64MB",
        "-c", "fsync=off",
        "-c", "log_line_prefix=%m = '%p'",
        "-c", f"hba_file={server.directory.path}/pg_hba.conf",
        "-c", "listen_addresses=127.0.0.1",
        "-c", f"port={server.port}",
        "-c", "unix_socket_directories=",
    ]  # fmt: skip


def test_a_setting_can_override_the_number_of_connections(
    make_server: MakeServer, programs: str
) -> None:
    server = make_server(section(programs, "<settings>\nMax_Connections 7\n</settings>\n"))
    assert [word for word in server.command() if "max_connections" in word] == ["max_connections=7"]


@pytest.mark.parametrize(("kept", "synced"), [("", False), ("directory {}/kept\n", True)])
def test_initdb_syncs_only_data_that_are_kept(
    kept: str, synced: bool, make_server: MakeServer, programs: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    ran = record_runs(monkeypatch)
    data = tmp_path / "new"
    data.mkdir()
    server = make_server(section(programs, kept.format(tmp_path)))
    server.initialize(data)  # type: ignore[attr-defined]
    (((program, *words), _),) = ran
    assert program == f"{programs}/initdb"
    assert f"--pgdata={data}" in words
    assert ("--no-sync" in words) != synced


def record_runs(
    monkeypatch: pytest.MonkeyPatch, printed: str = ""
) -> list[tuple[Sequence[str], str]]:
    ran: list[tuple[Sequence[str], str]] = []

    def run(self: Server, command: Sequence[str], standard_input: str = "") -> str:
        ran.append((command, standard_input))
        return printed

    monkeypatch.setattr(Server, "run", run)
    return ran


def test_database_and_user_names_are_quoted_in_statements(
    make_server: MakeServer, programs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = record_runs(monkeypatch)
    names = "database we\"ird\ndatabase a_b\nuser we'ird\nuser Some One\n"
    server = make_server(section(programs, names))
    server.create_accounts()  # type: ignore[attr-defined]
    ((command, statements),) = ran
    assert command == [f"{programs}/postgres", "--single", "-D", f"{server.directory.path}/data",
                       "postgres"]  # fmt: skip
    password = server.password
    assert statements.splitlines() == [
        'CREATE ROLE "zodbshootout owner"',
        'CREATE ROLE "we\'ird"',
        f"ALTER ROLE \"we'ird\" LOGIN PASSWORD '{password}'",
        'GRANT "zodbshootout owner" TO "we\'ird"',
        'ALTER ROLE "we\'ird" SET role = "zodbshootout owner"',
        'CREATE ROLE "Some One"',
        f"ALTER ROLE \"Some One\" LOGIN PASSWORD '{password}'",
        'GRANT "zodbshootout owner" TO "Some One"',
        'ALTER ROLE "Some One" SET role = "zodbshootout owner"',
        'CREATE DATABASE "we""ird" OWNER "zodbshootout owner"',
        'ALTER DATABASE "we""ird" OWNER TO "zodbshootout owner"',
        'CREATE DATABASE "a_b" OWNER "zodbshootout owner"',
        'ALTER DATABASE "a_b" OWNER TO "zodbshootout owner"',
    ]


def test_only_errors_other_than_already_exists_are_failures(
    make_server: MakeServer, programs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = make_server(section(programs))
    there = '2026-01-01 00:00:00 UTC [7] ERROR:  role "zodbshootout" already exists\n'
    record_runs(monkeypatch, there)
    server.create_accounts()  # type: ignore[attr-defined]
    record_runs(monkeypatch, f"{there}2026 [7] ERROR:  permission denied\n")
    with pytest.raises(ServerFailed, match=r"^could not be prepared: permission denied$"):
        server.create_accounts()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("pid", "status", "ready"),
    [
        (1, None, False),
        (1, "starting", False),
        (1, "ready   ", True),
        (1, "stopping", False),
        (2, "ready   ", False),
    ],
)
def test_a_server_is_ready_if_its_own_pid_file_says_so(
    pid: int, status: str | None, ready: bool, make_server: MakeServer, programs: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(Server, "pid", 1)
    server = make_server(section(programs))
    assert not server.is_ready()
    data = server.directory.path / "data"
    data.mkdir(parents=True)
    lines = [str(pid), str(data), "1", "1", "", "127.0.0.1", "1 2", *([status] if status else [])]
    (data / "postmaster.pid").write_text("\n".join(lines) + "\n")
    assert server.is_ready() == ready


def test_the_superuser_is_refused_as_a_user_for_clients(
    make_server: MakeServer, programs: str
) -> None:
    with pytest.raises(UserError) as caught:
        make_server(section(programs, "user someone\nuser postgres\n"))
    assert str(caught.value).endswith(
        "x.conf:4: server it: clients cannot log in as postgres, its superuser; name another user"
    )
