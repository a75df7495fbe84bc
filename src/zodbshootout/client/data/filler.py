"""Objects that make a database large, in addition to those under test.

::

    root["zodbshootout"]["filler"]        a Filler, or "filler of blobs"
        .chunks                           an IOBTree of Chunks
            .objects                      references to up to CHUNK objects

They are reachable, so packing keeps them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from BTrees.IOBTree import IOBTree
from persistent import Persistent
from ZODB.blob import Blob
from ZODB.Connection import TransactionMetaData
from ZODB.utils import z64

from zodbshootout.client.data.records import Item, payload, pickled
from zodbshootout.client.data.tree import top
from zodbshootout.client.specification import Parameters

CHUNK = 1000
"""The most objects that are written in one transaction."""
CHUNK_BYTES = 16 * 1024**2
"""The most bytes that are written in one transaction, unless a single object has more."""
CHUNKS_AT_ONCE = 20
"""Chunks that are written before a transaction refers to their objects."""
_EMPTY_LIST = b"]q\x03s."
_END = b"s."
_OID = b"C\x08"
_REMEMBER_CLASS, _SAME_CLASS = b"q\x04", b"h\x04"
_PERSISTENT_PAIR = b"\x86Q"
"""Parts of a pickle of protocol 3, as :mod:`pickletools` lists them."""
_NOBODY = -1
"""A number that no client has, for the content of these objects."""


class Chunk(Persistent):
    """References to the objects that one transaction has written."""

    def __init__(self, objects: list[Any]) -> None:
        self.objects = objects


class Filler(Persistent):
    """All chunks, and how many objects are in them."""

    def __init__(self) -> None:
        self.chunks = IOBTree()
        self.total = 0


def fill_up(connection: Any, parameters: Parameters) -> int:
    """Add objects up to ``min_objects``; return the number of objects that were added.

    The transaction of *connection* ends.  Objects and chunks are stored as records; the bytes that
    they have in common are pickled once.  Another transaction then refers to several chunks.
    """
    total = first = _filler(connection.root(), parameters).total
    transactions = connection.transaction_manager
    transactions.commit()
    content = payload(parameters, _NOBODY)
    most = min(CHUNK, max(1, CHUNK_BYTES // parameters.object_size))
    while total < parameters.min_objects:
        stored: list[tuple[bytes, int]] = []
        while total < parameters.min_objects and len(stored) < CHUNKS_AT_ONCE:
            count = min(parameters.min_objects - total, most)
            contents = content.contents(count, 0, total)
            stored.append((_store(connection._storage, contents, parameters), count))
            total += count
        with transactions:
            filler = _filler(connection.root(), parameters)
            for oid, count in stored:
                chunk = Chunk.__new__(Chunk)
                connection._cache.new_ghost(oid, chunk)
                filler.chunks[len(filler.chunks)] = chunk
                filler.total += count
        connection.cacheMinimize()
    return total - first


def _filler(root: Any, parameters: Parameters) -> Filler:
    key = "filler of blobs" if parameters.blobs else "filler"
    filler: Filler = top(root).setdefault(key, Filler())
    return filler


def _store(storage: Any, contents: list[bytes], parameters: Parameters) -> bytes:
    """Store a chunk of objects in a transaction of the storage alone; return the chunk's OID."""
    chunk: bytes = storage.new_oid()
    oids = [storage.new_oid() for _ in contents]
    if parameters.blobs:
        record = pickled(Blob())
        new = [NewRecord(oid, record, content) for oid, content in zip(oids, contents)]
    else:
        before, after = pickled(Item(contents[0])).split(contents[0])
        new = [NewRecord(oid, before + content + after) for oid, content in zip(oids, contents)]
    new.append(NewRecord(chunk, chunk_record(oids, Blob if parameters.blobs else Item)))
    store_records(storage, new)
    return chunk


class NewRecord(NamedTuple):
    """A record to store."""

    oid: bytes
    record: bytes
    blob: bytes | None = None
    """The content of its file, if it is a blob."""
    revision: bytes = z64
    """The former revision of the object, if it is no new one."""


def store_records(storage: Any, records: Iterable[NewRecord]) -> None:
    """Store records in a transaction of the storage alone."""
    transaction = TransactionMetaData()
    storage.tpc_begin(transaction)
    try:
        for oid, record, blob, revision in records:
            if blob is None:
                storage.store(oid, revision, record, "", transaction)
            else:
                file = blob_file(storage, blob)
                storage.storeBlob(oid, revision, record, file, "", transaction)
        storage.tpc_vote(transaction)
    except BaseException:
        storage.tpc_abort(transaction)
        raise
    storage.tpc_finish(transaction)


def chunk_record(oids: Sequence[bytes], cls: type) -> bytes:
    """Return the record of a :class:`Chunk` that refers to objects of class *cls* by their OIDs.

    A pickler would ask Python three times for each object whether it is persistent, which takes as
    long as storing them.  In a record a reference is a tuple of the OID and the class as a
    persistent id.
    """
    empty = pickled(Chunk([]))
    assert empty.endswith(_EMPTY_LIST)
    name = f"c{cls.__module__}\n{cls.__qualname__}\n".encode() + _REMEMBER_CLASS
    first = _OID + oids[0] + name + _PERSISTENT_PAIR
    others = [_OID + oid + _SAME_CLASS + _PERSISTENT_PAIR for oid in oids[1:]]
    return b"".join([empty[: -len(_END)], b"(", first, *others, b"e", _END])


def blob_file(storage: Any, content: bytes) -> str:
    """Write *content* to a new file that *storage* can adopt as a blob; return its name."""
    descriptor, name = tempfile.mkstemp(dir=storage.temporaryDirectory(), prefix="BUC")
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return name
