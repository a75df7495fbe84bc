"""Storages that change what another storage is given, or add to it, and pass on the rest."""

from __future__ import annotations

from typing import Any

from zodbshootout.contenders.layer import OPERATING_SYSTEM, Layer


class BlobStorageLayer(Layer):
    """ZODB's wrapper that keeps blobs in a directory, for storages that keep none."""

    storage_class = "ZODB.blob.BlobStorage"
    section_classes = ("ZODB.config.BlobStorage",)
    wraps = ("_BlobStorage__storage",)  # it has no public name for it
    transparent = True

    def caches_left(self) -> tuple[str, ...]:
        return (OPERATING_SYSTEM,)

    def keeps_blobs(self) -> bool:
        # What it needs to know of the transaction it takes from what it wraps.
        return hasattr(self.storage, "_tid")

    def pack_flaw(self) -> str | None:
        if hasattr(self.storage, "_lock"):
            return None
        (wrapped,) = self.inner
        return f"BlobStorage cannot pack {type(wrapped.storage).__name__}, which has no lock for it"


class ZlibStorageLayer(Layer):
    """zc.zlibstorage, which compresses records."""

    storage_class = "zc.zlibstorage.ZlibStorage"
    section_classes = ("zc.zlibstorage.ZConfig",)
    transparent = True
    distributions = ("zc.zlibstorage",)

    def caches_left(self) -> tuple[str, ...]:
        return ()


class ServerZlibStorageLayer(ZlibStorageLayer):
    """Its counterpart for a ZEO server whose clients compress: it looks into their records."""

    storage_class = "zc.zlibstorage.ServerZlibStorage"
    section_classes = ("zc.zlibstorage.ZConfigServer",)

    @classmethod
    def resolution_flaw(cls, section: Any) -> str | None:  # noqa: ARG003
        return (
            "ServerZlibStorage compresses what it has resolved and does not decompress what it "
            "loads, for it is made for ZEO servers; use <zlibstorage>"
        )


# The more special class comes first: it is one of the other, too.
LAYERS = (ServerZlibStorageLayer, ZlibStorageLayer, BlobStorageLayer)
