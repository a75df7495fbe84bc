"""What the harness has to know of a storage class, and where that knowledge is registered.

A contender is a stack of storages: a wrapper, perhaps, around the storage that keeps the data.
Each storage of the stack has a :class:`Layer`, and each that is known here one of its own class.  A
storage that is not known is measured all the same; its caches are then not cleared, and the run's
metadata says so.
"""

from __future__ import annotations

import enum
import functools
import importlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar

from zodbshootout.contenders.blob_files import BlobRevision
from zodbshootout.model import CrewShape


class Sharing(enum.Enum):
    """Which DBs see the data of a storage."""

    CONCURRENT = "any number of DBs at once"
    EXCLUSIVE = "one DB at a time"
    VOLATILE = "one DB, until it is closed"


def narrowest(kinds: Iterable[Sharing]) -> Sharing:
    """Return the sharing of a stack whose storages share like that."""
    found = set(kinds)
    for narrow in (Sharing.VOLATILE, Sharing.EXCLUSIVE):
        if narrow in found:
            return narrow
    return Sharing.CONCURRENT


OPERATING_SYSTEM = "operating system"
"""The name of the cache of files in memory."""
SERVER = "server"
"""The last word of the name of a server's caches."""


@dataclass(frozen=True)
class CacheUse:
    """How often a storage's own cache was asked, since some moment in the past."""

    hits: int
    misses: int | None
    """``None`` where the storage does not count them."""

    def since(self, earlier: CacheUse) -> CacheUse:
        """Return the use between *earlier* and now."""
        misses = None
        if self.misses is not None and earlier.misses is not None:
            misses = self.misses - earlier.misses
        return CacheUse(self.hits - earlier.hits, misses)

    def and_of(self, other: CacheUse) -> CacheUse:
        """Return the use of two caches together."""
        misses = None
        if self.misses is not None and other.misses is not None:
            misses = self.misses + other.misses
        return CacheUse(self.hits + other.hits, misses)


class Layer:
    """One storage of a contender's stack.  This class itself knows nothing of any storage."""

    storage_class: ClassVar[str] = ""
    """``module.Class`` of the storage."""
    section_classes: ClassVar[tuple[str, ...]] = ()
    """``module.Class`` of the ZConfig sections that open it."""
    wraps: ClassVar[tuple[str, ...]] = ("base",)
    """The attributes in which it keeps the storages that it wraps, if it does."""
    transparent: ClassVar[bool] = False
    """Whether it leaves whatever it does not do itself to what it wraps."""
    sharing: ClassVar[Sharing] = Sharing.CONCURRENT
    prefetches: ClassVar[bool | None] = None
    """Whether ``Connection.prefetch`` does anything; ``None`` where only opening it tells."""
    serves_threads: ClassVar[bool] = True
    """Whether one storage object can be used by several threads.

    ZODB gives each connection an object of its own where the storage brings its own MVCC.
    """
    holds_changes: ClassVar[bool] = True
    """Whether a DemoStorage can keep its changes in it."""
    zap_obstacle: ClassVar[str | None] = None
    """Why its data cannot be destroyed."""
    distributions: ClassVar[tuple[str, ...]] = ()
    """PyPI names of the packages whose versions matter."""

    def __init__(self, storage: Any) -> None:
        self.storage = storage
        self.inner = tuple(map(layer_of_storage, wrapped_storages(storage, self.wraps)))
        """The layers of what it wraps."""

    def stack(self) -> Iterator[Layer]:
        """Return this layer and those below it, outermost first."""
        yield self
        for layer in self.inner:
            yield from layer.stack()

    def written_to(self) -> Iterator[Layer]:
        """Return this layer and those below it that keep what is written to it."""
        yield self
        for layer in self.keepers():
            yield from layer.written_to()

    def keepers(self) -> Sequence[Layer]:
        """Return those of the inner layers that what is written is passed on to."""
        return self.inner

    def combined_cache_use(self) -> CacheUse | None:
        """Return the use of the caches of the stack that are asked first, if all are counted."""
        own = self.cache_use()
        if own is not None or not self.inner:
            return own
        uses = [layer.combined_cache_use() for layer in self.inner]
        counted = [use for use in uses if use is not None]
        return functools.reduce(CacheUse.and_of, counted) if len(counted) == len(uses) else None

    def empty_cache(self) -> tuple[str, ...]:
        """Empty what the storage caches on the client's side; return the names of those caches."""
        return ()

    def caches_left(self) -> tuple[str, ...]:
        """Return the names of the caches that hold records even after :meth:`empty_cache`.

        What wraps other storages does not speak for these.
        """
        return (f"unknown: {qualified(type(self.storage))}",)

    def forget_blobs(self, blobs: Sequence[BlobRevision]) -> tuple[str, ...]:  # noqa: ARG002
        """Remove these blobs from where they are cached on the client's side; name that cache."""
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
        """Return the versions of the software that this layer consists of."""
        return installed_versions(self.distributions)

    def corrections(self) -> tuple[str, ...]:
        """Say, in a few words each, where the storage is not used as its package has it."""
        return ()

    @classmethod
    def sharing_of(cls, section: Any) -> Sharing:  # noqa: ARG003
        """Return which DBs see the data of what *section* opens, but for what is in it."""
        return cls.sharing

    @classmethod
    def keeping_sections(cls, section: Any) -> Sequence[Any]:
        """Return the sections in *section* that what is written is passed on to."""
        return inner_sections(section)

    @classmethod
    def refusal(cls, section: Any, shape: CrewShape) -> str | None:  # noqa: ARG003
        """Say why clients of that kind cannot use what *section* opens, or return ``None``.

        What follows from :attr:`sharing` is not said here.
        """
        return None

    @classmethod
    def retry_flaw(cls, section: Any) -> str | None:  # noqa: ARG003
        """Say why what *section* opens cannot try a refused transaction again, or return ``None``.

        This is for faults of a storage that are known to spoil what follows.
        """
        return None

    @classmethod
    def resolution_flaw(cls, section: Any) -> str | None:  # noqa: ARG003
        """Say why what *section* opens spoils data when it resolves conflicts, or return ``None``.

        As :meth:`retry_flaw`, this is for what is known to go wrong.
        """
        return None

    @classmethod
    def name(cls) -> str:
        """Return what users call the storage: its class."""
        return cls.storage_class.rpartition(".")[2]

    @classmethod
    def settle(cls, section: Any) -> None:
        """Decide, before *section* is opened, what it leaves to chance."""

    @classmethod
    def installation(cls, section: Any) -> str | None:  # noqa: ARG003
        """Say what to type so that *section* finds the packages it needs, or return ``None``."""
        return None

    @classmethod
    def absence(cls, section: Any) -> str | None:  # noqa: ARG003
        """Say what has to be started before *section* can be opened, or return ``None``."""
        return None

    @classmethod
    def advice(cls, section: Any, cause: str) -> str | None:  # noqa: ARG003
        """Say what to write in place of *section* where it failed with *cause*, or ``None``."""
        return None


