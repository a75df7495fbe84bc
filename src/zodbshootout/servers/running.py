"""Start the private servers of a run in order, restart them, and stop them at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain

from zodbshootout.config.configuration import Configuration, ServerSection
from zodbshootout.model.outcome import Failure
from zodbshootout.plugins import entries, load_plugin
from zodbshootout.servers import ServerFailed
from zodbshootout.servers.address import servers_of
from zodbshootout.servers.memcached import MemcachedServer
from zodbshootout.servers.mysql_server import MySQLServer
from zodbshootout.servers.pgbouncer import PgBouncer
from zodbshootout.servers.postgresql import PostgreSQLServer
from zodbshootout.servers.server import Server, ServerContext
from zodbshootout.servers.usage import ServerUsage, memory_of, usage_of
from zodbshootout.servers.zeo_server import ZEOServer

_SERVERS: Mapping[str, type[Server]] = {
    "memcachedserver": MemcachedServer,
    "mysqlserver": MySQLServer,
    "pgbouncer": PgBouncer,
    "postgresqlserver": PostgreSQLServer,
    "zeoserver": ZEOServer,
}
ENTRY_POINTS = "zodbshootout.servers"
"""The group of entry points for other packages' servers.  The name of each entry point is the name
of a section type."""


def server_of(section: ServerSection, context: ServerContext) -> Server:
    """Return the server that a section describes, not yet started.

    :raises BrokenPlugin: if the package that registers the section's type cannot be imported
    :raises UserError: if no package registers the type, or the section is wrong
    """
    registered = {entry.name: entry for entry in entries(ENTRY_POINTS)}
    if section.kind in registered:
        server: Server = load_plugin(registered[section.kind])(section, context)
        return server
    if section.kind not in _SERVERS:
        raise section.text.mistake(
            f"no installed package has an entry point {section.kind} of {ENTRY_POINTS}; reinstall "
            "the package that defines the section"
        )
    return _SERVERS[section.kind](section, context)


@dataclass(frozen=True)
class RunningServers:
    """The private servers of a run."""

    users: dict[Server, Sequence[str]] = field(default_factory=dict)
    """The names of the contenders that need each running server, directly or through another
    server.  A server comes after the servers that it needs."""
    absent: dict[str, str] = field(default_factory=dict)
    """Why servers did not start, by the names of the contenders that need them."""

    def start(
        self,
        stack: ExitStack,
        configuration: Configuration,
        users: Mapping[ServerSection, Sequence[str]],
        context: ServerContext,
    ) -> None:
        """Start the servers of a configuration that have *users*; *stack* stops them.

        A server that does not start raises no exception: its users are in :attr:`absent`.
        """
        needs = {
            section: {other.name for other in servers_of(section.text.names, configuration)}
            - {section.name}
            for section in configuration.servers
        }
        servers = [
            server_of(section, context)
            for section in sorted(needs, key=lambda section: len(needs[section]))
            if users[section]
        ]
        running: set[str] = set()
        for server in servers:
            if not running >= needs[server.section]:
                continue  # its users need the failed server, too
            stack.callback(server.stop)
            try:
                server.start()
            except ServerFailed as error:
                self.absent.update(dict.fromkeys(users[server.section], str(error)))
            else:
                self.users[server] = users[server.section]
                running.add(server.name)

    @property
    def served(self) -> set[str]:
        """The names of the contenders that need a server."""
        return {name for names in self.users.values() for name in names}

    def versions(self, contender: str) -> dict[str, str]:
        """Return the versions of the servers that a contender needs, by product."""
        all_of_them = (server.versions.items() for server in self._needed_by(contender))
        return dict(chain.from_iterable(all_of_them))

    def halt_for(self, contender: str, *, by_force: bool) -> None:
        """Stop or kill the servers that a contender needs; :meth:`resume_for` restarts them."""
        for server in reversed(self._needed_by(contender)):
            (server.kill if by_force else server.halt)()

    def resume_for(self, contender: str) -> None:
        """Restart the servers that a contender needs.

        :raises ServerFailed: if a server does not start; the others are started anyway
        """
        failures = []
        for server in self._needed_by(contender):
            try:
                server.resume()
            except ServerFailed as error:
                failures.append(error)  # other contenders may need the other servers
        if failures:
            raise failures[0]

    def how_ended(self, contender: str) -> Failure | None:
        """Return which of a contender's servers has ended, and how; ``None`` if none has."""
        for server in self._needed_by(contender):
            if ended := server.how_ended():
                return replace(ended, cause=f"server {server.name} {ended.cause}")
        return None

    def usage(self, contender: str) -> dict[str, ServerUsage]:
        """Return the :class:`ServerUsage` of each server that a contender needs, by server name."""
        return {name: usage_of(pid) for name, pid in self._process_ids(contender).items()}

    def memory(self, contender: str) -> dict[str, int]:
        """Return the bytes of memory of each server that a contender needs, by server name."""
        return {name: memory_of(pid) for name, pid in self._process_ids(contender).items()}

    def _process_ids(self, contender: str) -> dict[str, int]:
        needed = self._needed_by(contender)
        return {server.name: pid for server in needed if (pid := server.pid) is not None}

    def _needed_by(self, contender: str) -> list[Server]:
        return [server for server, users in self.users.items() if contender in users]
