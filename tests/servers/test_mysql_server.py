from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.servers.conftest import MakeServer
from zodbshootout.servers.server import Server

VERSIONS = {
    "mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)": True,
    "/usr/sbin/mysqld  Ver 8.0.40 for Linux on x86_64 (MySQL Community Server - GPL)": False,
}


def section(programs: str, more: str = "") -> str:
    return f"<mysqlserver it>\nprograms {programs}\n{more}</mysqlserver>\n"


def test_options_of_the_run_come_after_the_settings_of_the_section(
    make_server: MakeServer, programs: str
) -> None:
    settings = "<settings>\ninnodb_buffer_pool_size 64M\nskip-log-bin\n</settings>"
    server = make_server(section(programs, f"{settings}\n"))
    assert server.command() == [
        f"{programs}/mariadbd",
        "--no-defaults",
        "--skip-name-resolve",
        "--max-connections=300",
        "--innodb-buffer-pool-load-at-startup=OFF",
        "--innodb_buffer_pool_size=64M",
        "--skip-log-bin",
        f"--datadir={server.directory.path}/data",
        f"--init-file={server.directory.path}/accounts.sql",
        "--bind-address=127.0.0.1",
        f"--port={server.port}",
        "--socket=mysql.sock",
        "--pid-file=mysql.pid",
        "--loose-mysqlx=OFF",
    ]


def test_database_and_user_names_are_quoted_in_statements(
    make_server: MakeServer, programs: str
) -> None:
    names = "database we`ird\ndatabase a_b%c\nuser we'ird\nuser back\\slash\n"
    server = make_server(section(programs, names))
    server.directory.path.mkdir(parents=True)
    server.create_accounts()  # type: ignore[attr-defined]
    path = server.directory.path / "accounts.sql"
    assert path.stat().st_mode & 0o077 == 0
    password = server.password
    assert path.read_text().splitlines() == [
        "CREATE DATABASE IF NOT EXISTS `we``ird`;",
        "CREATE DATABASE IF NOT EXISTS `a_b%c`;",
        "CREATE USER IF NOT EXISTS 'we\\'ird'@'127.0.0.1';",
        f"ALTER USER 'we\\'ird'@'127.0.0.1' IDENTIFIED BY '{password}';",
        "GRANT ALL ON `we``ird`.* TO 'we\\'ird'@'127.0.0.1';",
        "GRANT ALL ON `a\\_b\\%c`.* TO 'we\\'ird'@'127.0.0.1';",
        "GRANT PROCESS ON *.* TO 'we\\'ird'@'127.0.0.1';",
        "CREATE USER IF NOT EXISTS 'back\\\\slash'@'127.0.0.1';",
        f"ALTER USER 'back\\\\slash'@'127.0.0.1' IDENTIFIED BY '{password}';",
        "GRANT ALL ON `we``ird`.* TO 'back\\\\slash'@'127.0.0.1';",
        "GRANT ALL ON `a\\_b\\%c`.* TO 'back\\\\slash'@'127.0.0.1';",
        "GRANT PROCESS ON *.* TO 'back\\\\slash'@'127.0.0.1';",
    ]


@pytest.mark.parametrize(("version", "maria"), VERSIONS.items())
def test_mariadb_and_mysql_each_initialize_data_with_their_own_program(
    version: str, maria: bool, make_server: MakeServer, programs: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    server_program = Path(programs, "mariadbd" if maria else "mysqld")
    Path(programs, "mariadbd").unlink()
    server_program.touch(mode=0o755)
    server_program.write_text(f"#!/bin/sh\necho '{version}'\n")
    ran: list[Sequence[str]] = []
    monkeypatch.setattr(Server, "run", lambda _, command: ran.append(command))
    server = make_server(section(programs))
    server.initialize(Path("/the/data"))  # type: ignore[attr-defined]
    ((program, *words),) = ran
    assert words[0] == "--no-defaults"
    assert "--datadir=/the/data" in words
    if maria:
        assert program == f"{programs}/mariadb-install-db"
        assert "--auth-root-authentication-method=socket" in words
        assert "--skip-test-db" in words
    else:
        assert program == str(server_program)
        assert "--initialize" in words
