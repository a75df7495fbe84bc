"""The types of storages: facts about a ZConfig section, and operations on an open storage.

A contender is a stack of storages, such as a wrapper around another storage.  A storage without
its own :class:`StorageType` can be measured, but its caches are not emptied.
"""

from __future__ import annotations

import functools
import importlib
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from ZODB.blob import BLOB_SUFFIX

from zodbshootout.client.reachability import Requirement
from zodbshootout.client.routes import Route
from zodbshootout.model.storage_facts import (
    Advice,
    CacheUse,
    DiskSize,
    Durability,
    Limit,
    Promise,
    Sharing,
    weakest,
)
from zodbshootout.plugins import plugins
from zodbshootout.versions import installed_versions

ENTRY_POINTS = "zodbshootout.storages"
"""The group of entry points with which other packages register types of storages."""

_MODULES = ("zodb", "relstorage", "pgjsonb", "zeo", "zlibstorage", "beforestorage")
"""The modules of this package that define types of storages."""

BlobRevision = tuple[bytes, bytes]
"""The OID and the serial of a blob."""


SERVER, DATABASE, CACHE = "SERVER", "DATABASE", "CACHE"
"""The names of the server, its database and its cache in values of a :class:`PrivateSection`."""


MEMCACHED = "private_memcached"
"""The name of the memcached server of ``--private``."""
PRIVATE_DSN = (
    f"host='${{{SERVER}_host}}' port='${{{SERVER}_port}}' dbname='{DATABASE}' user='zodbshootout' "
    f"password='${{{SERVER}_password}}'"
)
"""The DSN of a database in a private PostgreSQL."""


@dataclass(frozen=True)
class PrivateSection:
    """How ``--private`` changes sections so that they open new data and otherwise stay the same.

    Keys are spelled as in the file.  A section in which any other key has a value with a slash is
    refused: that may be a place of the original.
    """

    types: tuple[str, ...]
    """The types of the sections."""
    paths: tuple[str, ...] = ()
    """The keys of files and directories, whose paths it replaces by ones below ``$scratch``."""
    left_out: tuple[str, ...] = ()
    """The keys that it removes, because they lead to other servers or data."""
    values: Mapping[str, str] = field(default_factory=dict)
    """The values that it sets, by key."""
    values_with: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The values that it sets in addition if a certain key is present, by that key."""
    server: str = ""
    """The section type of the private server that a section needs."""
    location: tuple[str, ...] = ()
    """The keys that distinguish servers."""
    database: str = ""
    """The key with the database's name, if it is not one of these; by default it is ``1``."""
    dsn: str = ""
    """The key with a PostgreSQL DSN, of which settings about the connection are kept."""
    becomes: str = ""
    """The type that replaces the section's own."""
    package: str = ""
    """The package to ``%import`` for that type."""


