"""A contender that is open."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ZODB.Connection import resetCaches
from ZODB.interfaces import IBlobStorage
from ZODB.POSException import POSKeyError
from ZODB.TimeStamp import TimeStamp
from ZODB.utils import load_current

from zodbshootout.contenders.blob_files import BlobRevision, remove_blobs
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.layer import (
    SERVER,
    CacheUse,
    Sharing,
    installed_versions,
    layer_of_storage,
    narrowest,
    qualified,
)

PICKLE_CACHE = "pickle cache"

_CACHES_OF_SERVERS = {
    "zeoserver": (f"ZEO {SERVER}",),
    "postgresqlserver": (f"PostgreSQL {SERVER}",),
    "mysqlserver": (f"MySQL {SERVER}", f"MariaDB {SERVER}"),
}
"""What is empty after a restart of what such a section describes."""


class NotZapped(Exception):  # noqa: N818
    """Data that should have been destroyed is still there; the message tells why."""


class Database:
    """The DB of a contender, and the caches around it.

    Whoever opened a connection closes it before the database is closed or opened anew.
    """

    def __init__(self, contender: Contender) -> None:
        """Open *contender*; what its storage raises goes through."""
        self.contender = contender
        self.open()

    def open(self) -> None:
        """Open the DB again after it was closed."""
        self.db = self.contender.open()
        self._outermost = layer_of_storage(self.db.storage)
        self._layers = tuple(self._outermost.stack())
        self._written_to = tuple(self._outermost.written_to())
        self.storage_classes = tuple(qualified(type(layer.storage)) for layer in self._layers)

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the DB and its storage."""
        self.db.close()

    def reopen(self) -> None:
        """Close the DB and open it as a process that starts would."""
        self.close()
        self.open()

    def connect(self, transaction_manager: Any) -> Any:
        """Return a connection of the DB's pool."""
        return self.db.open(transaction_manager)

    @property
    def sharing(self) -> Sharing:
        """Which DBs see the data, as the classes of the open storages have it."""
        return narrowest(layer.sharing for layer in self._written_to)

    @property
    def storage_name(self) -> str:
        """The class of the outermost storage, and of those that it merely wraps."""
        layer = self._outermost
        names = [type(layer.storage).__name__]
        while layer.transparent and layer.inner:
            (layer,) = layer.inner
            names.append(type(layer.storage).__name__)
        return " over ".join(names)

    @property
    def prefetches(self) -> bool:
        """Whether ``Connection.prefetch`` reaches a storage that does something with it."""
        return hasattr(self.db.storage, "prefetch")

    @property
    def has_blobs(self) -> bool:
        """Whether blobs can be stored in it."""
        return bool(IBlobStorage.providedBy(self.db.storage)) and all(
            layer.keeps_blobs() for layer in self._written_to
        )

    def pack_flaw(self) -> str | None:
        """Say why it cannot be packed, as far as that is known, or return ``None``."""
        flaws = (layer.pack_flaw() for layer in self._written_to)
        return next((flaw for flaw in flaws if flaw is not None), None)

    def pack(self) -> None:
        """Remove old revisions and what cannot be reached; what the storage raises goes through."""
        self.db.pack()

    def zap(self) -> None:
        """Destroy all data, blobs included, and open the empty database.

        :raises NotZapped: when it must not or could not be done
        """
        for layer in self._layers:
            if layer.zap_obstacle:
                raise NotZapped(f"{layer.name()} cannot be zapped: {layer.zap_obstacle}")
        if any(layer.storage.isReadOnly() for layer in self._layers):
            raise NotZapped("it is configured to be read only")
        directories = [_blob_directory(layer.storage) for layer in self._layers]
        witness = self._some_object()
        if not any(layer.zap(self.db) for layer in self._layers):
            _zap_by_packing(self.db)
        for directory in directories:
            if directory is not None:
                remove_blobs(directory)
        self.open()
        self._check_empty(witness)

    def _some_object(self) -> bytes | None:
        """Return the OID of an object that the root refers to, if there is one."""
        with self.db.transaction() as connection:
            oids = (getattr(value, "_p_oid", None) for value in connection.root().values())
            return next((oid for oid in oids if oid is not None), None)

    def _check_empty(self, witness: bytes | None) -> None:
        # Packing tells no client: a persistent cache would still have what is gone.
        self.empty_caches()
        with self.db.transaction() as connection:
            left = len(connection.root())
        if left:
            raise NotZapped(f"{left} objects are still in the root")
        if witness is None:
            return
        try:
            load_current(self.db.storage, witness)
        except POSKeyError:
            return
        raise NotZapped(
            "objects that were there are still there; does the server pack without collecting "
            "garbage (pack-gc)?"
        )

    def forget_objects(self) -> tuple[str, ...]:
        """Have every connection start with an empty pickle cache when it is opened next."""
        resetCaches()
        return (PICKLE_CACHE,)

    def empty_caches(self) -> tuple[str, ...]:
        """Empty every client-side cache of records that is known; return their names."""
        cleared = self.forget_objects()
        for layer in self._layers:
            cleared += layer.empty_cache()
        return cleared

    def caches_left(self) -> tuple[str, ...]:
        """Return the names of the caches that hold records even after :meth:`empty_caches`."""
        # A DemoStorage may wrap more than it did when it was opened.
        stack = layer_of_storage(self.db.storage).stack()
        left = dict.fromkeys(name for layer in stack for name in layer.caches_left())
        restarted = self.contender.servers if self.contender.restarted else ()
        emptied = {name for server in restarted for name in _CACHES_OF_SERVERS.get(server, ())}
        return tuple(name for name in left if name not in emptied)

    def forget_blobs(self, blobs: Sequence[BlobRevision]) -> tuple[str, ...]:
        """Remove these blobs from every client-side cache that is known; return those caches.

        Not all blobs, as other clients may be reading theirs from the same directory.
        """
        if not blobs:
            return ()
        forgotten = (layer.forget_blobs(blobs) for layer in self._layers)
        return tuple(name for names in forgotten for name in names)

    def cache_use(self) -> CacheUse | None:
        """Return the use of the storage's cache, or ``None`` where that is not counted."""
        return self._outermost.combined_cache_use()

    def driver(self) -> str | None:
        """Return the name of the database driver, where there is one."""
        drivers = (layer.driver() for layer in self._layers)
        return next((driver for driver in drivers if driver is not None), None)

    def versions(self) -> dict[str, str]:
        """Return the versions of what this contender consists of."""
        found = installed_versions(("ZODB", "persistent", "BTrees", "transaction"))
        for layer in self._layers:
            found |= layer.versions()
        return found

    def corrections(self) -> tuple[str, ...]:
        """Say, in a few words each, where a storage is not used as its package has it."""
        return tuple(text for layer in self._layers for text in layer.corrections())


def _blob_directory(storage: Any) -> str | None:
    """Return the directory in which a storage keeps blobs or caches them, if it is its own."""
    if getattr(storage, "shared_blob_dir", False):  # a ZEO server's, which packing sees to
        return None
    holder = getattr(storage, "blobhelper", storage)
    directory: str | None = getattr(getattr(holder, "fshelper", None), "base_dir", None)
    return directory


def _zap_by_packing(db: Any) -> None:
    """Take everything out of the root of *db*, leave the rest to packing, and close it.

    That is what is left where a storage has no other means, as a ZEO server has none for clients.
    """
    with db.transaction() as connection:
        connection.root().clear()
    # The clock of a server may be ahead of this one's.
    emptied = TimeStamp(db.lastTransaction()).timeTime()
    db.pack(max(time.time(), emptied + 1.0))
    db.close()
