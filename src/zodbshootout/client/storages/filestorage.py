from __future__ import annotations

from typing import Any

from zodbshootout.client.storage_info import OPERATING_SYSTEM, Cache, Sharing
from zodbshootout.client.storages.storage_type import StorageType, remove_blobs


class FileStorageType(StorageType):
    """FileStorage: an append-only file and its index in memory; it caches no records itself."""

    storage_class = "ZODB.FileStorage.FileStorage.FileStorage"
    section_classes = ("ZODB.config.FileStorage",)
    sharing = Sharing.EXCLUSIVE
    prefetches = False

    def caches_left(self) -> tuple[Cache, ...]:
        return (OPERATING_SYSTEM,)

    def zap(self, db: Any) -> bool:
        db.close()
        self.storage.cleanup()
        if self.storage.blob_dir:
            remove_blobs(f"{self.storage.blob_dir}.old")  # the blobs that packing has removed
        return True


STORAGES = (FileStorageType,)
