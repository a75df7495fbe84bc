from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zodbshootout.contenders.blob_files import BlobRevision, forget
from zodbshootout.contenders.layer import OPERATING_SYSTEM, SERVER, CacheUse, Layer
from zodbshootout.model import CrewShape, Unit
from zodbshootout.servers.address import accepts


class ZEOLayer(Layer):
    """ZEO's ClientStorage, with its cache in a temporary or a persistent file."""

    storage_class = "ZEO.ClientStorage.ClientStorage"
    section_classes = ("ZODB.config.ZEOClient", "ZEO.zconfig.ClientStorageConfig")
    prefetches = True
    holds_changes = False
    distributions = ("ZEO",)

    def empty_cache(self) -> tuple[str, ...]:
        self.storage._cache.clear()
        return ("ZEO client cache",)

    def caches_left(self) -> tuple[str, ...]:
        return (f"ZEO {SERVER}", OPERATING_SYSTEM)

    def forget_blobs(self, blobs: Sequence[BlobRevision]) -> tuple[str, ...]:
        if not self.storage.blob_dir or self.storage.shared_blob_dir:
            return ()
        forget(self.storage.fshelper, blobs)
        return ("ZEO blob cache",)

    def keeps_blobs(self) -> bool:
        # A ClientStorage says that it stores blobs whether it has a directory for them or not.
        return bool(self.storage.blob_dir)

    def cache_use(self) -> CacheUse:
        # ZEO counts an access only where the record was found.
        return CacheUse(hits=self.storage._cache.getStats()[4], misses=None)

    @classmethod
    def refusal(cls, section: Any, shape: CrewShape) -> str | None:
        if shape.databases == 1:
            return None
        if shape.unit is Unit.GREENLET:
            return (
                "ClientStorage: each DB runs an event loop of its own, and in a process patched by "
                "gevent there can be one; use --threads shared"
            )
        persistent = ("client", "cache_path")
        if any(getattr(section.config, name, None) for name in persistent):
            return (
                "ClientStorage: its persistent cache file serves one DB at a time; "
                "use --threads shared, or -c 1"
            )
        return None

    @classmethod
    def absence(cls, section: Any) -> str | None:
        addresses = [server.address for server in section.config.server]
        if any(accepts(address) for address in addresses):
            return None
        printable = [_printable(address) for address in addresses]
        # With the port alone it would listen on every interface, and let everybody in.
        command = f"runzeo -a {printable[0]} -f Data.fs"
        return f"no ZEO server at {' or '.join(printable)}; start one there: {command}"


def _printable(address: tuple[str, int] | str) -> str:
    return address if isinstance(address, str) else f"{address[0] or 'localhost'}:{address[1]}"


LAYERS = (ZEOLayer,)
