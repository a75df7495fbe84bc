"""Facts about a contender's storage: the crews that can use it, its promises and its caches."""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from zodbshootout.model.specification import ClientKind, CrewShape


class Sharing(enum.Enum):
    """How many DBs can share a storage's data; the members are ordered from most to fewest."""

    CONCURRENT = "any number of DBs at once"
    """The data of a server, for example."""
    EXCLUSIVE = "one DB at a time"
    """The data of a FileStorage, for example."""
    VOLATILE = "one DB, until it is closed"
    """The data of a MappingStorage, for example."""


def narrowest(sharings: Iterable[Sharing]) -> Sharing:
    """Return the sharing of a stack of storages, which is the narrowest of their *sharings*."""
    return max(sharings, key=list(Sharing).index, default=Sharing.CONCURRENT)


class Durability(enum.Enum):
    """The fate of committed transactions in a power cut."""

    SYNCED = "synced"
    """No transaction is lost: each commit waits until the disk has the data."""
    MAY_LOSE = "may lose the last commits"
    """Some of the last transactions are lost: a commit does not wait for the disk."""
    IN_MEMORY = "in memory"
    """All transactions are lost, at the end of the process at the latest."""
    UNKNOWN = "unknown"
    """Nothing is known about the fate of transactions."""


Promise = tuple[Durability, str]
"""The durability of commits, and the settings or facts that determine it, in a few words."""


def weakest(promises: Iterable[Promise]) -> Promise:
    """Return the weakest of *promises*, which must not be empty."""
    return max(promises, key=lambda promise: list(Durability).index(promise[0]))


class Place(enum.Enum):
    """The machine that a server runs on."""

    PRIVATE = "this machine, private"
    """This machine; the run starts the server itself."""
    HERE = "this machine"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True)
class Link:
    """What a server tells about a client's connection to it."""

    encryption: str = ""
    """The version of TLS, or ``none``; empty if that is not known."""
    idle_limit: str = ""
    """The setting after which the server closes an idle connection, and its value, if that is less
    than an hour."""
    max_connections: int = 0
    """The maximum number of connections that the server accepts; 0 if that is not known."""


EMPTY_AND_READ_ONLY = (
    "its database is empty, and it is read-only; run the benchmark once on a contender that writes "
    "to the same database"
)
PICKLE_CACHE = "pickle cache"
OPERATING_SYSTEM = "operating system"
"""The names, as users see them, of caches between an application and the disk."""


def server_cache(product: str) -> str:
    """Return the name, as users see it, of the cache of a server of *product*."""
    return f"{product} server"


@dataclass(frozen=True)
class CacheUse:
    """Hits and misses of a storage's own cache since the storage began to count them."""

    hits: int
    """Loads that the cache has served."""
    misses: int | None
    """Loads that the cache could not serve; ``None`` if the storage does not count them."""
    per_opening: int = 0
    """The maximum number of hits that opening a connection causes by itself."""

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


@dataclass(frozen=True)
class DiskSize:
    """The bytes that a database takes on disk; a part that is not known is ``None``."""

    records: int | None = None
    """Bytes of records and their indexes."""
    blobs: int | None = None
    """Bytes of blobs."""
    log: int | None = None
    """Bytes that the server has written to its log so far, including bytes removed since."""

    @property
    def data(self) -> int | None:
        """Bytes of records and blobs; ``None`` if records are unknown.  Unknown blobs count 0."""
        return None if self.records is None else self.records + (self.blobs or 0)

    def __add__(self, other: DiskSize) -> DiskSize:
        return self._with(other, operator.add)

    def __sub__(self, other: DiskSize) -> DiskSize:
        return self._with(other, operator.sub)

    def _with(self, other: DiskSize, combine: Callable[[int, int], int]) -> DiskSize:
        pairs = zip((self.records, self.blobs, self.log), (other.records, other.blobs, other.log))
        return DiskSize(
            *(None if one is None or two is None else combine(one, two) for one, two in pairs)
        )


def clients_together(shape: CrewShape, hosts_together: int) -> int:
    """Return the maximum number of clients on a machine that runs up to *hosts_together* hosts."""
    hosts = max(1, shape.hosts)
    return min(shape.size, math.ceil(shape.size / hosts) * min(hosts_together, hosts))


