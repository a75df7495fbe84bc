from __future__ import annotations

from zodbshootout.client.storage_types import LocalStorageType, PrivateSection
from zodbshootout.model.storage_facts import StorageInfo


class ZlibStorageType(LocalStorageType):
    """zc.zlibstorage, which compresses records."""

    storage_class = "zc.zlibstorage.ZlibStorage"
    private = (PrivateSection(("zlibstorage", "serverzlibstorage")),)
    section_classes = ("zc.zlibstorage.ZConfig",)
    transparent = True
    distributions = ("zc.zlibstorage",)
    lasting_caches = ()


class ServerZlibStorageType(ZlibStorageType):
    """zc.zlibstorage for a ZEO server, whose clients compress and decompress the records."""

    storage_class = "zc.zlibstorage.ServerZlibStorage"
    section_classes = ("zc.zlibstorage.ZConfigServer",)

    def facts(self) -> StorageInfo:
        return StorageInfo(
            resolution_flaw="ServerZlibStorage compresses resolved conflicts, but leaves "
            "decompression to the clients of a ZEO server; use <zlibstorage>"
        )


# ServerZlibStorage comes first, because it is a subclass of ZlibStorage.
STORAGES = (ServerZlibStorageType, ZlibStorageType)
