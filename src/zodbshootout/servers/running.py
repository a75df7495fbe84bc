"""The private servers of a run: started in order, restarted, and stopped when the run ends."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from zodbshootout.config.configuration import Configuration, ServerSection
from zodbshootout.errors import UserError
from zodbshootout.servers import ServerFailed
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
    """Why contenders cannot be measured whose servers did not come up, by contender."""

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
                with _named_in_failures(server):
                    server.resume()
            except ServerFailed as error:
                failures.append(error)  # the others may be needed by other contenders
        if failures:
            raise failures[0]

    def how_ended(self, contender: str) -> str | None:
        """Return how a server has ended that a contender needs, ``None`` if all of them run."""
        for server in self._needed_by(contender):
            if ended := server.how_ended():
                return f"server {server.name} {ended}"
        return None

    def _needed_by(self, contender: str) -> list[Server]:
        return [server for server, users in self.users.items() if contender in users]


def all_of(parts: Sequence[RunningServers]) -> RunningServers:
    """Return the servers of several *parts*, which have different users, as one."""
    return RunningServers(
        {server: users for part in parts for server, users in part.users.items()},
        {name: reason for part in parts for name, reason in part.absent.items()},
    )


def start_servers(
    stack: ExitStack,
    configuration: Configuration,
    users: Mapping[str, Sequence[str]],
    needs: Mapping[str, set[str]],
    context: ServerContext,
) -> RunningServers:
    """Start the servers that have users; *stack* stops them.

    A server that does not come up is no error: its users are in :attr:`RunningServers.absent`.

    :param users: for each server the names of the contenders that need it, itself or through
        another server
    :param needs: for each server the names of the servers that it needs, itself or through another
    :raises UserError: as :class:`Server`
    """
    servers = [
        server_of(section, context)
        for section in sorted(configuration.servers, key=lambda section: len(needs[section.name]))
        if users[section.name]
    ]
    running: dict[Server, Sequence[str]] = {}
    absent: dict[str, str] = {}
    for server in servers:
        if not {other.name for other in running} >= needs[server.name]:
            continue  # its users also use the server that failed, and are absent already
        stack.callback(server.stop)
        try:
            with _named_in_failures(server):
                server.start()
        except ServerFailed as error:
            absent |= dict.fromkeys(users[server.name], str(error))
        else:
            running[server] = users[server.name]
    return RunningServers(running, absent)


def check_restartable(
    users: Mapping[str, Sequence[str]],
    volatile_contenders: Sequence[str],
    volatile_servers: Collection[str],
) -> None:
    """Check that servers can be restarted without losing data.

    :param users: as for :func:`start_servers`
    :param volatile_contenders: names of the contenders that keep data in memory
    :param volatile_servers: names of the servers that keep data in memory
    :raises UserError: if they cannot, or if no server is used
    """
    option = "--restart-servers"
    needed = [server for server, names in users.items() if names]
    if not needed:
        raise UserError(f"{option}: no contender has a server that the run starts")
    served = {name for names in users.values() for name in names}
    for contender in volatile_contenders:
        if contender in served:
            raise UserError(
                f"{option}: {contender} would lose its data, which it keeps in memory; leave it "
                "out with --only"
            )
    for server in needed:
        if server in volatile_servers:
            raise UserError(
                f"{option}: server {server} would lose its data, which it keeps in memory"
            )


@contextmanager
def _named_in_failures(server: Server) -> Iterator[None]:
    """Put the server's name before the message of a :class:`ServerFailed`."""
    try:
        yield
    except ServerFailed as error:
        raise ServerFailed(f"server {server.name} {error}") from error
