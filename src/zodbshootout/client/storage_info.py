"""A contender's storage: the crews that can use it, the servers it needs, its caches, versions."""

from __future__ import annotations

import enum
import functools
import json
import math
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points
from typing import Any, Union
from urllib.parse import unquote, urlparse

from zodbshootout.client.specification import ClientKind, CrewShape

Address = Union[tuple[str, int], str]
"""A host and a port, or the path of a socket."""
TIMEOUT = 3.0
"""Seconds that a server may take to accept a connection, and then to answer."""


class Sharing(enum.Enum):
    """The DBs that see the data of a storage; the widest sharing comes first."""

    CONCURRENT = "any number of DBs at once"
    EXCLUSIVE = "one DB at a time"
    VOLATILE = "one DB, until it is closed"


def narrowest(sharings: Iterable[Sharing]) -> Sharing:
    """Return the sharing of a stack of storages with these *sharings*."""
    return max(sharings, key=list(Sharing).index, default=Sharing.CONCURRENT)


PICKLE_CACHE = "pickle cache"
OPERATING_SYSTEM = "operating system"
"""The users' names for caches of records between an application and the disk."""


def server_cache(product: str) -> str:
    """Return the name of the cache of a server: ``server_cache("PostgreSQL")``."""
    return f"{product} server"


@dataclass(frozen=True)
class CacheUse:
    """Hits and misses of a storage's own cache, counted from some moment on."""

    hits: int
    misses: int | None
    """``None`` if the storage does not count them."""
    per_opening: int = 0
    """The most hits that it counts when a connection is opened, without loading a record."""

    def since(self, earlier: CacheUse) -> CacheUse:
        """Return the use between *earlier* and this one."""
        misses = None
        if self.misses is not None and earlier.misses is not None:
            misses = self.misses - earlier.misses
        return CacheUse(self.hits - earlier.hits, misses, self.per_opening)

    def __add__(self, other: CacheUse) -> CacheUse:
        misses = None
        if self.misses is not None and other.misses is not None:
            misses = self.misses + other.misses
        return CacheUse(self.hits + other.hits, misses, self.per_opening + other.per_opening)


def clients_together(shape: CrewShape, hosts_together: int) -> int:
    """Return the largest number of clients on a machine that *hosts_together* hosts share."""
    hosts = max(1, shape.hosts)
    return min(shape.size, math.ceil(shape.size / hosts) * min(hosts_together, hosts))


@dataclass(frozen=True)
class Limit:
    """A restriction: crews that match all of its fields cannot use the storage."""

    reason: str
    """The reason, which ends with what to type instead."""
    client_kinds: frozenset[ClientKind] = frozenset(ClientKind)
    databases: int = 1
    """The limit applies to crews that open at least this many DBs on one machine."""
    of_process: bool = False
    """Whether only the DBs of one process count: each host has a process of its own."""
    sharers: int = 1
    """The limit applies to crews that have at least this many clients on one DB."""

    def applies_to(self, shape: CrewShape, hosts_together: int = 1) -> bool:
        """Return whether a crew of that *shape* cannot use the storage.

        Up to *hosts_together* of its hosts are on one machine.
        """
        hosts, together = max(1, shape.hosts), 1 if self.of_process else hosts_together
        if shape.shared:
            databases, sharers = min(together, hosts), math.ceil(shape.size / hosts)
        else:
            databases, sharers = clients_together(shape, together), 1
        return (
            shape.client_kind in self.client_kinds
            and databases >= self.databases
            and sharers >= self.sharers
        )


@dataclass(frozen=True)
class Requirement:
    """A server that has to run before a storage can be opened."""

    addresses: tuple[Address, ...]
    """Its possible addresses; one that accepts connections is enough."""
    missing_message: str
    """The message if it does not run: what is missing, and how to start it."""


