"""Facts about a contender's storage: crews that can use it, servers, caches and versions."""

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
from importlib.metadata import (
    Distribution,
    EntryPoint,
    PackageNotFoundError,
    distribution,
    entry_points,
)
from typing import Any, Union
from urllib.parse import unquote, urlparse

from zodbshootout.client.outcome import describe
from zodbshootout.client.specification import ClientKind, CrewShape

Address = Union[tuple[str, int], str]
"""A host and a port, or the path of a socket."""
TIMEOUT = 3.0
"""The maximum time in seconds for a server to accept a connection, and then for its answer."""


class Sharing(enum.Enum):
    """The number of DBs that can share the data of a storage, from the most to the fewest."""

    CONCURRENT = "any number of DBs at once"
    EXCLUSIVE = "one DB at a time"
    VOLATILE = "one DB, until it is closed"


def narrowest(sharings: Iterable[Sharing]) -> Sharing:
    """Return the narrowest of *sharings*, which is that of a stack of such storages."""
    return max(sharings, key=list(Sharing).index, default=Sharing.CONCURRENT)


class Durability(enum.Enum):
    """The effect of a power cut on transactions whose commit has returned."""

    SYNCED = "synced"
    """None: each commit waits until the disk has its data."""
    MAY_LOSE = "may lose the last commits"
    IN_MEMORY = "in memory"
    """All are lost, by the end of the process at the latest."""
    UNKNOWN = "unknown"


Promise = tuple[Durability, str]
"""The durability of commits, and the settings or other facts that decide it, in a few words."""


def weakest(promises: Iterable[Promise]) -> Promise:
    """Return the weakest of *promises*, of which there is at least one."""
    return max(promises, key=lambda promise: list(Durability).index(promise[0]))


class Place(enum.Enum):
    """The machine that a server runs on."""

    PRIVATE = "this machine, private"
    """This machine, and the run has started it."""
    HERE = "this machine"
    ELSEWHERE = "elsewhere"


PICKLE_CACHE = "pickle cache"
OPERATING_SYSTEM = "operating system"
"""The names that users see for caches of records between an application and the disk."""


def server_cache(product: str) -> str:
    """Return the name that users see for the cache of a server of *product*."""
    return f"{product} server"


@dataclass(frozen=True)
class CacheUse:
    """Hits and misses of a storage's own cache since it began to count."""

    hits: int
    misses: int | None
    """``None`` if the storage does not count them."""
    per_opening: int = 0
    """The maximum number of hits that opening a connection adds without loading a record."""

    def since(self, earlier: CacheUse) -> CacheUse:
        """Return the hits and misses since *earlier*."""
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
    """Return the largest number of clients on one machine, if *hosts_together* hosts share it."""
    hosts = max(1, shape.hosts)
    return min(shape.size, math.ceil(shape.size / hosts) * min(hosts_together, hosts))


