"""Filler: objects that make a database large, in addition to those under test.

::

    root["zodbshootout"]["filler"]        a Filler, or "filler of blobs"
        .chunks                           an IOBTree of Chunks
            .objects                      references to up to CHUNK objects

The root refers to all these objects, so packing keeps them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from BTrees.IOBTree import IOBTree
from persistent import Persistent
from ZODB.blob import Blob
from ZODB.Connection import TransactionMetaData
from ZODB.utils import z64

from zodbshootout.client.data.datasets import TOP, grown_tree, mapping_name, top
from zodbshootout.client.data.objects import Item, Payload, payload, pickled
from zodbshootout.model.specification import Parameters

CHUNK = 1000
"""The maximum number of objects in a chunk.  One transaction writes a whole chunk."""
CHUNK_BYTES = 16 * 1024**2
"""The maximum number of bytes that one transaction writes, unless a single object is larger."""
CHUNKS_AT_ONCE = 20
"""The maximum number of chunks that are stored before a further transaction adds them all to the
filler."""
_EMPTY_LIST = b"]q\x03s."
_END = b"s."
_OID = b"C\x08"
_REMEMBER_CLASS, _SAME_CLASS = b"q\x04", b"h\x04"
_PERSISTENT_PAIR = b"\x86Q"
"""Parts of a pickle of protocol 3; see :mod:`pickletools`."""
_NO_CLIENT = -1
"""A client number that no client has; it makes filler differ from the objects of clients."""


class Chunk(Persistent):
    """References to the objects that one transaction has written."""

    def __init__(self, objects: list[Any]) -> None:
        self.objects = objects


class Filler(Persistent):
    """All chunks, and the total number of objects in them."""

    def __init__(self) -> None:
        self.chunks = IOBTree()
        self.total = 0


def fill_up(
    connection: Any, parameters: Parameters, note: Callable[[int], None] = lambda _: None
) -> int:
    """Add objects up to ``min_objects``; return the number of objects added.

    Call *note* repeatedly with the number of objects so far.

    This ends the transaction of *connection*.  Objects and chunks are stored as records, which is
    faster than pickling each object.  Once several chunks are stored, a transaction of
    *connection* adds them to the filler.
    """
    if parameters.grown:
        return _grow(connection, parameters, note)
    total = before = _filler(connection.root(), parameters).total
    transactions = connection.transaction_manager
    transactions.commit()
    content = content_of(parameters)
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
                filler.chunks[len(filler.chunks)] = connection.get(oid)
                filler.total += count
        connection.cacheMinimize()
        note(total)
    return total - before


def _grow(connection: Any, parameters: Parameters, note: Callable[[int], None]) -> int:
    """Add objects to the tree of ``--grown``; see :func:`fill_up`."""
    tree, transactions = grown_tree(connection.root(), parameters), connection.transaction_manager
    total = before = tree.total
    if total < parameters.min_objects:
        keys = tree.next_layer(parameters.min_objects - total)
        tree.layers += 1
    transactions.commit()
    content = payload(parameters, _NO_CLIENT)
    while total < parameters.min_objects:
        count = min(parameters.min_objects - total, max(1, CHUNK_BYTES // parameters.object_size))
        contents = content.contents(min(count, CHUNKS_AT_ONCE * CHUNK), 0, total)
        records = _new_records(connection._storage, contents, parameters)
        store_records(connection._storage, records)
        with transactions:
            tree = grown_tree(connection.root(), parameters)
            for key, record in zip(keys, records):
                tree.tree[key] = _ghost(connection, record.oid)
            tree.total = total = total + len(records)
        connection.cacheMinimize()
        note(total)
    return total - before


def _ghost(connection: Any, oid: bytes) -> Item:
    """Return a stored item as a ghost; ``Connection.get`` would load its record."""
    item = Item.__new__(Item)
    connection._cache.new_ghost(oid, item)
    return item


def filled(root: Any, parameters: Parameters) -> int:
    """Return the number of objects that :func:`fill_up` has added so far."""
    filler = root.get(TOP, {}).get(_key(parameters))
    return 0 if filler is None else int(filler.total)


def _key(parameters: Parameters) -> str:
    if parameters.grown:
        return mapping_name(parameters)
    return "filler of blobs" if parameters.blobs else "filler"


def chunks(root: Any, parameters: Parameters) -> Iterator[list[bytes]]:
    """Yield the OIDs of each chunk's objects, in the order in which chunks were added."""
    for chunk in _filler(root, parameters).chunks.values():
        yield [item._p_oid for item in chunk.objects]
        chunk._p_deactivate()  # millions of ghosts would need much memory


