"""The private servers of a run: started in order, restarted, and stopped when the run ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from zodbshootout.config.configuration import Configuration, ServerSection
from zodbshootout.servers import ServerFailed
from zodbshootout.servers.address import needed_servers
from zodbshootout.servers.memcached import MemcachedServer
from zodbshootout.servers.mysql import MySQLServer
from zodbshootout.servers.postgresql import PostgreSQLServer
from zodbshootout.servers.server import Server, ServerContext
from zodbshootout.servers.zeo import ZEOServer

_SERVERS: Mapping[str, type[Server]] = {
    "memcachedserver": MemcachedServer,
    "mysqlserver": MySQLServer,
    "postgresqlserver": PostgreSQLServer,
    "zeoserver": ZEOServer,
}


def server_of(section: ServerSection, context: ServerContext) -> Server:
    """Return the server that a section describes, not yet started.

    :raises UserError: as :class:`Server`
    """
    return _SERVERS[section.kind](section, context)


@dataclass(frozen=True)
class RunningServers:
    """The private servers of a run."""

    users: Mapping[Server, Sequence[str]]
    """For each server that runs, after those that it needs, the names of the contenders that need
    it, itself or through another."""
    absent: Mapping[str, str]
    """The reasons why servers did not come up, by the names of the contenders that need them."""

    @property
    def served(self) -> set[str]:
        """The names of the contenders that need a server."""
        return {name for names in self.users.values() for name in names}

    def restart_for(self, contender: str) -> None:
        """Restart the servers that a contender needs.

        :raises ServerFailed: if one does not come up again; the others are started all the same
        """
        needed = self._needed_by(contender)
        for server in reversed(needed):
            server.halt()
        failures = []
        for server in needed:
            try:
                server.resume()
            except ServerFailed as error:
                failures.append(error)  # the others may be needed by other contenders
        if failures:
            raise failures[0]

    def how_ended(self, contender: str) -> str | None:
        """Return how a server that a contender needs has ended, ``None`` if all of them run."""
        for server in self._needed_by(contender):
            if ended := server.how_ended():
                return f"server {server.name} {ended}"
        return None

    def _needed_by(self, contender: str) -> list[Server]:
        return [server for server, users in self.users.items() if contender in users]


def all_of(parts: Sequence[RunningServers]) -> RunningServers:
    """Join several *parts*, which have different users."""
    return RunningServers(
        {server: users for part in parts for server, users in part.users.items()},
        {name: reason for part in parts for name, reason in part.absent.items()},
    )


def start_servers(
    stack: ExitStack,
    configuration: Configuration,
    users: Mapping[str, Sequence[str]],
    context: ServerContext,
) -> RunningServers:
    """Start the servers that have *users*, which are contenders; *stack* stops the servers.

    A server that does not come up is no error: its users are in :attr:`RunningServers.absent`.

    :raises UserError: as :class:`Server`
    """
    needs = {
        section: {needed.name for needed in needed_servers(section, configuration)}
        for section in configuration.servers
    }
    servers = [
        server_of(section, context)
        for section in sorted(needs, key=lambda section: len(needs[section]))
        if users[section.name]
    ]
    running: dict[Server, Sequence[str]] = {}
    absent: dict[str, str] = {}
    for server in servers:
        if not {other.name for other in running} >= needs[server.section]:
            continue  # its users also use the server that failed, and are absent already
        stack.callback(server.stop)
        try:
            server.start()
        except ServerFailed as error:
            absent |= dict.fromkeys(users[server.name], str(error))
        else:
            running[server] = users[server.name]
    return RunningServers(running, absent)
