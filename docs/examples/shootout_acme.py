"""The type of acme.AcmeStorage, whose cache can be emptied and counts its hits."""

from __future__ import annotations

from zodbshootout.api.storages import (
    OPERATING_SYSTEM,
    CacheUse,
    Durability,
    PrivateSection,
    Sharing,
    StorageType,
)


class AcmeStorageType(StorageType):
    """A file, read through a cache in memory."""

    storage_class = "acme.AcmeStorage"
    section_classes = ("acme.AcmeSection",)
    sharing = Sharing.EXCLUSIVE
    durability = Durability.SYNCED
    distributions = ("acme-storage",)
    private = (PrivateSection(("acme",), paths=("path",)),)

    def own_caches(self) -> tuple[str, ...]:
        return ("Acme cache",)

    def empty_caches(self) -> None:
        self.storage.cache.clear()

    def caches_left(self) -> tuple[str, ...]:
        return (OPERATING_SYSTEM,)

    def cache_use(self) -> CacheUse:
        return CacheUse(self.storage.hits, self.storage.misses)
