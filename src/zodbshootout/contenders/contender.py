"""A contender: what is known of a section, and of its storage once that was opened."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from zodbshootout.client.specification import Parameters, Storage
from zodbshootout.client.storage_info import (
    Advice,
    Cache,
    Limit,
    Requirement,
    Sharing,
    StorageInfo,
    narrowest,
    server_cache,
)
from zodbshootout.config.configuration import ServerSection
from zodbshootout.config.environment import Environment
from zodbshootout.config.loader import SectionText
from zodbshootout.crews.cluster import Cluster
from zodbshootout.servers.address import HOST, accepts, is_loopback

OF_SERVER = "server."
"""The prefix of the settings of private servers."""

_SHARING_LIMITS = {
    Sharing.EXCLUSIVE: "one DB at a time can open it",
    Sharing.VOLATILE: "its data lives in one DB only",
}
_FILES = ("path", "data_dir")
_PLACES = (*_FILES, "dsn", "host", "port", "unix_socket", "db", "server", "storage")
"""Settings by which a user recognizes a database."""
_SERVER_CACHES: Mapping[str, frozenset[Cache]] = {
    "zeoserver": frozenset({server_cache("ZEO")}),
    "postgresqlserver": frozenset({server_cache("PostgreSQL")}),
    "mysqlserver": frozenset({server_cache("MySQL"), server_cache("MariaDB")}),
}
"""The caches that a restart empties, by the type of the server's section."""


@dataclass(frozen=True)
class Contender:
    """A storage with its configuration: a ``<zodb NAME>`` or ``<zodburi NAME>`` section."""

    name: str
    storage: Storage
    """The description from which a client opens it."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The configuration without secrets, with ``$name`` for what the run has named."""
    info: StorageInfo = field(default_factory=StorageInfo)
    servers: Mapping[str, ServerSection] = field(default_factory=dict)
    """The private servers that it needs, itself or through another, by name."""
    limits: tuple[Limit, ...] = ()
    hosts_together: int = 1
    """The largest number of a crew's hosts on one machine."""
    requirements: tuple[Requirement, ...] = ()
    zap_obstacle: str | None = None
    """Why its data cannot be destroyed."""
    installation: str | None = None
    """How to install the packages that it needs, such as a driver."""
    advice: tuple[Advice, ...] = ()
    section: SectionText = field(default_factory=SectionText)
    environment: Environment | None = None
    """The environment that it is opened in; ``None`` for the Python of the command."""
    variant: str = ""
    """With ``--against``, the name of the variant whose ``$scratch`` and servers it uses."""
    variant_of: str = ""
    """The contender with which ``--against`` compares it: the same section as it is installed."""
    text: str = ""
    """The text of its section and those of its servers, without secrets."""

    def opened(self, info: StorageInfo, storage: Storage | None = None) -> Contender:
        """Return the contender with what its open storage says, and how *storage* opened it."""
        sharing = narrowest((self.info.sharing, info.sharing))
        info = replace(info, sharing=sharing)
        return replace(self, storage=storage or self.storage, info=info)

    def on_hosts(self, cluster: Cluster) -> Contender:
        """Return the contender with the limits that clients on the hosts of a cluster have."""
        limits = (*self.limits, *map(Limit, self._out_of_reach(cluster)))
        return replace(self, limits=limits, hosts_together=cluster.together)

    def _out_of_reach(self, cluster: Cluster) -> Iterator[str]:
        """Yield the reasons why clients on the hosts cannot open it."""
        if self.environment is not None:
            name = self.environment.name
            yield f"environment {name} is made for this command alone; leave out --hosts"
        if cluster.here:
            return
        for file in files_in(self.settings):
            yield f"only this host has {file}; leave out --hosts"
        for server in self.servers.values():
            if is_loopback(server.listen or HOST):
                yield f"server {server.name} listens on this host alone; see listen"

    def refusal(self, parameters: Parameters) -> str | None:
        """Return why it cannot be measured with these parameters, ``None`` if it can."""
        name, shape = self.info.storage_name, parameters.crew
        if parameters.blobs and self.info.stores_blobs is False:
            return f"{name} stores no blobs as it is configured here; see blob-dir"
        if shape.databases > 1 and self.info.sharing in _SHARING_LIMITS:
            limit = _SHARING_LIMITS[self.info.sharing]
            shared = "use --threads shared, or -c 1"
            otherwise = f"leave out --hosts, and {shared}" if shape.hosts > 1 else shared
            return f"{name}: {limit}; {otherwise}"
        applying = (limit for limit in self.limits if limit.applies_to(shape, self.hosts_together))
        return next((limit.reason for limit in applying), None)

    def missing_server(self) -> str | None:
        """Try to connect; return which server does not run, ``None`` if all do."""
        for server in self.requirements:
            if not any(map(accepts, server.addresses)):
                return server.otherwise
        return None

    def advice_on(self, cause: str) -> str | None:
        """Return how to configure it otherwise after it failed with *cause*, if that is known."""
        fitting = (advice.text for advice in self.advice if re.search(advice.pattern, cause))
        return next(fitting, None)

    def caches_left(self, *, restarted: bool) -> list[Cache]:
        """Return the caches that hold records even when it is read cold.

        *restarted* says whether its private servers are restarted before.
        """
        emptied = {
            cache
            for server in self.servers.values()
            for cache in _SERVER_CACHES.get(server.kind, ())
        }
        return [cache for cache in self.info.left if not (restarted and cache in emptied)]

    @property
    def place(self) -> tuple[str, ...]:
        """The settings by which a user recognizes its database.

        A URI of an unknown scheme is its own place.
        """
        places = []
        for key, value in self.settings.items():
            section, _, last = key.rpartition(".")
            name = last.rstrip("0123456789")
            if name == "user" and f"{section}.dsn" in self.settings:
                places.append(value)  # in Oracle each user has a schema of his own
            elif name in _FILES and not value.startswith("$"):
                places.append(str(Path(value).absolute()))
            elif name in _PLACES:
                own = f" of {self.variant}" if self.variant and "$" in value else ""
                places.append(f"{value}{own}")
        return tuple(places) or tuple(filter(None, [self.settings.get("uri")]))

    def fingerprint(self) -> str:
        """Return a hash of the settings: equal for equal configurations."""
        text = json.dumps(dict(self.settings), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def files_in(settings: Mapping[str, str]) -> list[str]:
    """Return the files and directories that clients open, by the settings of a contender.

    A URI that names the run's scratch directory is among them: another host has another one.
    """
    files = []
    for key, value in settings.items():
        if key == "uri" and "$scratch" in value:
            files.append(value)
        section, _, name = key.rpartition(".")
        if key.startswith(OF_SERVER):
            continue
        shared = settings.get(f"{section}.shared_blob_dir".lstrip("."), "")
        if name in _FILES or (name == "blob_dir" and shared.lower() == "true"):
            files.append(value)
    return files


def by_place(contenders: Iterable[Contender]) -> list[list[Contender]]:
    """Return the contenders in groups that use the same database."""
    places: dict[tuple[str, ...], list[Contender]] = {}
    for contender in contenders:
        places.setdefault(contender.place or (contender.name,), []).append(contender)
    return list(places.values())
