"""What is known of a contender: from its section at first, and all of it once it was opened."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from zodbshootout.client.caches import Cache


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


@dataclass(frozen=True)
class StorageInfo:
    """What decides whether and how a contender can be measured, and what is recorded of it.

    A section tells the first five of them, as far as its kind is known.  A look at the open
    storage tells everything.
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
    """Why a transaction that was refused cannot be tried again."""
    resolution_flaw: str | None = None
    """Why conflicts that are resolved spoil its data."""
    pack_flaw: str | None = None
    """Why it cannot be packed."""
    emptied: tuple[Cache, ...] = ()
    """The caches that are emptied before cold reads."""
    left: tuple[Cache, ...] = ()
    """The caches that hold records even after that."""
    storage_classes: tuple[str, ...] = ()
    """``module.Class`` of every storage in the stack, outermost first."""
    driver: str = ""
    """The database driver, where there is one."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of what it consists of, by product."""
    python: Mapping[str, str] = field(default_factory=dict)
    """What Python it was opened by, in pyperf's words."""
    modules: tuple[str, ...] = ()
    """The modules that were imported when it was opened."""
    corrections: tuple[str, ...] = ()
    """Workarounds: where a storage is not used as it was released, in a few words each."""
