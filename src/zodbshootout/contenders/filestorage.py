from __future__ import annotations

from typing import Any

from zodbshootout.contenders.blob_files import remove_blobs
from zodbshootout.contenders.layer import OPERATING_SYSTEM, Layer, Sharing


class FileStorageLayer(Layer):
    """FileStorage: an append-only file and its index in memory; it caches no records itself."""

    storage_class = "ZODB.FileStorage.FileStorage.FileStorage"
    section_classes = ("ZODB.config.FileStorage",)
    sharing = Sharing.EXCLUSIVE
    prefetches = False

    def caches_left(self) -> tuple[str, ...]:
        return (OPERATING_SYSTEM,)

    def zap(self, db: Any) -> bool:
        db.close()
        self.storage.cleanup()
        if self.storage.blob_dir:
            remove_blobs(f"{self.storage.blob_dir}.old")  # what packing has taken away
        return True


LAYERS = (FileStorageLayer,)