class StorageType:
    """A type of storage: class methods read a section, and an instance has one open storage."""

    storage_class: ClassVar[str] = ""
    """``module.Class`` of the storage: a text, so that its package is imported only if used."""
    section_classes: ClassVar[tuple[str, ...]] = ()
    """``module.Class`` of the ZConfig sections that open it."""
    wraps: ClassVar[tuple[str, ...]] = ("base",)
    """The names of the attributes in which a wrapper keeps the storages that it wraps."""
    transparent: ClassVar[bool] = False
    """Whether it delegates to the one storage that it wraps whatever it does not do itself."""
    of_connection: ClassVar[bool] = False
    """Whether it is a connection's part of a storage, with its own cache.

    :meth:`empty_caches` and :meth:`cache_use` are then called for each connection, besides those of
    the storage.
    """
    sharing: ClassVar[Sharing] = Sharing.CONCURRENT
    """The number of DBs that can share its data; the narrowest in a stack applies to the stack."""
    durability: ClassVar[Durability] = Durability.UNKNOWN
    """The durability of all storages of the type; a wrapper's is that of the storage it wraps."""
    serves_threads: ClassVar[bool] = True
    """Whether several threads can use one storage object.

    A storage with its own MVCC need not support that, because each connection has another object.
    One without MVCC that cannot serve several threads also needs a limit with ``sharers=2``.
    """
    copies_blobs: ClassVar[bool] = True
    """Whether its ``copyTransactionsFrom`` copies the files of blobs."""
    zap_obstacle: ClassVar[str | None] = None
    """Why its data cannot be destroyed."""
    private: ClassVar[tuple[PrivateSection, ...]] = ()
    """How ``--private`` changes its section and sections in it; it refuses all other sections."""
    lasting_caches: ClassVar[tuple[str, ...] | None] = None
    """The names that :meth:`caches_left` returns; ``()`` if it has no cache, ``None`` if its caches
    are not known."""
    distributions: ClassVar[tuple[str, ...]] = ()
    """PyPI names of the packages whose versions are recorded."""

    # Class methods read the section, for facts that are needed before it is opened.

    @classmethod
    def keeping_sections(cls, section: Any) -> Sequence[Any]:
        """Return the inner sections whose storages receive what is written to this one.

        They tell the durability of a private ZEO server's storages, of which clients know nothing.
        """
        return inner_sections(section)

    @classmethod
    def requirements(cls, section: Any) -> Sequence[Requirement]:  # noqa: ARG003
        """Return the servers that must be running before it can be opened."""
        return ()

    @classmethod
    def mistake(cls, section: Any) -> tuple[str, str] | None:  # noqa: ARG003
        """Return the first words of a wrong line that ZConfig accepts, and its error.

        The run ends with this message before it starts anything.
        """
        return None

    @classmethod
    def installation(cls, section: Any) -> str | None:  # noqa: ARG003
        """Return the package to install if opening fails because a driver is missing."""
        return None

    @classmethod
    def advice(cls, section: Any) -> Sequence[Advice]:  # noqa: ARG003
        """Return replacements for the section if it fails in known ways."""
        return ()

    @classmethod
    def settle(cls, section: Any) -> None:
        """Set what *section* leaves to chance, right before it is opened.

        :raises Unsupported: if it cannot be opened in this process
        """

    @classmethod
    def reroute(cls, section: Any, route: Route) -> None:
        """Replace each address of a server in *section* by what *route* returns for it.

        An address is a pair of host and port, or the path of a socket: ``section.config.server =
        route(section.config.server)``.  Round trips are then counted, unless it also connects to
        other addresses, and ``--rtt`` puts a distance before the server.  For a server that only
        caches what a database has, call ``route(address, is_cache=True)``: its traffic is counted
        separately.
        """

    # Methods of the open storage, which ZODB's interfaces lack.

    def __init__(self, storage: Any) -> None:
        self.storage = storage
        """The open storage."""
        wrapped = (getattr(storage, name, None) for name in self.wraps)
        # An empty storage is false, so do not test its truth.
        self.inner = tuple(typed(inner) for inner in wrapped if hasattr(inner, "tpc_begin"))
        """The storages that it wraps."""

    @property
    def name(self) -> str:
        """The name that users see: the storage's class."""
        return type(self.storage).__name__

    def stack(self) -> Iterator[StorageType]:
        """Yield this storage and those below it, outermost first."""
        yield self
        for inner in self.inner:
            yield from inner.stack()

    def written_to(self) -> Iterator[StorageType]:
        """Yield this storage and those below it that receive what is written to it."""
        yield self
        for keeper in self.keepers():
            yield from keeper.written_to()

    def keepers(self) -> Sequence[StorageType]:
        """Return the inner storages that directly receive what is written to it."""
        return self.inner

    def promise(self) -> Promise:
        """Return the durability of a commit; a wrapper's is that of what it wraps.

        For example ``(Durability.MAY_LOSE, "fsync off")``: read them from the open storage or its
        server.  A wrapper's durability is that of what it wraps.
        """
        if type(self) is StorageType:
            return self.durability, self.name  # a wrapper may delay the inner commit
        keepers = self.keepers()
        return weakest(keeper.promise() for keeper in keepers) if keepers else (self.durability, "")

    def limits(self) -> Sequence[Limit]:
        """Return the crews that cannot use it, besides those that its sharing rules out."""
        return ()

    def persistent_cache(self) -> str:
        """Return the setting that makes its cache outlive the process, or ``""``.

        If it does not take effect at once, the reason follows after a colon and a space.
        """
        return ""

    def start_files(self) -> Sequence[Path]:
        """Return the files that closing it writes in order to open it faster."""
        return ()

    def own_caches(self) -> tuple[str, ...]:
        """Return the names of the client-side caches that :meth:`empty_caches` empties."""
        return ()

    def empty_caches(self) -> None:
        """Empty the caches of :meth:`own_caches`, so that no persistent file fills them again.

        If any storage of a stack has no type, the DB is closed and opened again instead.
        """

    def caches_left(self) -> tuple[str, ...]:
        """Return the names of its caches that still hold records after :meth:`empty_caches`.

        They are those of servers and files, such as
        :data:`~zodbshootout.api.storages.OPERATING_SYSTEM` and ``server_cache("Acme")``.
        """
        unknown = (f"unknown: {qualified(type(self.storage))}",)
        return unknown if self.lasting_caches is None else self.lasting_caches

    def forget_blobs(self, blobs: Sequence[BlobRevision]) -> tuple[str, ...]:  # noqa: ARG002
        """Remove these blobs from its client-side cache; return the name of that cache."""
        return ()

    def existing(self, oids: Sequence[bytes]) -> int | None:
        """Return how many of these objects exist, or ``None`` if loading each is as fast."""
        if not (self.transparent and self.inner):
            return None
        (wrapped,) = self.inner
        return wrapped.existing(oids)

    def cache_use(self) -> CacheUse | None:
        """Return the use of its cache so far, or ``None`` if it has no cache or does not count.

        ``cold`` checks by it that the cache served nothing; for ``hot``, ``prefetch_cold`` and
        ``warm`` a line below the table says which share of the loads it served.
        """
        return None

    def combined_cache_use(self) -> CacheUse | None:
        """Return the use of its cache or, if that is not known, the sum over all inner storages.

        Return ``None`` if the use is not known for one of these.
        """
        own = self.cache_use()
        if own is not None or not self.inner:
            return own
        total = CacheUse(0, 0)
        for inner in self.inner:
            use = inner.combined_cache_use()
            if use is None:
                return None
            total += use
        return total

    def disk_size(self, *, blobs: bool) -> DiskSize:
        """Return the bytes that its database takes on disk, of *blobs* only if they are used.

        A wrapper's database is that of the storages that receive what is written to it.
        """
        sizes = [keeper.disk_size(blobs=blobs) for keeper in self.keepers()]
        return functools.reduce(operator.add, sizes) if sizes else DiskSize()

    def keeps_blobs(self) -> bool:
        """Return whether it is configured to keep blobs, if its interfaces do not show that."""
        return True

    def undoes(self) -> bool:
        """Return whether it can undo transactions."""
        supports_undo = getattr(self.storage, "supportsUndo", None)
        return bool(supports_undo and supports_undo())

    def undo_flaw(self) -> str | None:
        """Return why several clients cannot undo at the same time, or ``None``."""
        return None

    def keeps_history(self) -> bool:
        """Return whether it keeps old revisions until it is packed."""
        keepers = self.keepers()
        kept = bool(keepers) and all(keeper.keeps_history() for keeper in keepers)
        return kept or self.undoes()

    def collects_garbage(self) -> bool | None:
        """Return whether packing removes unreachable objects; ``None`` if that is unknown."""
        if not (self.transparent and self.inner):
            return None
        (wrapped,) = self.inner
        return wrapped.collects_garbage()

    def only_prepacks(self) -> bool:
        """Return whether packing only determines what could be removed, and removes nothing."""
        return False

    def forget_pack(self) -> tuple[str, ...]:
        """Remove the remains of earlier packs that make a pack fail; return their name."""
        return ()

    def pack_flaw(self) -> str | None:
        """Return why it cannot be packed, or ``None`` if no reason is known.

        ``--pack`` and ``--during pack`` are then not supported.
        """
        return None

    def vacuum_flaw(self) -> str | None:
        """Return why :meth:`vacuum` has no effect, or ``None`` if its database can be vacuumed."""
        return "no way to vacuum its database is known"

    def vacuum(self) -> None:
        """Have its database take back the room of rows that were removed from it.

        Exceptions of its driver may propagate.
        """

    def retry_flaw(self) -> str | None:
        """Return the bug by which a refused transaction cannot be retried, or ``None``.

        ``readCurrent_conflicts`` is then not supported.
        """
        return None

    def resolution_flaw(self) -> str | None:
        """Return the bug by which resolved conflicts corrupt its data, or ``None``.

        ``conflicts`` and ``conflicts_map`` are then not supported.
        """
        return None

    def zap(self, db: Any) -> bool:  # noqa: ARG002
        """Close *db* and destroy all data, except for files of blobs, or return ``False``.

        Files in its blob directory are removed afterwards.  If it returns ``False``, ``--zap``
        removes everything from the root and packs, unless there is a :attr:`zap_obstacle`.
        """
        return False

    def run_sql(self, statements: Sequence[str]) -> bool:  # noqa: ARG002
        """Run SQL statements in one transaction; return ``False`` if it has no SQL database."""
        return False

    def driver(self) -> str | None:
        """Return the name of the database driver, if it has one."""
        return None

    def versions(self) -> dict[str, str]:
        """Return the versions of its software, by product."""
        return installed_versions(self.distributions)

    def corrections(self) -> tuple[str, ...]:
        """Return the workarounds for flaws of the released package, each in a few words."""
        return ()


