"""Which private servers of a run a section needs, and what a restart of one empties."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from zodbshootout.client.storage_info import Cache, Sharing, server_cache
from zodbshootout.client.storages.storage_type import sharing_of
from zodbshootout.config.configuration import Configuration, ServerSection
from zodbshootout.contenders.contender import Contender
from zodbshootout.servers.running import check_restartable

_PARTS = ("", "_host", "_port", "_password", "_certificate", "_key", "_authority")
"""What is appended to a server's name to name what the run gives to that server."""
_CACHES: Mapping[str, frozenset[Cache]] = {
    "zeoserver": frozenset({server_cache("ZEO")}),
    "postgresqlserver": frozenset({server_cache("PostgreSQL")}),
    "mysqlserver": frozenset({server_cache("MySQL"), server_cache("MariaDB")}),
}


def caches_of_server(kind: str) -> frozenset[Cache]:
    """Return the caches that are empty after a restart of what a section of that type describes."""
    return _CACHES.get(kind, frozenset())


def needed_servers(section: Any, configuration: Configuration) -> list[ServerSection]:
    """Return the servers that *section* refers to, and those that these need.

    They come in the order of the configuration.  A server does not need itself.
    """
    names = configuration.text_of(section).names
    return [each for each in servers_of(names, configuration) if each is not section]


def servers_of(names: Collection[str], configuration: Configuration) -> list[ServerSection]:
    """Return the servers to which some of the *names* of the run belong, and those these need."""
    others = {each.name: each for each in configuration.servers}
    needed: set[str] = set()
    names = set(names)
    while found := _meant(names, others.keys() - needed):
        needed |= found
        names = {name for each in found for name in configuration.text_of(others[each]).names}
    return [others[name] for name in others if name in needed]


def _meant(names: set[str], servers: Iterable[str]) -> set[str]:
    """Return those of the servers to which one of the names belongs."""
    return {server for server in servers if names & {f"{server}{part}" for part in _PARTS}}


def users_of_servers(
    configuration: Configuration, contenders: Sequence[Contender]
) -> dict[str, list[str]]:
    """Return for each server the names of the contenders that need it."""
    return {
        server.name: [each.name for each in contenders if server.name in each.server_names]
        for server in configuration.servers
    }


def needs_of_servers(configuration: Configuration) -> dict[str, set[str]]:
    """Return for each server the names of the servers that it needs, itself or through another."""
    return {
        server.name: {each.name for each in needed_servers(server, configuration)}
        for server in configuration.servers
    }


def check_servers_can_restart(
    configuration: Configuration, contenders: Sequence[Contender]
) -> None:
    """Check that a restart of the servers that *contenders* need loses no data.

    :raises UserError: when it does, or when there is no such server
    """
    check_restartable(
        users_of_servers(configuration, contenders),
        [each.name for each in contenders if each.info.sharing is Sharing.VOLATILE],
        {each.name for each in configuration.servers if sharing_of(each) is Sharing.VOLATILE},
    )
