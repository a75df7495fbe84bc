"""The commits that a storage has acknowledged to a client, and those that the storage lost."""

from __future__ import annotations

from typing import Any

from ZODB.POSException import POSKeyError

CHECKED_AT_ONCE = 100
"""The number of latest commits that a client looks for immediately after a restart.  If the client
looked later, a new commit of the same object could hide a loss."""


class CommitLog:
    """The commits whose ``tpc_finish`` has returned, each with an object that it stored."""

    def __init__(self) -> None:
        self.acknowledged: list[tuple[bytes, bytes]] = []
        """For each commit, the OID of an object and the ID of the transaction."""
        self.lost: set[bytes] = set()
        """The IDs of the transactions that no longer exist."""

    def watch(self, storage: Any) -> None:
        """Log, from now on, the commits that are made through a connection's *storage*.

        This log replaces the log of a client that used the connection before.
        """
        is_watched = hasattr(storage, "commit_log")
        storage.commit_log = self
        if is_watched:
            return
        store: Any = storage.store
        store_blob: Any = getattr(storage, "storeBlob", None)
        finish: Any = storage.tpc_finish
        stored: list[bytes] = []

        def noted_store(oid: bytes, *arguments: Any) -> Any:
            stored[:] = [oid]
            return store(oid, *arguments)

        def noted_store_blob(oid: bytes, *arguments: Any) -> Any:
            stored[:] = [oid]
            return store_blob(oid, *arguments)

        def noted_finish(*arguments: Any) -> Any:
            tid = finish(*arguments)
            if stored:
                storage.commit_log.acknowledged.append((stored.pop(), tid))
            return tid

        storage.store, storage.tpc_finish = noted_store, noted_finish
        if store_blob is not None:
            storage.storeBlob = noted_store_blob

    def look_for(self, connection: Any, newest: int | None = None) -> None:
        """Look for commits in the database, through *connection*, which must be new.

        If *newest* is given, look for only that number of latest commits, otherwise for all.
        """
        commits = self.acknowledged[-newest:] if newest else self.acknowledged
        serials = {oid: _serial(connection, oid) for oid in dict(commits)}
        self.lost.update(tid for oid, tid in commits if serials[oid] < tid)


def _serial(connection: Any, oid: bytes) -> bytes:
    """Return the ID of the latest transaction of an object; ``b""`` if the object is missing."""
    try:
        serial: bytes = connection._storage.load(oid)[1]
    except POSKeyError:
        return b""
    return serial
