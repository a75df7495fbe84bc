"""The private servers of a run: started in order, restarted, and stopped when the run ends."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from zodbshootout.config.configuration import Configuration
from zodbshootout.errors import UserError
from zodbshootout.servers import ServerFailed
from zodbshootout.servers.registry import server_of
from zodbshootout.servers.server import Server, ServerContext


@dataclass(frozen=True)
class RunningServers:
    """The private servers of a run."""

    running: Mapping[Hashable, Server]
    """A server comes after those that it needs.  The keys are names, unless several share one."""
    users: Mapping[Hashable, Sequence[str]]
    """For each server the names of the contenders that need it, itself or through another."""
    absent: Mapping[str, str]
    """Why contenders cannot be measured whose servers did not come up, by contender."""

    @property
    def served(self) -> set[str]:
        """Return the names of the contenders that need a server."""
        return {name for names in self.users.values() for name in names}

    def restart_for(self, contender: str) -> None:
        """Restart the servers that a contender needs.

        :raises ServerFailed: when one does not come up again; the others are started all the same
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
        return [each for key, each in self.running.items() if contender in self.users[key]]


def all_of(parts: Sequence[RunningServers]) -> RunningServers:
    """Return the servers of several *parts*, which have different users, as one."""
    return RunningServers(
        {
            (number, key): each
            for number, part in enumerate(parts)
            for key, each in part.running.items()
        },
        {
            (number, key): each
            for number, part in enumerate(parts)
            for key, each in part.users.items()
        },
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
    :raises UserError: when a section sets what only the run may set
    """
    servers = {
        section.name: server_of(section, context)
        for section in sorted(configuration.servers, key=lambda each: len(needs[each.name]))
        if users[section.name]
    }
    running: dict[str, Server] = {}
    absent: dict[str, str] = {}
    for name, server in servers.items():
        if not running.keys() >= needs[name]:
            continue  # its users also use the server that failed, and are absent already
        stack.callback(server.stop)
        try:
            with _named_in_failures(server):
                server.start()
        except ServerFailed as error:
            absent |= dict.fromkeys(users[name], str(error))
        else:
            running[name] = server
    return RunningServers(dict(running.items()), dict(users.items()), absent)


def check_restartable(
    users: Mapping[str, Sequence[str]],
    volatile_contenders: Sequence[str],
    volatile_servers: Collection[str],
) -> None:
    """Check that servers can be restarted without losing data.

    :param users: as for :func:`start_servers`
    :param volatile_contenders: names of the contenders that keep data in memory
    :param volatile_servers: names of the servers that keep data in memory
    :raises UserError: when they cannot, or when no server is used
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
