"""Which contenders use which private servers of a run, and what a restart of one empties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zodbshootout.client.storage_info import Cache, Sharing, server_cache
from zodbshootout.client.storages.storage_type import sharing_of
from zodbshootout.config.configuration import Configuration
from zodbshootout.contenders.contender import Contender
from zodbshootout.errors import UserError

_CACHES: Mapping[str, frozenset[Cache]] = {
    "zeoserver": frozenset({server_cache("ZEO")}),
    "postgresqlserver": frozenset({server_cache("PostgreSQL")}),
    "mysqlserver": frozenset({server_cache("MySQL"), server_cache("MariaDB")}),
}


def caches_of_server(kind: str) -> frozenset[Cache]:
    """Return the caches that are empty after a restart of a server with that type of section."""
    return _CACHES.get(kind, frozenset())


def users_of_servers(
    configuration: Configuration, contenders: Sequence[Contender]
) -> dict[str, list[str]]:
    """Return for each server the names of the contenders that need it, directly or not."""
    return {
        server.name: [
            contender.name for contender in contenders if server.name in contender.server_names
        ]
        for server in configuration.servers
    }


def check_servers_can_restart(
    configuration: Configuration, contenders: Sequence[Contender]
) -> None:
    """Check that a restart of the servers that *contenders* need loses no data.

    :raises UserError: if it does, or if there is no such server
    """
    option = "--restart-servers"
    served = [contender for contender in contenders if contender.server_names]
    if not served:
        raise UserError(f"{option}: no contender has a server that the run starts")
    for contender in served:
        if contender.info.sharing is Sharing.VOLATILE:
            raise UserError(
                f"{option}: {contender.name} would lose its data, which it keeps in memory; leave "
                "it out with --only"
            )
    needed = {name for contender in served for name in contender.server_names}
    for server in configuration.servers:
        if server.name in needed and sharing_of(server) is Sharing.VOLATILE:
            raise UserError(
                f"{option}: server {server.name} would lose its data, which it keeps in memory"
            )
