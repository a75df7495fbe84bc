from __future__ import annotations

import resource
import signal
from collections.abc import Sequence

from zodbshootout.config.configuration import ServerSection
from zodbshootout.guardian import Ending
from zodbshootout.servers import allowed_settings
from zodbshootout.servers.installation import NOBODY, PGBOUNCER
from zodbshootout.servers.server import EncryptingServer, ServerContext

_FILE = "pgbouncer.ini"
_USERS_FILE = "users.txt"
_SESSION = "session"


class PgBouncer(EncryptingServer):
    """PgBouncer in front of a private PostgreSQL server, with the server's users and password."""

    allowed_settings = allowed_settings.PGBOUNCER
    system_accounts = ("postgres", NOBODY)
    connection_limit = resource.RLIMIT_NOFILE
    orderly = abrupt = Ending(signal.SIGTERM)

    def __init__(self, section: ServerSection, context: ServerContext) -> None:
        super().__init__(section, context)
        if section.config.pool_mode != _SESSION:
            raise self.mistake(
                f"with pool-mode {section.config.pool_mode}, RelStorage cannot work: it keeps "
                "prepared statements, temporary tables and locks in its session; write "
                f"pool-mode {_SESSION}",
                "pool-mode",
            )
        behind = [
            server.name
            for server in context.source.servers
            if server.type == "postgresqlserver"
            and context.names[server.name] == section.config.server
        ]
        if not behind:
            raise self.mistake(
                "it needs a <postgresqlserver> of this file: write server $NAME", "server"
            )
        self._behind = behind[0]
        """The name of the PostgreSQL server."""

    def prepare(self) -> None:
        super().prepare()
        users = self.section.config.user
        password = self.context.names[f"{self._behind}_password"]
        self.directory.write(_USERS_FILE, "".join(f'"{user}" "{password}"\n' for user in users))
        host, port = (self.context.names[f"{self._behind}_{part}"] for part in ("host", "port"))
        settings = {
            "max_client_conn": str(self.connections),
            "default_pool_size": str(self.connections),
            "ignore_startup_parameters": "extra_float_digits",
            **self.section.settings,
            "listen_addr": self.host,
            "listen_port": str(self.port),
            "unix_socket_dir": "",
            "auth_type": "scram-sha-256",
            "auth_file": str(self.directory.path / _USERS_FILE),
            "pool_mode": _SESSION,
            **({"client_tls_sslmode": "require"} if self.section.config.ssl else {}),
            **self.encryption("client_tls_cert_file", "client_tls_key_file", "client_tls_ca_file"),
        }
        lines = "".join(f"{name} = {value}\n" for name, value in settings.items())
        self.directory.write(
            _FILE, f"[databases]\n* = host={host} port={port}\n[pgbouncer]\n{lines}"
        )

    def command(self) -> Sequence[str]:
        program = PGBOUNCER.program("pgbouncer", given=self.section.programs)
        return [program, str(self.directory.path / _FILE)]
