from __future__ import annotations

from typing import Any

from zodbshootout.client.storage_info import OPERATING_SYSTEM, Cache, Sharing
from zodbshootout.client.storages.blob_files import remove_blobs
from zodbshootout.client.storages.open_storage import OpenStorage


class OpenFileStorage(OpenStorage):
    """FileStorage: an append-only file and its index in memory; it caches no records itself."""

    storage_class = "ZODB.FileStorage.FileStorage.FileStorage"
    sharing = Sharing.EXCLUSIVE

    def caches_left(self) -> tuple[Cache, ...]:
        return (OPERATING_SYSTEM,)

    def zap(self, db: Any) -> bool:
        db.close()
        self.storage.cleanup()
        if self.storage.blob_dir:
            remove_blobs(f"{self.storage.blob_dir}.old")  # what packing has taken away
        return True


STORAGES = (OpenFileStorage,)
