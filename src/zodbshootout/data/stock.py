"""Objects that make a database large, beside those under test.

::

    root["zodbshootout"]["stock"]         a Stock, or "stock of blobs"
        .crates                           an IOBTree of Crates
            .objects                      references to up to CRATE objects

So they are reachable, and packing keeps them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import Any

from BTrees.IOBTree import IOBTree
from persistent import Persistent
from ZODB.blob import Blob
from ZODB.Connection import TransactionMetaData
from ZODB.utils import z64

from zodbshootout.data.payload import Payload
from zodbshootout.data.records import Item, payload, pickled
from zodbshootout.data.tree import shelf
from zodbshootout.model import Parameters

CRATE = 1000
"""Objects that are written in one transaction, at most."""
CRATE_BYTES = 16 * 1024**2
"""Bytes that are written in one transaction, unless a single object has more."""
_NOBODY = -1
"""The number of the client that the content of the stock is generated for."""


class Crate(Persistent):
    """Refers to the objects that one transaction has written."""

    def __init__(self, objects: list[Any]) -> None:
        self.objects = objects


class Stock(Persistent):
    """All crates, and how many objects are in them."""

    def __init__(self) -> None:
        self.crates = IOBTree()
        self.total = 0

    def take(self, crate: Crate) -> None:
        """Add a crate."""
        self.crates[len(self.crates)] = crate
        self.total += len(crate.objects)


def replenish(connection: Any, transactions: Any, parameters: Parameters) -> int:
    """Write what *connection*'s database lacks of ``min_objects``; return how many that were.

    Each crate takes two transactions: one for the objects, which are stored as records that were
    pickled only once, and one for the crate.
    """
    written = 0
    while True:
        with transactions:
            stock = _stock(connection.root(), parameters)
            missing = parameters.min_objects - stock.total
        if missing <= 0:
            return written
        affordable = max(1, CRATE_BYTES // parameters.object_size)
        count = min(missing, CRATE, affordable)
        oids = _store(connection._storage, count, stock.total, parameters)
        with transactions:
            stock.take(Crate([_ghost(connection, oid, parameters) for oid in oids]))
        connection.cacheMinimize()
        written += count


def _stock(root: Any, parameters: Parameters) -> Stock:
    ours = shelf(root)
    key = "stock of blobs" if parameters.blobs else "stock"
    if key not in ours:
        ours[key] = Stock()
    found: Stock = ours[key]
    return found


def _store(storage: Any, count: int, first: int, parameters: Parameters) -> list[bytes]:
    """Store *count* objects in a transaction of the storage alone; return their OIDs."""
    transaction = TransactionMetaData()
    oids = [storage.new_oid() for _ in range(count)]
    content = payload(parameters, _NOBODY)
    storage.tpc_begin(transaction)
    try:
        if parameters.blobs:
            _store_blobs(storage, transaction, oids, first, content)
        else:
            for oid, record in zip(oids, _records(content, first), strict=False):
                storage.store(oid, z64, record, "", transaction)
        storage.tpc_vote(transaction)
    except BaseException:
        storage.tpc_abort(transaction)
        raise
    storage.tpc_finish(transaction)
    return oids


def _records(content: Payload, first: int) -> Iterator[bytes]:
    sample = content.content(0, revision=0)
    before, after = pickled(Item(sample)).split(sample)
    position = first
    while True:
        yield before + content.content(position, revision=0) + after
        position += 1


def _store_blobs(
    storage: Any, transaction: Any, oids: list[bytes], first: int, content: Payload
) -> None:
    record = pickled(Blob())
    for position, oid in enumerate(oids, first):
        name = blob_file(storage, content.content(position, revision=0))
        storage.storeBlob(oid, z64, record, name, "", transaction)


def blob_file(storage: Any, content: bytes) -> str:
    """Write *content* to a new file that *storage* can take for a blob; return its name."""
    descriptor, name = tempfile.mkstemp(dir=storage.temporaryDirectory(), prefix="BUC")
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return name


def _ghost(connection: Any, oid: bytes, parameters: Parameters) -> Any:
    """Return an object of which nothing is known but its class and its OID."""
    cls = Blob if parameters.blobs else Item
    ghost = cls.__new__(cls)
    connection._cache.new_ghost(oid, ghost)
    return ghost