@dataclass(frozen=True)
class Limit:
    """A restriction: crews that match all its fields cannot use the storage."""

    reason: str
    """The reason, followed by the option to use instead."""
    client_kinds: frozenset[ClientKind] = frozenset(ClientKind)
    databases: int = 1
    """The minimum number of DBs that a crew opens on one machine for the limit to apply."""
    of_process: bool = False
    """Whether to count only the DBs of one process instead; each host has its own process."""
    sharers: int = 1
    """The minimum number of clients that share one DB for the limit to apply."""

    def applies_to(self, shape: CrewShape, hosts_together: int = 1) -> bool:
        """Return whether a crew of that *shape* cannot use the storage.

        Up to *hosts_together* hosts of the crew are on the same machine.
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
    """Alternative addresses: the server runs if one of them accepts connections."""
    missing_message: str
    """The message if the server does not run: what is missing, and how to start it."""
    storage: str = ""
    """The name by which the server knows the storage; empty if it knows none by name."""

    def obstacle(self) -> str | None:
        """Return why the storage cannot be opened, as far as the server shows it, or ``None``."""
        return None if any(map(accepts, self.addresses)) else self.missing_message


def is_here(address: Address) -> bool:
    """Return whether an address is one of this host, as far as its text tells."""
    if isinstance(address, str):
        return True
    host = address[0] or "localhost"
    return host in {"localhost", "::1", socket.gethostname()} or host.startswith("127.")


def host_and_port(host: str, port: int | str) -> str:
    """Return ``host:port``, or ``[host]:port`` for IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def connect(address: Address) -> socket.socket:
    """Return a connection to a server, with :data:`TIMEOUT`.

    :raises OSError: if the server accepts no connection
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


def accepts(address: Address) -> bool:
    """Return whether a server at *address* accepts connections."""
    try:
        connect(address).close()
    except OSError:
        return False
    return True


@dataclass(frozen=True)
class Advice:
    """Advice on what to write instead of a section whose storage failed in a known way."""

    pattern: str
    """A regular expression that matches the cause of the failure."""
    text: str


@dataclass(frozen=True)
class StorageInfo:
    """Facts that decide how a contender can be measured, or that are recorded about it.

    The section of a known storage determines the name, the sharing, whether it prefetches, whether
    it is read only and whether its cache is persistent; all other fields need the open storage.
    """

    storage_name: str = "this storage"
    """The class of the outermost storage, followed by those that transparent wrappers wrap."""
    sharing: Sharing = Sharing.CONCURRENT
    promise: Promise = (Durability.UNKNOWN, "")
    server_place: Place | None = None
    """The place of its servers; ``None`` if it has none."""
    prefetches: bool | None = None
    """Whether ``Connection.prefetch`` does anything; ``None`` if that is not known."""
    stores_blobs: bool | None = None
    """Whether it can store blobs; ``None`` if that is not known."""
    read_only: bool = False
    retry_flaw: str | None = None
    """The reason why a transaction cannot be retried after a conflict."""
    resolution_flaw: str | None = None
    """The reason why resolved conflicts corrupt its data."""
    pack_flaw: str | None = None
    """The reason why it cannot be packed."""
    caches_left: tuple[str, ...] = ()
    """The caches that still hold records after the client-side caches have been emptied."""
    storage_classes: tuple[str, ...] = ()
    """``module.Class`` of every storage in the stack, outermost first."""
    driver: str = ""
    """The database driver, if it has one."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """The versions of its software, by product."""
    python: Mapping[str, str] = field(default_factory=dict)
    """The Python that opened it, as in pyperf's metadata."""
    modules: tuple[str, ...] = ()
    """The modules that were imported when it was opened."""
    corrections: tuple[str, ...] = ()
    """The workarounds for flaws of the released package, in a few words each."""
    persistent_cache: str = ""
    """The setting by which a cache outlives the process; see ``StorageType.persistent_cache``."""
    new_root: str = ""
    """The serial of the root object, in hexadecimal, if the root is empty and the type of the
    storage does not say whether other processes see what one has written; empty otherwise."""


class BrokenPlugin(Exception):  # noqa: N818
    """The object that an entry point refers to cannot be imported."""


def plugins(group: str) -> list[Any]:
    """Return the objects that the entry points of a group refer to.

    :raises BrokenPlugin: if one cannot be imported
    """
    if sys.version_info >= (3, 10):
        return [load_plugin(entry) for entry in entry_points(group=group)]
    return [load_plugin(entry) for entry in entry_points().get(group, ())]  # type: ignore[unreachable, unused-ignore]


def load_plugin(entry: EntryPoint) -> Any:
    """Return the object that an entry point refers to.

    :raises BrokenPlugin: if it cannot be imported
    """
    try:
        return entry.load()
    except Exception as error:
        raise BrokenPlugin(
            f"cannot import {entry.value}, the entry point {entry.name} of {entry.group}: "
            f"{describe(error)}; repair or uninstall the package that registers it"
        ) from error


GIT_TIMEOUT = 5.0
"""Seconds that git may take for an answer; a checkout may be on a slow file system."""


def installed_versions(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of those of the named distributions that are installed, by name.

    If it was installed from a repository or as an editable checkout, the version includes the
    commit, and for a checkout with changed files ``modified``:
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
    """Return the commit according to PEP 610's ``direct_url.json``, or ``None``."""
    try:
        origin = json.loads(installed.read_text("direct_url.json") or "{}")
    except ValueError:
        return None
    commit = origin.get("vcs_info", {}).get("commit_id")
    if commit:
        return f"git {commit[:12]}"
    if not origin.get("dir_info", {}).get("editable"):
        return None  # the directory may have changed since the installation
    directory = unquote(urlparse(origin["url"]).path)
    commit = _git(directory, "rev-parse", "--short=12", "HEAD")
    if not commit:
        return None
    changes = _git(directory, "status", "--porcelain", "--untracked-files=no")
    if changes is None:
        return None
    return f"git {commit}, modified" if changes else f"git {commit}"


def _git(directory: str, *words: str) -> str | None:
    try:
        command = ["git", "-C", directory, *words]
        process = subprocess.run(
            command, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=GIT_TIMEOUT,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.strip()
