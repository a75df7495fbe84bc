from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zodbshootout.client.specification import ClientKind
from zodbshootout.client.storage_info import (
    OPERATING_SYSTEM,
    Address,
    CacheUse,
    Durability,
    Limit,
    Promise,
    Requirement,
    host_and_port,
    server_cache,
)
from zodbshootout.client.storages import (
    BlobRevision,
    StorageType,
    remove_cached_blobs,
)

BEHIND_SERVER: Promise = (Durability.UNKNOWN, "behind a ZEO server")
"""The promise of a ClientStorage: a server does not say what it keeps its data in."""
_ONE_LOOP = Limit(
    "ClientStorage: each DB runs an event loop of its own, and in a process patched by "
    "gevent there can be one; use --threads shared",
    client_kinds=frozenset({ClientKind.GREENLET}),
    databases=2,
    of_process=True,
)
_ONE_DB_FOR_A_FILE = Limit(
    "ClientStorage: its persistent cache file serves one DB at a time; "
    "use --threads shared, or -c 1",
    databases=2,
)


class ClientStorageType(StorageType):
    """ZEO's ClientStorage, with its cache in a temporary or a persistent file."""

    storage_class = "ZEO.ClientStorage.ClientStorage"
    section_classes = ("ZODB.config.ZEOClient", "ZEO.zconfig.ClientStorageConfig")
    prefetches = True
    holds_changes = False
    distributions = ("ZEO",)

    @classmethod
    def limits(cls, section: Any) -> Sequence[Limit]:
        has_file = any(getattr(section.config, name, None) for name in ("client", "cache_path"))
        return [_ONE_LOOP, _ONE_DB_FOR_A_FILE] if has_file else [_ONE_LOOP]

    @classmethod
    def requirements(cls, section: Any) -> Sequence[Requirement]:
        addresses = tuple(server.address for server in section.config.server)
        names = [_printable(address) for address in addresses]
        # Given only a port, runzeo would listen on every interface, and let everybody in.
        command = f"runzeo -a {names[0]} -f Data.fs"
        missing = f"no ZEO server at {' or '.join(names)}; start one there: {command}"
        return [Requirement(addresses, missing)]

    def promise(self) -> Promise:
        return BEHIND_SERVER

    def own_caches(self) -> tuple[str, ...]:
        return ("ZEO client cache",)

    def empty_caches(self) -> None:
        self.storage._cache.clear()

    def caches_left(self) -> tuple[str, ...]:
        return (server_cache("ZEO"), OPERATING_SYSTEM)

    def forget_blobs(self, blobs: Sequence[BlobRevision]) -> tuple[str, ...]:
        if not self.storage.blob_dir or self.storage.shared_blob_dir:
            return ()
        remove_cached_blobs(self.storage.fshelper, blobs)
        return ("ZEO blob cache",)

    def keeps_blobs(self) -> bool:
        # A ClientStorage says that it stores blobs whether it has a directory for them or not.
        return bool(self.storage.blob_dir)

    def cache_use(self) -> CacheUse:
        # ZEO counts an access only if the record was there.
        return CacheUse(hits=self.storage._cache.getStats()[4], misses=None)


def _printable(address: Address) -> str:
    if isinstance(address, str):
        return address
    host, port = address
    return host_and_port(host or "localhost", port)


STORAGES = (ClientStorageType,)
