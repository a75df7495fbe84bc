"""The type of acme.AcmeStorage, whose cache can be emptied and counts its hits."""

from __future__ import annotations

from zodbshootout.client.storage_types import StorageType
from zodbshootout.model.storage_facts import OPERATING_SYSTEM, CacheUse, Durability, Sharing


class AcmeStorageType(StorageType):
    """A file, read through a cache in memory."""

    storage_class = "acme.AcmeStorage"
    section_classes = ("acme.AcmeSection",)
    sharing = Sharing.EXCLUSIVE
    durability = Durability.SYNCED
    distributions = ("acme-storage",)

    def own_caches(self) -> tuple[str, ...]:
        return ("Acme cache",)

    def empty_caches(self) -> None:
        self.storage.cache.clear()

    def caches_left(self) -> tuple[str, ...]:
        return (OPERATING_SYSTEM,)

    def cache_use(self) -> CacheUse:
        return CacheUse(self.storage.hits, self.storage.misses)