@dataclass(frozen=True)
class Limit:
    """A restriction: crews that match all its fields cannot use the storage."""

    reason: str
    """The reason, followed by the option to use instead."""
    client_kinds: frozenset[ClientKind] = frozenset(ClientKind)
    """The kinds of clients to which the limit applies."""
    databases: int = 1
    """The limit applies only to crews with at least this many DBs on one machine."""
    of_process: bool = False
    """Whether :attr:`databases` counts DBs per process, not per machine.  The clients of each host
    count as one process."""
    sharers: int = 1
    """The limit applies only to crews in which at least this many clients share one DB."""

    def applies_to(self, shape: CrewShape, hosts_together: int = 1) -> bool:
        """Return whether the limit rules out a crew of that *shape*.

        :param hosts_together: the maximum number of the crew's hosts that are on one machine
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
class Advice:
    """Advice to print if a contender fails with a known error."""

    pattern: str
    """A regular expression that matches the cause of the failure."""
    text: str
    """The advice, such as what to write in the section instead."""


@dataclass(frozen=True)
class StorageInfo:
    """Facts that decide how a contender can be measured, or that are recorded about it.

    The facts come from the open storage; before it is opened, nothing is known.
    """

    storage_name: str = "this storage"
    """The class of the outermost storage; for a transparent wrapper, ``Wrapper over Storage``."""
    sharing: Sharing = Sharing.CONCURRENT
    promise: Promise = (Durability.UNKNOWN, "")
    """The durability of commits, and the settings that decide it."""
    server_place: Place | None = None
    """The place of the servers; ``None`` if there are none."""
    link: Link = Link()
    """What the server tells about connections to it."""
    limits: tuple[Limit, ...] = ()
    """The crews that cannot use the storage, besides those that :attr:`sharing` rules out."""
    zap_obstacle: str | None = None
    """The reason why the data cannot be destroyed."""
    prefetches: bool | None = None
    """Whether ``Connection.prefetch`` does anything; ``None`` if that is not known."""
    stores_blobs: bool | None = None
    """Whether the storage can store blobs; ``None`` if that is not known."""
    read_only: bool = False
    """Whether the storage accepts no writes."""
    copies_blobs: bool = True
    """Whether ``copyTransactionsFrom`` copies the files of blobs."""
    retry_flaw: str | None = None
    """The bug that rules out retries of refused transactions, and ``readCurrent_conflicts``."""
    resolution_flaw: str | None = None
    """The bug by which resolved conflicts corrupt the data; it rules out ``conflicts``."""
    pack_flaw: str | None = None
    """The reason why the storage cannot be packed, which rules out ``--pack``."""
    keeps_history: bool | None = None
    """Whether old revisions stay until the storage is packed; ``None`` if that is not known."""
    undoes: bool | None = None
    """Whether the storage can undo transactions; ``None`` if that is not known."""
    undo_flaw: str | None = None
    """The reason why several clients cannot undo at the same time."""
    collects_garbage: bool | None = None
    """Whether packing removes unreachable objects; ``None`` if that is not known."""
    only_prepacks: bool = False
    """Whether packing only determines what could be removed, and removes nothing."""
    knows_caches: bool = True
    """Whether the types of all storages in the stack are known; if not, there may be a cache that
    only closing the DB can empty."""
    caches_left: tuple[str, ...] = ()
    """The caches that still hold records after the client-side caches have been emptied."""
    storage_classes: tuple[str, ...] = ()
    """``module.Class`` of every storage in the stack, outermost first."""
    driver: str = ""
    """The database driver, if there is one."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """The versions of the storage's software, by product."""
    python: Mapping[str, str] = field(default_factory=dict)
    """The Python that opened the storage, as pyperf's metadata describe it."""
    modules: tuple[str, ...] = ()
    """The modules that are loaded when the storage is open."""
    corrections: tuple[str, ...] = ()
    """The workarounds for flaws of the storage's package, each in a few words."""
    persistent_cache: str = ""
    """The setting that makes a cache outlive the process."""
    persistent_cache_flaw: str = ""
    """The reason why this cache serves less than it could."""
    new_root: str = ""
    """The hexadecimal serial of an empty root object, if the storage's type is unknown; otherwise
    empty.  Two processes that find different serials do not see each other's data."""
