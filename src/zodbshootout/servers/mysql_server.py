from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from zodbshootout.guardian import Ending
from zodbshootout.servers import ServerFailed, allowed_settings
from zodbshootout.servers.address import client_address, greets
from zodbshootout.servers.installation import MYSQL, NOBODY
from zodbshootout.servers.server import DatabaseServer

_ACCOUNTS_FILE = "accounts.sql"
_REFUSED = re.compile(r"^ERROR: (?!1290 )\d+\s+(?P<reason>.*)$", re.MULTILINE)
"""A pattern for the log line of a failed statement.  Lines about error 1290 do not match, because
``skip-grant-tables`` causes this error."""


class MySQLServer(DatabaseServer):
    """MariaDB or MySQL, whichever is installed, with access by password over TCP."""

    own_settings = frozenset(
        {"bind_address", "datadir", "init_file", "pid_file", "port", "socket", "user", "daemonize"}
    )
    allowed_settings = allowed_settings.MYSQL
    system_accounts = ("mysql", NOBODY)
    own_resources = 850  # with fewer files the server would lower max-connections
    error_mark = "[ERROR]"  # mariadb-install-db always ends with advice

    orderly = Ending(signal.SIGTERM, grace=60.0)
    abrupt = Ending(signal.SIGKILL)

    def plain_name(self, name: str) -> str:
        return allowed_settings.of_mysql(name)

    def initialize(self, data: Path) -> None:
        # No user that comes with the server can log in over TCP: root can log in only through the
        # socket, or has a random password.
        if self._is_mariadb():
            self.run(
                [
                    self._program("mariadb-install-db", "mysql_install_db"),
                    "--no-defaults",
                    f"--datadir={data}",
                    "--auth-root-authentication-method=socket",
                    "--skip-test-db",
                    "--force",  # even if the host's name cannot be resolved
                ]
            )
        else:
            self.run([self._server(), "--no-defaults", "--initialize", f"--datadir={data}"])

    def create_accounts(self) -> None:
        statements = [
            f"CREATE DATABASE IF NOT EXISTS {_identifier(name)}" for name in self.databases
        ]
        clients = client_address(self.host) or "%"
        for user in self.users:
            name = f"{_literal(user)}@'{clients}'"
            statements += [
                f"CREATE USER IF NOT EXISTS {name}",
                f"ALTER USER {name} IDENTIFIED BY '{self.password}'",
                *(f"GRANT ALL ON {_pattern(database)}.* TO {name}" for database in self.databases),
                f"GRANT PROCESS ON *.* TO {name}",  # to see the sizes of the server's files
            ]
        self.directory.write(_ACCOUNTS_FILE, "".join(f"{statement};\n" for statement in statements))

    def command(self) -> Sequence[str]:
        own = {
            "datadir": self.data,
            "init-file": self.directory.path / _ACCOUNTS_FILE,
            "bind-address": self.host,
            "port": self.port,
            # Relative to datadir, because a socket's path is limited to 107 bytes.
            "socket": "mysql.sock",
            "pid-file": "mysql.pid",
            "loose-mysqlx": "OFF",
            **self.encryption("ssl-cert", "ssl-key", "ssl-ca"),
            **({"require-secure-transport": "ON"} if self.section.config.ssl else {}),
        }
        settings = {
            "max-connections": str(self.connections),
            # By default, a restarted server first reads the pages that were in its memory before.
            "innodb-buffer-pool-load-at-startup": "OFF",
            **self.section.settings,
        }
        return [
            self._server(),
            "--no-defaults",
            "--skip-name-resolve",
            *(f"--{name}={text}" if text else f"--{name}" for name, text in settings.items()),
            *(f"--{name}={text}" for name, text in own.items()),
        ]

    def is_ready(self) -> bool:
        if not greets((self.host, self.port)):
            return False
        # The server starts even if statements of its init-file fail; it only logs the failures.
        if refused := _REFUSED.search(self.directory.logged(self._log_start)):
            raise ServerFailed(f"could not be prepared: {refused['reason']}")
        return True

    def _is_mariadb(self) -> bool:
        printed = subprocess.run(
            [self._server(), "--no-defaults", "--version"],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        return "MariaDB" in printed.stdout

    def _server(self) -> str:
        return self._program("mariadbd", "mysqld")

    def _program(self, *names: str) -> str:
        return MYSQL.program(*names, given=self.section.programs)


def _identifier(name: str) -> str:
    doubled = name.replace("`", "``")
    return f"`{doubled}`"


def _pattern(database: str) -> str:
    """Quote a database's name for GRANT, which would take ``_`` and ``%`` for wildcards."""
    return _identifier(database.replace("_", r"\_").replace("%", r"\%"))


def _literal(text: str) -> str:
    escaped = text.replace("\\", r"\\").replace("'", r"\'")
    return f"'{escaped}'"
