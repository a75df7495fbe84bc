"""The caches that hold records between an application and the disk, and how they are used."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Place(enum.Enum):
    """Where a cache is."""

    CLIENT = "client"
    """In the memory or in the files of a client; emptying it is the harness's business."""
    SERVER = "server"
    """In a server; restarting the server empties it."""
    SYSTEM = "operating system"
    """Its cache of files."""
    UNKNOWN = "unknown"
    """If there is one at all: the storage is one that the harness does not know."""


@dataclass(frozen=True)
class Cache:
    """A cache, as a value that can be compared."""

    name: str
    """What users call it, such as ``RelStorage cache``; a storage's class where it is unknown."""
    place: Place = Place.CLIENT

    def __str__(self) -> str:
        return f"unknown: {self.name}" if self.place is Place.UNKNOWN else self.name


PICKLE_CACHE = Cache("pickle cache")
OPERATING_SYSTEM = Cache("operating system", Place.SYSTEM)


def server_cache(product: str) -> Cache:
    """Return the cache of a server: ``server_cache("PostgreSQL")``."""
    return Cache(f"{product} server", Place.SERVER)


@dataclass(frozen=True)
class CacheUse:
    """How often a storage's own cache was asked, since some moment in the past."""

    hits: int
    misses: int | None
    """``None`` where the storage does not count them."""
    per_opening: int = 0
    """Hits at most that it counts whenever a connection is opened, though no record is loaded."""

    def since(self, earlier: CacheUse) -> CacheUse:
        """Return the use between *earlier* and now."""
        misses = None
        if self.misses is not None and earlier.misses is not None:
            misses = self.misses - earlier.misses
        return CacheUse(self.hits - earlier.hits, misses, self.per_opening)

    def and_of(self, other: CacheUse) -> CacheUse:
        """Return the use of two caches together."""
        misses = None
        if self.misses is not None and other.misses is not None:
            misses = self.misses + other.misses
        return CacheUse(self.hits + other.hits, misses, self.per_opening + other.per_opening)