def host_and_port(host: str, port: int | str) -> str:
    """Return ``host:port``, or ``[host]:port`` for IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def connect(address: Address) -> socket.socket:
    """Return a connection to a server.

    :raises OSError: if it accepts none
    """
    if isinstance(address, tuple):
        host, port = address
        return socket.create_connection((host or "localhost", port), TIMEOUT)
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(TIMEOUT)
    try:
        connection.connect(address)
    except OSError:
        connection.close()
        raise
    return connection


@dataclass(frozen=True)
class Advice:
    """A replacement for a section whose storage failed in a known way."""

    pattern: str
    """A regular expression that matches the cause of the failure."""
    text: str


@dataclass(frozen=True)
class StorageInfo:
    """Everything that decides how a contender can be measured, and that is recorded about it.

    The section of a known storage says its name, its sharing, whether it prefetches and whether it
    is read only; for everything else the storage has to be open.
    """

    storage_name: str = "this storage"
    """The class of the outermost storage, and of those that it merely wraps."""
    sharing: Sharing = Sharing.CONCURRENT
    prefetches: bool | None = None
    """Whether ``Connection.prefetch`` does anything; ``None`` if that is not known."""
    stores_blobs: bool | None = None
    """Whether blobs can be stored in it; ``None`` if that is not known."""
    read_only: bool = False
    retry_flaw: str | None = None
    """Why a transaction that was refused cannot be retried."""
    resolution_flaw: str | None = None
    """Why resolved conflicts corrupt its data."""
    pack_flaw: str | None = None
    """Why it cannot be packed."""
    caches_left: tuple[str, ...] = ()
    """The caches that hold records even after the client-side caches were emptied."""
    storage_classes: tuple[str, ...] = ()
    """``module.Class`` of every storage in the stack, outermost first."""
    driver: str = ""
    """The database driver, if it has one."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of the software that it consists of, by product."""
    python: Mapping[str, str] = field(default_factory=dict)
    """The Python that opened it, as pyperf's metadata describe it."""
    modules: tuple[str, ...] = ()
    """The modules that were imported when it was opened."""
    corrections: tuple[str, ...] = ()
    """Workarounds: how it is used otherwise than as released, in a few words each."""


def plugins(group: str) -> list[Any]:
    """Return the objects that the entry points of this group name."""
    if sys.version_info >= (3, 10):
        return [entry.load() for entry in entry_points(group=group)]
    return [entry.load() for entry in entry_points().get(group, ())]  # type: ignore[unreachable, unused-ignore]


def installed_versions(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of those of the named distributions that are installed.

    The version of one that was installed from a repository, or as an editable checkout, includes
    the commit; that of a checkout also whether tracked files were changed:
    ``4.3.0 (git 1a2b3c4d5e6f, modified)``.
    """
    versions = ((name, _version(name)) for name in names)
    return {name: version for name, version in versions if version is not None}


@functools.cache
def _version(name: str) -> str | None:
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        return None
    origin = _origin(installed)
    return f"{installed.version} ({origin})" if origin else installed.version


def _origin(installed: Distribution) -> str | None:
    """Return the commit according to PEP 610's ``direct_url.json``, ``None`` if it has none."""
    try:
        origin = json.loads(installed.read_text("direct_url.json") or "{}")
    except ValueError:
        return None
    commit = origin.get("vcs_info", {}).get("commit_id")
    if commit:
        return f"git {commit[:12]}"
    if not origin.get("dir_info", {}).get("editable"):
        return None  # the directory may have changed since
    directory = unquote(urlparse(origin["url"]).path)
    commit = _git(directory, "rev-parse", "--short=12", "HEAD")
    changes = _git(directory, "status", "--porcelain", "--untracked-files=no")
    if not commit or changes is None:
        return None
    return f"git {commit}, modified" if changes else f"git {commit}"


def _git(directory: str, *words: str) -> str | None:
    try:
        command = ["git", "-C", directory, *words]
        process = subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return process.stdout.strip()