@functools.cache
def storage_types() -> tuple[type[StorageType], ...]:
    """Return all types of storages, those of other packages first."""
    return (*plugins(ENTRY_POINTS), *ours())


def ours() -> list[type[StorageType]]:
    """Return the types of this package."""
    modules = (importlib.import_module(f"{__name__}.{name}") for name in _MODULES)
    return [storage_type for module in modules for storage_type in module.STORAGES]


def typed(storage: Any) -> StorageType:
    """Return the type of an open storage, :class:`StorageType` if it is unknown."""
    names = class_names(type(storage))
    known = (cls for cls in storage_types() if cls.storage_class in names)
    return next(known, StorageType)(storage)


def type_of_section(section: Any) -> type[StorageType]:
    """Return the type of the storage that a section opens; :class:`StorageType` if unknown."""
    names = class_names(type(section))
    known = (cls for cls in storage_types() if names & set(cls.section_classes))
    return next(known, StorageType)


def inner_sections(section: Any) -> list[Any]:
    """Return the sections that are directly within *section*."""
    settings: Any = getattr(section, "config", None)
    if not hasattr(settings, "getSectionAttributes"):
        return []
    values = (getattr(settings, attribute) for attribute in settings.getSectionAttributes())
    lists = (value if isinstance(value, list) else [value] for value in values)
    return [inner for inners in lists for inner in inners if hasattr(inner, "config")]


