"""The types of storages: facts about a ZConfig section, and operations on an open storage.

A wrapper and the storages that it wraps form a stack.  A storage without its own
:class:`StorageType` can be measured, but its caches can be emptied only by closing it.
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
from ZODB.config import ZODBDatabase

from zodbshootout.client.reachability import Requirement
from zodbshootout.model.storage_facts import (
    Advice,
    CacheUse,
    DiskSize,
    Durability,
    Link,
    Promise,
    Sharing,
    StorageInfo,
    weakest,
)
from zodbshootout.plugins import plugins
from zodbshootout.versions import installed_versions

ENTRY_POINTS = "zodbshootout.storages"
"""The group of entry points with which other packages register types of storages."""

_MODULES = ("zodb", "relstorage", "pgjsonb", "zeo", "zlibstorage", "beforestorage", "zodburi")
"""The modules of this package that define types of storages."""

BlobRevision = tuple[bytes, bytes]
"""The OID and the serial of a blob."""


SERVER, DATABASE, CACHE = "SERVER", "DATABASE", "CACHE"
"""Placeholders in a :class:`PrivateSection` for the names of a server, a database and a cache."""


MEMCACHED = "private_memcached"
"""The name of the memcached server of ``--private``."""
PRIVATE_DSN = (
    f"host='${{{SERVER}_host}}' port='${{{SERVER}_port}}' dbname='{DATABASE}' user='zodbshootout' "
    f"password='${{{SERVER}_password}}'"
)
"""The DSN of a database in a private PostgreSQL."""
SERVER_DSN = "dsn host=$db_host port=$db_port"
"""The line by which a section refers to a PostgreSQL server ``db``."""


@dataclass(frozen=True)
class PrivateSection:
    """A rule by which ``--private`` changes sections so that they open new data.

    Settings that do not determine which data a section opens stay unchanged.  Keys are spelled as
    in the configuration.  Every key whose value contains a slash must be listed here, except
    ``driver``.  Otherwise ``--private`` refuses the section, because the value may be the path of
    the original data.
    """

    types: tuple[str, ...]
    """The types of the sections to which the rule applies."""
    paths: tuple[str, ...] = ()
    """The keys of files and directories, whose paths are replaced by paths below ``$scratch``."""
    left_out: tuple[str, ...] = ()
    """The keys to remove, such as those that name another server or a password."""
    values: Mapping[str, str] = field(default_factory=dict)
    """The values to set, by key."""
    values_with: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """For each key, the values to set in a section that has this key."""
    server: str = ""
    """The type of private server that a section needs, such as ``zeoserver``."""
    location: tuple[str, ...] = ()
    """The keys that name the original server.  If :attr:`database` is empty, they also name its
    database."""
    database: str = ""
    """The key with the database's name; the default name is ``1``.  This attribute is empty if the
    keys of :attr:`location` name the database."""
    dsn: str = ""
    """The key with a PostgreSQL DSN, in which ``--private`` keeps settings such as timeouts."""
    becomes: str = ""
    """The type of section that replaces the original type."""
    package: str = ""
    """The package to ``%import`` for the type :attr:`becomes`."""


class StorageType:
    """A type of storage: class methods read a section, and an instance has one open storage."""

    storage_class: ClassVar[str] = ""
    """``module.Class`` of the storage, as text, so that the package is imported only if used."""
    section_classes: ClassVar[tuple[str, ...]] = ()
    """``module.Class`` of the ZConfig sections that open the storage."""
    wraps: ClassVar[tuple[str, ...]] = ("base",)
    """The names of the attributes in which a wrapper keeps the storages that it wraps."""
    transparent: ClassVar[bool] = False
    """Whether this type wraps a single storage, which does everything that the wrapper does not."""
    of_connection: ClassVar[bool] = False
    """Whether each connection has its own storage of this type, with its own cache.

    :meth:`empty_caches` and :meth:`cache_use` are then called for each connection as well as for
    the DB's storage.
    """
    sharing: ClassVar[Sharing] = Sharing.CONCURRENT
    """How many DBs can share the data; the narrowest sharing in a stack applies to the stack."""
    durability: ClassVar[Durability] = Durability.UNKNOWN
    """The durability of a commit; a wrapper has that of its inner storages, see :meth:`promise`."""
    serves_threads: ClassVar[bool] = True
    """Whether several threads can use one storage object.

    If threads cannot share a storage object, :meth:`facts` must have a limit with ``sharers=2``,
    which forbids that two or more clients share a DB.  A type with its own MVCC needs no such
    limit, because each connection has its own storage object.
    """
    private: ClassVar[tuple[PrivateSection, ...]] = ()
    """The rules by which ``--private`` changes sections; it refuses sections without a rule."""
    lasting_caches: ClassVar[tuple[str, ...] | None] = None
    """The names that :meth:`caches_left` returns; ``()`` if there are no caches, ``None`` if the
    caches are not known."""
    distributions: ClassVar[tuple[str, ...]] = ()
    """PyPI names of the packages whose versions are recorded."""

    # Class methods get a section: they are called before the storage is open.

    @classmethod
    def keeping_sections(cls, section: Any) -> Sequence[Any]:
        """Return the inner sections whose storages receive what is written.

        A private ZEO server's durability is read from these sections, because no client knows it.
        """
        return inner_sections(section)

    @classmethod
    def requirements(cls, section: Any) -> Sequence[Requirement]:  # noqa: ARG003
        """Return the servers that must be running before the storage can be opened."""
        return ()

    @classmethod
    def mistake(cls, section: Any) -> tuple[str, str] | None:  # noqa: ARG003
        """Find a mistake that ZConfig accepts.

        Return the beginning of the line with the mistake, and an error message.  The run ends with
        this message before it starts anything.
        """
        return None

    @classmethod
    def installation(cls, section: Any) -> str | None:  # noqa: ARG003
        """Return the message to show if a driver is missing; it names the package to install."""
        return None

    @classmethod
    def advice(cls, section: Any) -> Sequence[Advice]:  # noqa: ARG003
        """Return advice for known failures, such as what to write in the section instead."""
        return ()

    @classmethod
    def settle(cls, section: Any) -> None:
        """Choose what *section* leaves open, such as a driver, right before its storage is opened.

        :raises Unsupported: if the section cannot be opened in this process
        """

    @classmethod
    def server_line(cls, section: Any) -> str | None:  # noqa: ARG003
        """Return the line by which a section refers to a server ``db``, such as ``server $db``.

        Return ``""`` if the storage itself connects to no server, and ``None`` if only the open
        storage shows whether it does.  Only a storage whose section refers to the section of its
        server can be at a distance, and only its round trips are counted.
        """
        return None

    # The following methods work on the open storage; ZODB's interfaces have no such methods.

    def __init__(self, storage: Any) -> None:
        self.storage = storage
        """The open storage."""
        wrapped = (getattr(storage, name, None) for name in self.wraps)
        # An empty storage is false, so do not test its truth.
        self.inner = tuple(typed(inner) for inner in wrapped if hasattr(inner, "tpc_begin"))
        """The wrapped storages."""

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
        """Yield this storage and those below it that receive what is written to this storage."""
        yield self
        for keeper in self.keepers():
            yield from keeper.written_to()

    def keepers(self) -> Sequence[StorageType]:
        """Return the inner storages that directly receive what is written to this storage."""
        return self.inner

    def facts(self) -> StorageInfo:
        """Return what the open storage tells without asking a server; leave out what is unknown.

        Only these fields are read: ``limits``, ``zap_obstacle``, ``stores_blobs`` (``False`` if the
        storage claims to keep blobs, but cannot do so as configured), ``copies_blobs``,
        ``retry_flaw``, ``resolution_flaw``, ``pack_flaw``, ``undo_flaw``, ``keeps_history``,
        ``collects_garbage``, ``only_prepacks``, ``driver``, ``corrections``, ``persistent_cache``
        and ``persistent_cache_flaw``.
        """
        return StorageInfo()

    def promise(self) -> Promise:
        """Ask the storage or its server for the durability of a commit; return it with a reason.

        An example is ``(Durability.MAY_LOSE, "fsync off")``.  By default, a wrapper returns the
        weakest promise of its :meth:`keepers`.
        """
        if type(self) is StorageType:
            return self.durability, self.name  # a wrapper may delay the inner commit
        keepers = self.keepers()
        return weakest(keeper.promise() for keeper in keepers) if keepers else (self.durability, "")

    def link(self) -> Link:
        """Return what the storage's server tells about connections to it.

        By default, that is what the first server of :meth:`keepers` tells, if there is one.
        """
        links = (keeper.link() for keeper in self.keepers())
        return next((link for link in links if link != Link()), Link())

    def start_files(self) -> Sequence[Path]:
        """Return the files that a storage writes when it is closed, to open faster next time."""
        return ()

    def own_caches(self) -> tuple[str, ...]:
        """Return the names of the client-side caches that :meth:`empty_caches` empties."""
        return ()

    def empty_caches(self) -> None:
        """Empty the caches of :meth:`own_caches`; keep persistent files from filling them again.

        If no StorageType fits a storage of the stack, benchmarks such as ``cold`` also close the
        DB and open it again.
        """

    def caches_left(self) -> tuple[str, ...]:
        """Return the names of the caches that still hold records after :meth:`empty_caches`.

        These are caches of servers and of files, such as
        :data:`~zodbshootout.api.storages.OPERATING_SYSTEM` and ``server_cache("Acme")``.
        """
        unknown = (f"unknown: {qualified(type(self.storage))}",)
        return unknown if self.lasting_caches is None else self.lasting_caches

    def forget_blobs(self, blobs: Sequence[BlobRevision]) -> tuple[str, ...]:  # noqa: ARG002
        """Remove these blobs from the client-side cache; return the name of that cache."""
        return ()

    def existing(self, oids: Sequence[bytes]) -> int | None:
        """Return how many of these objects exist.

        Return ``None`` if the caller has to load the objects to find out.
        """
        if not (self.transparent and self.inner):
            return None
        (wrapped,) = self.inner
        return wrapped.existing(oids)

    def cache_use(self) -> CacheUse | None:
        """Return the hits and misses of the cache so far; ``None`` if nothing counts them.

        ``cold`` checks that the cache had no hits.  For ``hot``, ``prefetch_cold`` and ``warm``, a
        line below the table says which share of the loads the cache served.
        """
        return None

    def combined_cache_use(self) -> CacheUse | None:
        """Return :meth:`cache_use` or, if that is ``None``, the sum over all inner storages.

        Return ``None`` if an inner storage returns ``None``.
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
        """Return the bytes that the database takes on disk; blobs count only if *blobs* is true.

        By default, a wrapper returns the sum of its :meth:`keepers`.
        """
        sizes = [keeper.disk_size(blobs=blobs) for keeper in self.keepers()]
        return functools.reduce(operator.add, sizes) if sizes else DiskSize()

    def forget_pack(self) -> tuple[str, ...]:
        """Remove data that would make the next pack fail; return the names of this data."""
        return ()

    def vacuum(self) -> bool:
        """Have the database reclaim the space of removed rows; return whether there is a way to.

        Exceptions of the driver may propagate.
        """
        return False

    def zap(self, db: Any) -> bool:  # noqa: ARG002
        """Close *db*, destroy all data except for files of blobs, and return ``True``.

        By default, do nothing and return ``False``.  In that case, ``--zap`` empties the root and
        then packs the database.  In both cases, it finally removes the files of blobs.
        """
        return False

    def run_sql(self, statements: Sequence[str]) -> bool:  # noqa: ARG002
        """Run SQL statements in one transaction; return ``False`` if there is no SQL database."""
        return False

    def versions(self) -> dict[str, str]:
        """Return the versions of the storage's software, by product."""
        return installed_versions(self.distributions)


