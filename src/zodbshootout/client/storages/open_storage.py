"""What can be done with an open storage beyond ZODB's interfaces, and where that is registered.

A contender is a stack of storages: a wrapper, perhaps, around the storage that keeps the data.
Each storage of the stack has an :class:`OpenStorage`, and each that is known here one of its own
class.  A storage that is not known is measured all the same; its caches are then not emptied, and
the run's metadata says so.
"""

from __future__ import annotations

import functools
import importlib
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from zodbshootout.client.distributions import installed_versions, plugins
from zodbshootout.client.storage_info import Cache, CacheUse, Place, Sharing
from zodbshootout.client.storages.blob_files import BlobRevision

GROUP = "zodbshootout.storages"
"""The group of entry points that are classes of open storages in other packages."""


class OpenStorage:
    """One storage of a contender's stack.  This class itself knows nothing of any storage."""

    storage_class: ClassVar[str] = ""
    """``module.Class`` of the storage."""
    section_classes: ClassVar[tuple[str, ...]] = ()
    """``module.Class`` of the ZConfig sections that :meth:`settle` has something to decide in."""
    wraps: ClassVar[tuple[str, ...]] = ("base",)
    """The attributes in which it keeps the storages that it wraps, if it does."""
    transparent: ClassVar[bool] = False
    """Whether it leaves whatever it does not do itself to what it wraps."""
    sharing: ClassVar[Sharing] = Sharing.CONCURRENT
    zap_obstacle: ClassVar[str | None] = None
    """Why its data cannot be destroyed."""
    distributions: ClassVar[tuple[str, ...]] = ()
    """PyPI names of the packages whose versions matter."""

    def __init__(self, storage: Any) -> None:
        self.storage = storage
        self.inner = tuple(map(open_storage, wrapped_storages(storage, self.wraps)))
        """What it wraps."""

    @property
    def name(self) -> str:
        """What users call the storage: its class."""
        return type(self.storage).__name__

    def stack(self) -> Iterator[OpenStorage]:
        """Return this storage and those below it, outermost first."""
        yield self
        for each in self.inner:
            yield from each.stack()

    def written_to(self) -> Iterator[OpenStorage]:
        """Return this storage and those below it that keep what is written to it."""
        yield self
        for each in self.keepers():
            yield from each.written_to()

    def keepers(self) -> Sequence[OpenStorage]:
        """Return those of the inner storages that what is written is passed on to."""
        return self.inner

    def combined_cache_use(self) -> CacheUse | None:
        """Return the use of the caches of the stack that are asked first, if all are counted."""
        own = self.cache_use()
        if own is not None or not self.inner:
            return own
        uses = [each.combined_cache_use() for each in self.inner]
        counted = [use for use in uses if use is not None]
        return functools.reduce(operator.add, counted) if len(counted) == len(uses) else None

    def own_caches(self) -> tuple[Cache, ...]:
        """Return what the storage caches on the client's side, as far as it can be emptied."""
        return ()

    def empty_caches(self) -> None:
        """Empty :meth:`own_caches`."""

    def caches_left(self) -> tuple[Cache, ...]:
        """Return the caches that hold records even after :meth:`empty_caches`.

        What wraps other storages does not speak for these.
        """
        return (Cache(qualified(type(self.storage)), Place.UNKNOWN),)

    def forget_blobs(self, blobs: Sequence[BlobRevision]) -> tuple[Cache, ...]:  # noqa: ARG002
        """Remove these blobs from where they are cached on the client's side; return that cache."""
        return ()

    def cache_use(self) -> CacheUse | None:
        """Return the use of the storage's cache so far, or ``None`` where it has or counts none."""
        return None

    def keeps_blobs(self) -> bool:
        """Return whether it is set up to keep blobs, where its interfaces do not tell."""
        return True

    def pack_flaw(self) -> str | None:
        """Say why the storage cannot be packed, or return ``None``."""
        return None

    def retry_flaw(self) -> str | None:
        """Say why a transaction that was refused cannot be tried again, or return ``None``.

        This is for faults of a storage that are known to spoil what follows.
        """
        return None

    def resolution_flaw(self) -> str | None:
        """Say why conflicts that are resolved spoil its data, or return ``None``.

        As :meth:`retry_flaw`, this is for what is known to go wrong.
        """
        return None

    def zap(self, db: Any) -> bool:  # noqa: ARG002
        """Close *db* and destroy all data in the storage; return whether it did.

        A storage that has no means of its own for that leaves everything as it is.  Files of blobs
        need not be seen to.
        """
        return False

    def driver(self) -> str | None:
        """Return the name of the database driver, where there is one."""
        return None

    def versions(self) -> dict[str, str]:
        """Return the versions of the software that the storage consists of."""
        return installed_versions(self.distributions)

    def corrections(self) -> tuple[str, ...]:
        """Return workarounds: where the storage is not used as it was released, in a few words."""
        return ()

    @classmethod
    def settle(cls, section: Any) -> None:
        """Decide, before *section* is opened, what it leaves to chance."""


_MODULES = ("demostorage", "filestorage", "memory", "relstorage", "wrappers", "zeo")
"""The modules of this package with open storages: a new one is one file and its name here."""


@functools.cache
def known_storages() -> tuple[type[OpenStorage], ...]:
    """Return the classes that are registered, those of other packages first."""
    modules = (importlib.import_module(f"zodbshootout.client.storages.{name}") for name in _MODULES)
    own = [each for module in modules for each in module.STORAGES]
    return (*plugins(GROUP), *own)


def open_storage(storage: Any) -> OpenStorage:
    """Return what is known of a storage: a mere :class:`OpenStorage` where that is nothing."""
    names = class_names(type(storage))
    known = (each for each in known_storages() if each.storage_class in names)
    return next(known, OpenStorage)(storage)


def settle(section: Any) -> None:
    """Decide what a ZConfig section of a storage leaves to chance, right before it is opened."""
    names = class_names(type(section))
    for each in known_storages():
        if names & set(each.section_classes):
            each.settle(section)


def wrapped_storages(storage: Any, attributes: Iterable[str]) -> Iterator[Any]:
    """Return the storages in these attributes of *storage*."""
    for name in attributes:
        inner = getattr(storage, name, None)
        # A storage without objects is false.
        if hasattr(inner, "tpc_begin"):
            yield inner


def qualified(cls: type) -> str:
    """Return ``module.Class``."""
    return f"{cls.__module__}.{cls.__qualname__}"


def class_names(cls: type) -> set[str]:
    """Return ``module.Class`` of a class and of all that it is derived from."""
    return set(map(qualified, cls.__mro__))