def nested_sections(section: Any) -> Iterator[Any]:
    """Yield *section* and every section within it, outermost first."""
    yield section
    for inner in inner_sections(section):
        yield from nested_sections(inner)


def promise_of(section: Any) -> Promise:
    """Return the durability of a commit, as far as the types of a section's storages show it."""
    kind = type_of_section(section)
    keeping = () if kind is StorageType else kind.keeping_sections(section)
    return weakest(map(promise_of, keeping)) if keeping else (kind.durability, "")


def settle(section: Any) -> None:
    """Set what *section* and its inner sections leave to chance, right before it is opened."""
    for inner in nested_sections(section):
        type_of_section(inner).settle(inner)


def reroute(section: Any, route: Route) -> None:
    """Replace the addresses in *section* and its inner sections, right before it is opened."""
    for inner in nested_sections(section):
        type_of_section(inner).reroute(inner, route)


def qualified(cls: type) -> str:
    """Return the ``module.Class`` of a class."""
    return f"{cls.__module__}.{cls.__qualname__}"


def class_names(cls: type) -> set[str]:
    """Return the ``module.Class`` of a class and of its base classes."""
    return set(map(qualified, cls.__mro__))


def remove_cached_blobs(fshelper: Any, blobs: Iterable[BlobRevision]) -> None:
    """Remove the files of these blobs from their cache directory."""
    for oid, serial in blobs:
        Path(fshelper.getBlobFilename(oid, serial)).unlink(missing_ok=True)


def size_of_blobs(directory: str) -> int:
    """Return the total size of the blobs in *directory*, in bytes."""
    return sum(
        (Path(inner) / name).stat().st_size
        for inner, _, names in os.walk(directory)
        for name in names
        if name.endswith(BLOB_SUFFIX)
    )


def remove_blobs(directory: str) -> None:
    """Remove the files of all blobs in *directory*, and then its empty subdirectories."""
    for path in Path(directory).rglob(f"*{BLOB_SUFFIX}"):
        path.unlink()
    for inner, _, _ in os.walk(directory, topdown=False):
        if inner != directory:
            with suppress(OSError):  # the directory is not empty
                Path(inner).rmdir()