class LocalStorageType(StorageType):
    """A storage that itself connects to no server, such as one in files, or a wrapper."""

    @classmethod
    def server_line(cls, section: Any) -> str | None:  # noqa: ARG003
        return ""


@functools.cache
def storage_types() -> tuple[type[StorageType], ...]:
    """Return all types of storages, those of other packages first."""
    return (*plugins(ENTRY_POINTS), *ours())


def ours() -> list[type[StorageType]]:
    """Return the types of this package."""
    modules = (importlib.import_module(f"{__name__}.{name}") for name in _MODULES)
    return [storage_type for module in modules for storage_type in module.STORAGES]


def typed(storage: Any) -> StorageType:
    """Return the type of an open storage; :class:`StorageType` if unknown."""
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
    """Return the durability of a commit, judging only by the types of a section's storages."""
    kind = type_of_section(section)
    keeping = () if kind is StorageType else kind.keeping_sections(section)
    return weakest(map(promise_of, keeping)) if keeping else (kind.durability, "")


def settle(section: Any) -> None:
    """Call :meth:`StorageType.settle` for *section* and its inner sections."""
    for inner in nested_sections(section):
        type_of_section(inner).settle(inner)


def server_line_of(section: Any) -> str | None:
    """Return :meth:`StorageType.server_line` for *section* and its inner sections together."""
    storages = (
        inner
        for inner in nested_sections(section)
        if hasattr(inner, "open") and not isinstance(inner, ZODBDatabase)
    )
    lines = [type_of_section(inner).server_line(inner) for inner in storages]
    return next(filter(None, lines), None if None in lines else "")


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
