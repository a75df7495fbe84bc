"""Storages that change what another storage is given, or add to it, and pass on the rest."""

from __future__ import annotations

from zodbshootout.client.storage_info import OPERATING_SYSTEM, Cache
from zodbshootout.client.storages.open_storage import OpenStorage


class OpenBlobStorage(OpenStorage):
    """ZODB's wrapper that keeps blobs in a directory, for storages that keep none."""

    storage_class = "ZODB.blob.BlobStorage"
    wraps = ("_BlobStorage__storage",)  # it has no public name for it
    transparent = True

    def caches_left(self) -> tuple[Cache, ...]:
        return (OPERATING_SYSTEM,)

    def keeps_blobs(self) -> bool:
        # What it needs to know of the transaction it takes from what it wraps.
        return hasattr(self.storage, "_tid")

    def pack_flaw(self) -> str | None:
        if hasattr(self.storage, "_lock"):
            return None
        (wrapped,) = self.inner
        return f"BlobStorage cannot pack {wrapped.name}, which has no lock for it"


class OpenZlibStorage(OpenStorage):
    """zc.zlibstorage, which compresses records."""

    storage_class = "zc.zlibstorage.ZlibStorage"
    transparent = True
    distributions = ("zc.zlibstorage",)

    def caches_left(self) -> tuple[Cache, ...]:
        return ()


class OpenServerZlibStorage(OpenZlibStorage):
    """Its counterpart for a ZEO server whose clients compress: it looks into their records."""

    storage_class = "zc.zlibstorage.ServerZlibStorage"

    def resolution_flaw(self) -> str | None:
        return (
            "ServerZlibStorage compresses what it has resolved and does not decompress what it "
            "loads, for it is made for ZEO servers; use <zlibstorage>"
        )


# The more special class comes first: it is one of the other, too.
STORAGES = (OpenServerZlibStorage, OpenZlibStorage, OpenBlobStorage)
