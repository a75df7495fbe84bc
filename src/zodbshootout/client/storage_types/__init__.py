"""The types of storages: knowledge about a ZConfig section, and operations on an open storage.

A contender is a stack of storages, such as a wrapper around another storage.  A storage without a
:class:`StorageType` of its own can be measured, but its caches are not emptied.
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
"""In values of a :class:`PrivateSection`: the names of its server, its database and its cache."""


MEMCACHED = "private_memcached"
"""The name of the memcached server of ``--private``."""
PRIVATE_DSN = (
    f"host='${{{SERVER}_host}}' port='${{{SERVER}_port}}' dbname='{DATABASE}' user='zodbshootout' "
    f"password='${{{SERVER}_password}}'"
)
"""The DSN of a database in a private PostgreSQL."""


@dataclass(frozen=True)
class PrivateSection:
    """How ``--private`` changes sections, so that they open new data and keep all else."""

    types: tuple[str, ...]
    """The types of the sections."""
    paths: tuple[str, ...] = ()
    """The keys of files and directories; each gets a path below ``$scratch`` instead."""
    left_out: tuple[str, ...] = ()
    """The keys that are left out, because they lead to other servers or data."""
    values: Mapping[str, str] = field(default_factory=dict)
    """The values that it gets, by key."""
    values_with: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The values that it gets in addition if it has a certain key."""
    server: str = ""
    """The type of the section of the private server that it needs."""
    location: tuple[str, ...] = ()
    """The keys that tell one server from another."""
    database: str = ""
    """The key with the name of its database, if that is not among them; by default it is ``1``."""
    dsn: str = ""
    """The key with a DSN of PostgreSQL, whose settings about the connection are kept."""
    becomes: str = ""
    """The type that it gets instead of its own."""
    package: str = ""
    """The package to ``%import`` for that type."""


