from __future__ import annotations

from zodbshootout.client.storage_info import Cache, Sharing
from zodbshootout.client.storages.storage_type import StorageType


class MappingStorageType(StorageType):
    """MappingStorage: dictionaries in the memory of one process."""

    storage_class = "ZODB.MappingStorage.MappingStorage"
    section_classes = ("ZODB.config.MappingStorage",)
    sharing = Sharing.VOLATILE
    prefetches = False

    def caches_left(self) -> tuple[Cache, ...]:
        return ()


STORAGES = (MappingStorageType,)
