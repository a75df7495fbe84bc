from __future__ import annotations

from collections.abc import Sequence

from zodbshootout.client.storage_info import OPERATING_SYSTEM, Cache, CacheUse, server_cache
from zodbshootout.client.storages.blob_files import BlobRevision, forget
from zodbshootout.client.storages.open_storage import OpenStorage


class OpenClientStorage(OpenStorage):
    """ZEO's ClientStorage, with its cache in a temporary or a persistent file."""

    storage_class = "ZEO.ClientStorage.ClientStorage"
    distributions = ("ZEO",)

    def own_caches(self) -> tuple[Cache, ...]:
        return (Cache("ZEO client cache"),)

    def empty_caches(self) -> None:
        self.storage._cache.clear()

    def caches_left(self) -> tuple[Cache, ...]:
        return (server_cache("ZEO"), OPERATING_SYSTEM)

    def forget_blobs(self, blobs: Sequence[BlobRevision]) -> tuple[Cache, ...]:
        if not self.storage.blob_dir or self.storage.shared_blob_dir:
            return ()
        forget(self.storage.fshelper, blobs)
        return (Cache("ZEO blob cache"),)

    def keeps_blobs(self) -> bool:
        # A ClientStorage says that it stores blobs whether it has a directory for them or not.
        return bool(self.storage.blob_dir)

    def cache_use(self) -> CacheUse:
        # ZEO counts an access only where the record was found.
        return CacheUse(hits=self.storage._cache.getStats()[4], misses=None)


STORAGES = (OpenClientStorage,)
