from __future__ import annotations

import resource
import signal
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path

from zodbshootout.config.configuration import ServerSection
from zodbshootout.guardian import Ending
from zodbshootout.servers import ServerFailed, allowed_settings
from zodbshootout.servers.address import client_address
from zodbshootout.servers.installation import NOBODY, POSTGRESQL
from zodbshootout.servers.server import DatabaseServer, ServerContext
from zodbshootout.servers.shared_memory import SharedMemory

_ACCESS_FILE = "pg_hba.conf"
_SUPERUSER = "postgres"
_STATUS_LINE = 7
"""The line of postmaster.pid, counted from 0, that shows whether the server is ready."""


class PostgreSQLServer(DatabaseServer):
    """PostgreSQL, with access by password over TCP."""

    own_settings = frozenset(
        {"data_directory", "hba_file", "listen_addresses", "port", "unix_socket_directories"}
    )
    allowed_settings = allowed_settings.POSTGRESQL
    system_accounts = ("postgres", NOBODY)
    connection_limit = resource.RLIMIT_NPROC

    # PostgreSQL's "fast" and "immediate" shutdowns.
    orderly = Ending(signal.SIGINT, grace=60.0)
    abrupt = Ending(signal.SIGQUIT, grace=10.0)

    def __init__(self, section: ServerSection, context: ServerContext) -> None:
        super().__init__(section, context)
        if _SUPERUSER in self.users:
            raise self.mistake(
                f"clients cannot log in as {_SUPERUSER}, its superuser; name another user",
                f"user {_SUPERUSER}",
            )

    def prepare(self) -> None:
        super().prepare()
        address = client_address(self.host)
        clients = ip_network(address) if address else "all"
        kind = "hostssl" if self.section.config.ssl else "host"
        self.directory.write(_ACCESS_FILE, f"{kind} all all {clients} scram-sha-256\n")

    def initialize(self, data: Path) -> None:
        self.run(
            [
                self._program("initdb"),
                f"--pgdata={data}",
                f"--username={_SUPERUSER}",
                "--auth=reject",
                "--encoding=UTF8",
                "--locale=C",
                "--no-instructions",
                *([] if self.directory.kept else ["--no-sync"]),
            ]
        )

    def create_accounts(self) -> None:
        # A table belongs to the user that creates it, and is closed to other users, such as those
        # of later runs.  Therefore all users act as one role, which owns everything.
        owner = _identifier("zodbshootout owner")
        statements = [f"CREATE ROLE {owner}"]
        for user in map(_identifier, self.users):
            statements += [
                f"CREATE ROLE {user}",
                f"ALTER ROLE {user} LOGIN PASSWORD '{self.password}'",
                f"GRANT {owner} TO {user}",
                f"ALTER ROLE {user} SET role = {owner}",
            ]
        for database in map(_identifier, self.databases):
            statements += [
                f"CREATE DATABASE {database} OWNER {owner}",
                f"ALTER DATABASE {database} OWNER TO {owner}",
            ]
        # The server's single-user mode needs neither a client nor a superuser's password.
        printed = self.run(
            [self._program("postgres"), "--single", "-D", str(self.data), "postgres"],
            "".join(f"{statement}\n" for statement in statements),
        )
        for line in printed.splitlines():
            if "ERROR:" in line and "already exists" not in line:
                raise ServerFailed(f"could not be prepared: {line.partition('ERROR:')[2].strip()}")

    def command(self) -> Sequence[str]:
        settings = {
            "max_connections": str(self.connections),
            **self.section.settings,
            "hba_file": str(self.directory.path / _ACCESS_FILE),
            "listen_addresses": self.host,
            "port": str(self.port),
            "unix_socket_directories": "",
            **({"ssl": "on"} if self.section.config.ssl else {}),
            **self.encryption("ssl_cert_file", "ssl_key_file", "ssl_ca_file"),
        }
        options = [word for name, text in settings.items() for word in ("-c", f"{name}={text}")]
        return [self._program("postgres"), "-D", str(self.data), *options]

    def kill(self) -> None:
        left = SharedMemory.of(self.pid, self.data) if self.pid is not None else None
        super().kill()
        if left is not None:
            left.remove()

    def is_ready(self) -> bool:
        try:
            lines = (self.data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return False
        # A killed server leaves this file behind, so check whose process ID is in it.
        return (
            len(lines) > _STATUS_LINE
            and lines[0] == str(self.pid)
            and lines[_STATUS_LINE].strip() == "ready"
        )

    def _program(self, name: str) -> str:
        return POSTGRESQL.program(name, given=self.section.programs)


def _identifier(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