def installed_versions(distributions: tuple[str, ...]) -> dict[str, str]:
    """Return the version of each distribution that is installed."""
    found = {}
    for name in distributions:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


_MODULES = ("demostorage", "filestorage", "memory", "relstorage", "wrappers", "zeo")
"""The modules of this package with a layer: a new one is one file and its name here."""


def known_layers() -> Iterator[type[Layer]]:
    """Return the layer classes that are registered."""
    for module in _MODULES:
        yield from importlib.import_module(f"zodbshootout.contenders.{module}").LAYERS


def qualified(cls: type) -> str:
    """Return ``module.Class``."""
    return f"{cls.__module__}.{cls.__qualname__}"


def layer_of_section(section: Any) -> type[Layer] | None:
    """Return the layer that a ZConfig section will open, or ``None`` where it is not known."""
    names = {qualified(cls) for cls in type(section).__mro__}
    return next((layer for layer in known_layers() if names & set(layer.section_classes)), None)


def layer_of_storage(storage: Any) -> Layer:
    """Return the layer of an open storage; it is a mere :class:`Layer` where none is known."""
    names = {qualified(cls) for cls in type(storage).__mro__}
    known = (layer for layer in known_layers() if layer.storage_class in names)
    return next(known, Layer)(storage)


def wrapped_storages(storage: Any, attributes: Iterable[str]) -> Iterator[Any]:
    """Return the storages in these attributes of *storage*."""
    for name in attributes:
        inner = getattr(storage, name, None)
        # A storage without objects is false.
        if hasattr(inner, "tpc_begin"):
            yield inner


def inner_sections(section: Any) -> list[Any]:
    """Return the sections that stand in *section*."""
    settings = getattr(section, "config", None)
    if settings is None or not hasattr(settings, "getSectionAttributes"):
        return []
    values = (getattr(settings, attribute) for attribute in settings.getSectionAttributes())
    listed = (value if isinstance(value, list) else [value] for value in values)
    return [inner for inners in listed for inner in inners if hasattr(inner, "config")]


def nested_sections(section: Any) -> Iterator[Any]:
    """Return *section* and every section within it, outermost first."""
    yield section
    for inner in inner_sections(section):
        yield from nested_sections(inner)


def written_sections(section: Any) -> Iterator[Any]:
    """Return *section* and every section within it that is about what is written to."""
    yield section
    layer = layer_of_section(section) or Layer
    for inner in layer.keeping_sections(section):
        yield from written_sections(inner)


def sharing_of(section: Any) -> Sharing:
    """Return which DBs see the data of what *section* opens, as far as that is known before."""
    known = ((layer_of_section(each), each) for each in written_sections(section))
    return narrowest(layer.sharing_of(each) for layer, each in known if layer is not None)
