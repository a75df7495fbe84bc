from __future__ import annotations

from zodbshootout.client.storage_info import Cache, Sharing
from zodbshootout.client.storages.open_storage import OpenStorage


class OpenMappingStorage(OpenStorage):
    """MappingStorage: dictionaries in the memory of one process."""

    storage_class = "ZODB.MappingStorage.MappingStorage"
    sharing = Sharing.VOLATILE

    def caches_left(self) -> tuple[Cache, ...]:
        return ()


STORAGES = (OpenMappingStorage,)
