from __future__ import annotations

import pytest

from tests.servers.conftest import MakeServer
from zodbshootout.errors import UserError

PG = "<postgresqlserver pg>\n</postgresqlserver>\n"


def section(programs: str, more: str = "", server: str = "$pg") -> str:
    return f"<pgbouncer it>\nprograms {programs}\nserver {server}\n{more}</pgbouncer>\n{PG}"


def test_it_passes_users_on_to_the_server_with_the_servers_password(
    make_server: MakeServer, programs: str
) -> None:
    settings = "<settings>\ndefault_pool_size 7\n</settings>\n"
    server = make_server(section(programs, f"user a\nuser b\n{settings}"))
    server.directory.make(None)
    server.prepare()
    directory, names = server.directory.path, server.context.names
    assert server.command() == [f"{programs}/pgbouncer", f"{directory}/pgbouncer.ini"]
    lines = (directory / "pgbouncer.ini").read_text().splitlines()
    assert lines[:3] == [
        "[databases]", f"* = host=127.0.0.1 port={names['pg_port']}", "[pgbouncer]",
    ]  # fmt: skip
    assert {"pool_mode = session", f"listen_port = {server.port}"} <= {*lines}
    assert [line for line in lines if "pool_size" in line] == ["default_pool_size = 7"]
    assert not any("tls" in line for line in lines)
    password = names["pg_password"]
    assert (directory / "users.txt").read_text() == f'"a" "{password}"\n"b" "{password}"\n'


def test_clients_of_a_pooler_with_ssl_have_to_encrypt(
    make_server: MakeServer, programs: str
) -> None:
    pytest.importorskip("trustme")
    server = make_server(section(programs, "ssl true\n"))
    server.directory.make(None)
    server.prepare()
    text = (server.directory.path / "pgbouncer.ini").read_text()
    assert "client_tls_sslmode = require\n" in text
    assert f"client_tls_key_file = {server.directory.path}/key.pem\n" in text


@pytest.mark.parametrize(
    ("more", "server", "flaw"),
    [
        (
            "pool-mode transaction\n", "$pg",
            ("x.conf:4: server it: with pool-mode transaction, RelStorage cannot work: it keeps "
            "prepared statements, temporary tables and locks in its session; write pool-mode "
            "session"),
        ),
        (
            "", "db:5432",
            "x.conf:3: server it: it needs a <postgresqlserver> of this file: write server $NAME",
        ),
        (
            "<settings>\nauth_file /etc/users\n</settings>\n", "$pg",
            ("x.conf:5: server it: a private server takes settings that affect speed, not "
            "auth_file; leave it out of <settings>"),
        ),
    ],
)  # fmt: skip
def test_what_a_pooler_cannot_be_is_refused_with_the_line_to_write(
    more: str, server: str, flaw: str, make_server: MakeServer, programs: str
) -> None:
    with pytest.raises(UserError) as caught:
        make_server(section(programs, more, server))
    assert str(caught.value).endswith(flaw)