def content_of(parameters: Parameters) -> Payload:
    """Return the content of the objects that :func:`fill_up` adds."""
    return payload(parameters, _NO_CLIENT)


def _filler(root: Any, parameters: Parameters) -> Filler:
    filler: Filler = top(root).setdefault(_key(parameters), Filler())
    return filler


def _store(storage: Any, contents: list[bytes], parameters: Parameters) -> bytes:
    """Store a chunk of objects in one transaction of *storage*; return the chunk's OID."""
    new = _new_records(storage, contents, parameters)
    chunk: bytes = storage.new_oid()
    record = chunk_record([record.oid for record in new], Blob if parameters.blobs else Item)
    store_records(storage, [*new, NewRecord(chunk, record)])
    return chunk


def _new_records(storage: Any, contents: list[bytes], parameters: Parameters) -> list[NewRecord]:
    oids = [storage.new_oid() for _ in contents]
    return records(oids, contents, blobs=parameters.blobs)


def records(
    oids: Sequence[bytes], contents: Sequence[bytes], *, blobs: bool, revision: bytes = z64
) -> list[NewRecord]:
    """Return records with *contents*; *revision* is the revision of the records to replace."""
    if blobs:
        record = pickled(Blob())
        return [NewRecord(oid, record, content, revision) for oid, content in zip(oids, contents)]
    before, after = pickled(Item(contents[0])).split(contents[0])
    return [
        NewRecord(oid, before + content + after, None, revision)
        for oid, content in zip(oids, contents)
    ]


class NewRecord(NamedTuple):
    """A record to store."""

    oid: bytes
    record: bytes
    blob: bytes | None = None
    """The content of the blob's file; ``None`` if the object is not a blob."""
    revision: bytes = z64
    """The revision that the record replaces; zeros for a new object."""


def store_records(storage: Any, records: Iterable[NewRecord]) -> bytes:
    """Store records in one transaction of *storage*; return the transaction's ID."""
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
    tid: bytes = storage.tpc_finish(transaction)
    return tid


def chunk_record(oids: Sequence[bytes], cls: type) -> bytes:
    """Return the record of a :class:`Chunk` that refers to objects of class *cls* by their OIDs.

    This uses no pickler.  A pickler would take as long as storing the objects: it calls Python code
    three times per object to learn whether the object is persistent.  A reference in a record is a
    persistent ID: a tuple of the OID and the class.
    """
    empty = pickled(Chunk([]))
    assert empty.endswith(_EMPTY_LIST)
    name = f"c{cls.__module__}\n{cls.__qualname__}\n".encode() + _REMEMBER_CLASS
    first = _OID + oids[0] + name + _PERSISTENT_PAIR
    others = [_OID + oid + _SAME_CLASS + _PERSISTENT_PAIR for oid in oids[1:]]
    return b"".join([empty[: -len(_END)], b"(", first, *others, b"e", _END])


def blob_file(storage: Any, content: bytes) -> str:
    """Write *content* to a new file that *storage* can take over as a blob; return the path."""
    descriptor, name = tempfile.mkstemp(dir=storage.temporaryDirectory(), prefix="BUC")
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return name
