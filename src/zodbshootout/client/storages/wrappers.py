"""Storages that transform what another storage stores, or add to it, and delegate the rest."""

from __future__ import annotations

from zodbshootout.client.storage_info import OPERATING_SYSTEM, Cache
from zodbshootout.client.storages.storage_type import StorageType


class BlobStorageType(StorageType):
    """ZODB's wrapper that keeps blobs in a directory, for storages that keep none."""

    storage_class = "ZODB.blob.BlobStorage"
    section_classes = ("ZODB.config.BlobStorage",)
    wraps = ("_BlobStorage__storage",)  # it has no public name
    transparent = True

    def caches_left(self) -> tuple[Cache, ...]:
        return (OPERATING_SYSTEM,)

    def keeps_blobs(self) -> bool:
        # It takes the transaction's ID from the storage that it wraps.
        return hasattr(self.storage, "_tid")

    def pack_flaw(self) -> str | None:
        if hasattr(self.storage, "_lock"):
            return None
        (wrapped,) = self.inner
        return f"BlobStorage cannot pack {wrapped.name}, which has no lock for it"


class ZlibStorageType(StorageType):
    """zc.zlibstorage, which compresses records."""

    storage_class = "zc.zlibstorage.ZlibStorage"
    section_classes = ("zc.zlibstorage.ZConfig",)
    transparent = True
    distributions = ("zc.zlibstorage",)

    def caches_left(self) -> tuple[Cache, ...]:
        return ()


class ServerZlibStorageType(ZlibStorageType):
    """Its counterpart for a ZEO server whose clients compress: it looks into their records."""

    storage_class = "zc.zlibstorage.ServerZlibStorage"
    section_classes = ("zc.zlibstorage.ZConfigServer",)

    def resolution_flaw(self) -> str | None:
        return (
            "ServerZlibStorage compresses what it has resolved and does not decompress what it "
            "loads, for it is made for ZEO servers; use <zlibstorage>"
        )


# A ServerZlibStorage is a ZlibStorage, too: the more special class comes first.
STORAGES = (ServerZlibStorageType, ZlibStorageType, BlobStorageType)