class StorageType:
    """A type of storage: class methods read a section; an instance has one open storage."""

    storage_class: ClassVar[str] = ""
    """``module.Class`` of the storage."""
    section_classes: ClassVar[tuple[str, ...]] = ()
    """``module.Class`` of the ZConfig sections that open it."""
    wraps: ClassVar[tuple[str, ...]] = ("base",)
    """The names of the attributes in which a wrapper has the storages that it wraps."""
    transparent: ClassVar[bool] = False
    """Whether it delegates all other methods to the storage that it wraps."""
    of_connection: ClassVar[bool] = False
    """Whether it is a connection's own part of a storage, with a cache of its own."""
    sharing: ClassVar[Sharing] = Sharing.CONCURRENT
    durability: ClassVar[Durability] = Durability.UNKNOWN
    """The durability of all storages of the type; a wrapper's is that of what keeps its data."""
    serves_threads: ClassVar[bool] = True
    """Whether several threads can use one storage object; a storage with its own MVCC need not
    support that."""
    copies_blobs: ClassVar[bool] = True
    """Whether its ``copyTransactionsFrom`` copies the files of blobs."""
    zap_obstacle: ClassVar[str | None] = None
    """Why its data cannot be destroyed."""
    private: ClassVar[tuple[PrivateSection, ...]] = ()
    """How ``--private`` changes its section and those in it; all other sections are refused."""
    lasting_caches: ClassVar[tuple[str, ...] | None] = None
    """The names that :meth:`caches_left` returns; ``None`` if its caches are not known."""
    distributions: ClassVar[tuple[str, ...]] = ()
    """PyPI names of the packages whose versions are recorded."""

    # Class methods that read the section, for what has to be known before it is opened.

    @classmethod
    def keeping_sections(cls, section: Any) -> Sequence[Any]:
        """Return the inner sections whose storages get what is written to this one."""
        return inner_sections(section)

    @classmethod
    def requirements(cls, section: Any) -> Sequence[Requirement]:  # noqa: ARG003
        """Return the servers that have to run before it can be opened."""
        return ()

    @classmethod
    def mistake(cls, section: Any) -> tuple[str, str] | None:  # noqa: ARG003
        """Return the first words of a wrong line that ZConfig accepts, and what is wrong."""
        return None

    @classmethod
    def installation(cls, section: Any) -> str | None:  # noqa: ARG003
        """Return which package to install if opening fails because a driver is missing."""
        return None

    @classmethod
    def advice(cls, section: Any) -> Sequence[Advice]:  # noqa: ARG003
        """Return what to write instead of the section if it fails in a known way."""
        return ()

    @classmethod
    def settle(cls, section: Any) -> None:
        """Set what *section* leaves to chance, right before it is opened.

        :raises Unsupported: if it cannot be opened in this process
        """

    @classmethod
    def reroute(cls, section: Any, route: Route) -> None:
        """Replace each address of a server in *section* by what *route* returns for it."""

    # Methods of the open storage that ZODB's interfaces lack.

    def __init__(self, storage: Any) -> None:
        self.storage = storage
        wrapped = (getattr(storage, name, None) for name in self.wraps)
        # Do not test the truth of a storage: an empty one is false.
        self.inner = tuple(typed(inner) for inner in wrapped if hasattr(inner, "tpc_begin"))
        """The storages that it wraps."""

    @property
    def name(self) -> str:
        """The name that users see: the class of the storage."""
        return type(self.storage).__name__

    def stack(self) -> Iterator[StorageType]:
        """Yield this storage and those below it, outermost first."""
        yield self
        for inner in self.inner:
            yield from inner.stack()

    def written_to(self) -> Iterator[StorageType]:
        """Yield this storage and those below it that get what is written to it."""
        yield self
        for keeper in self.keepers():
            yield from keeper.written_to()

    def keepers(self) -> Sequence[StorageType]:
        """Return the inner storages that directly get what is written to it."""
        return self.inner

    def promise(self) -> Promise:
        """Return the durability of a commit; that of a wrapper is that of what it wraps."""
        if type(self) is StorageType:
            return self.durability, self.name  # it may have the wrapped storage commit later
        keepers = self.keepers()
        return weakest(keeper.promise() for keeper in keepers) if keepers else (self.durability, "")

    def limits(self) -> Sequence[Limit]:
        """Return the crews that cannot use it, except for those that its sharing rules out."""
        return ()

    def persistent_cache(self) -> str:
        """Return the setting by which its cache outlives the process, or ``""``.

        If that does not work at once, the reason follows after a colon and a blank.
        """
        return ""

    def start_files(self) -> Sequence[Path]:
        """Return the files that are written when it is closed, to be opened faster again."""
        return ()

    def own_caches(self) -> tuple[str, ...]:
        """Return the names of the client-side caches that :meth:`empty_caches` empties."""
        return ()

    def empty_caches(self) -> None:
        """Empty the caches of :meth:`own_caches`."""

    def caches_left(self) -> tuple[str, ...]:
        """Return the names of its caches that hold records even after :meth:`empty_caches`."""
        unknown = (f"unknown: {qualified(type(self.storage))}",)
        return unknown if self.lasting_caches is None else self.lasting_caches

    def forget_blobs(self, blobs: Sequence[BlobRevision]) -> tuple[str, ...]:  # noqa: ARG002
        """Remove these blobs from its client-side cache; return the name of that cache."""
        return ()

    def existing(self, oids: Sequence[bytes]) -> int | None:
        """Return how many of these objects exist, ``None`` if loading each tells it as fast."""
        if not (self.transparent and self.inner):
            return None
        (wrapped,) = self.inner
        return wrapped.existing(oids)

    def cache_use(self) -> CacheUse | None:
        """Return the use of its cache so far, or ``None`` if it has no cache or does not count."""
        return None

    def combined_cache_use(self) -> CacheUse | None:
        """Return the use of its cache or, if that is not known, the sum for all inner storages.

        Return ``None`` if it is not known for one of these.
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
        """Return the bytes that its database takes on the disk; of *blobs* only if they are used.

        A wrapper's database is that of the storages which get what is written to it.
        """
        sizes = [keeper.disk_size(blobs=blobs) for keeper in self.keepers()]
        return functools.reduce(operator.add, sizes) if sizes else DiskSize()

    def keeps_blobs(self) -> bool:
        """Return whether it is configured to keep blobs, if its interfaces do not say so."""
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
        """Return whether packing removes what nothing refers to; ``None`` if that is unknown."""
        if not (self.transparent and self.inner):
            return None
        (wrapped,) = self.inner
        return wrapped.collects_garbage()

    def only_prepacks(self) -> bool:
        """Return whether packing finds out what could be removed, and removes nothing."""
        return False

    def forget_pack(self) -> tuple[str, ...]:
        """Remove what it has kept of earlier packs if a pack fails with it; return its name."""
        return ()

    def pack_flaw(self) -> str | None:
        """Return why it cannot be packed, or ``None`` if no reason is known."""
        return None

    def vacuum_flaw(self) -> str | None:
        """Return why :meth:`vacuum` does nothing, or ``None`` if its database has a vacuum."""
        return "no vacuum of its database is known"

    def vacuum(self) -> None:
        """Have its database take back the room of rows that were removed from it."""

    def retry_flaw(self) -> str | None:
        """Return the bug by which a refused transaction cannot be retried, or ``None``."""
        return None

    def resolution_flaw(self) -> str | None:
        """Return the bug by which resolved conflicts corrupt its data, or ``None``."""
        return None

    def zap(self, db: Any) -> bool:  # noqa: ARG002
        """Close *db* and destroy all data, except for files of blobs, or return ``False``."""
        return False

    def run_sql(self, statements: Sequence[str]) -> bool:  # noqa: ARG002
        """Run SQL statements in one transaction, or return ``False`` if it has no SQL database."""
        return False

    def driver(self) -> str | None:
        """Return the name of the database driver, if it has one."""
        return None

    def versions(self) -> dict[str, str]:
        """Return the versions of its software, by product."""
        return installed_versions(self.distributions)

    def corrections(self) -> tuple[str, ...]:
        """Return workarounds: how its use differs from that of the released package."""
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
    """Return an open storage as its type, or as :class:`StorageType` if its type is unknown."""
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
    """Return the durability of a commit, as far as the types of a section's storages say it."""
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
    """Return the ``module.Class`` of a class and of each of its base classes."""
    return set(map(qualified, cls.__mro__))


def remove_cached_blobs(fshelper: Any, blobs: Iterable[BlobRevision]) -> None:
    """Remove the files of these blobs from a directory that caches them."""
    for oid, serial in blobs:
        Path(fshelper.getBlobFilename(oid, serial)).unlink(missing_ok=True)


def size_of_blobs(directory: str) -> int:
    """Return the bytes of all blobs in *directory*."""
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
            with suppress(OSError):  # it is not empty
                Path(inner).rmdir()
