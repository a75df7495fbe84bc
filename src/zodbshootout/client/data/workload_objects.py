"""The objects of a replayed workload in a database, and their OIDs.

::

    root["zodbshootout"]["replay/zeo/1a2b3c4d5e6f7081/0.5/0/2"]    the Objects for two copies
        .chunks                               an IOBTree of Chunks that refer to the objects

The objects that exist before the workload have consecutive OIDs; so have those that each pass over
the workload creates.  So an OID follows from the number of an object, in every client.  The OIDs
are reserved: the storage has been made to allocate others.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from BTrees.IOBTree import IOBTree
from persistent import Persistent
from ZODB.FileStorage import FileStorage
from ZODB.POSException import POSKeyError
from ZODB.utils import load_current, p64, u64

from zodbshootout.client.data.filler import CHUNK, Chunk, NewRecord, chunk_record, store_records
from zodbshootout.client.data.sized_records import RecordMaker
from zodbshootout.client.data.trace import CREATED_OBJECT, OF_BLOBS, Trace
from zodbshootout.client.data.tree import top
from zodbshootout.client.outcome import CheckFailed
from zodbshootout.client.specification import Parameters, ReplayedWorkload
from zodbshootout.recording.chunks import Kind

PASSES = 1024
"""The passes over a workload for which a run reserves OIDs."""
_MARGIN = 2**20
"""OIDs that others may allocate during a reservation, which begins beyond them."""
_ATTEMPTS = 20
"""Attempts at reserving OIDs."""
_COMMIT_SIZE = 16 * 1024**2
"""Bytes of records after which a transaction is committed."""
_PATIENCE = 30.0
"""Seconds within which the first client of a run has to reserve OIDs for all."""


class Objects(Persistent):
    """The objects of all copies of a workload, and what is reserved."""

    def __init__(self) -> None:
        self.first = 0
        """The OID of the first object, as a number."""
        self.stored = 0
        """The number of objects that were stored; all once the database was prepared."""
        self.chunks = IOBTree()
        self.run = ""
        """The run that has reserved OIDs for the objects that it creates."""
        self.created = 0
        """The first of these OIDs, as a number."""


class Reserved(Persistent):
    """The end of the latest reservation of all."""

    def __init__(self) -> None:
        self.end = 0


def with_data(workload: ReplayedWorkload, path: Path) -> ReplayedWorkload:
    """Return a workload whose objects have the records of a FileStorage.

    :raises CheckFailed: if it lacks most of the workload's objects
    :raises OSError: or whatever else FileStorage raises if it cannot open the file
    """
    with (
        closing(Trace(workload.path)) as trace,
        closing(FileStorage(str(path), read_only=True)) as source,
    ):
        used = sum(
            _record_in(source, initial.oid) is not None for initial in trace.initial_objects()
        )
        others = len(source) - used
    if 2 * used < workload.initial_objects:
        raise CheckFailed(
            f"it has only {used} of the {workload.initial_objects} objects of the workload"
        )
    return replace(workload, data=path.name, data_path=str(path), other_objects=others)


def copies(parameters: Parameters) -> int:
    """Return into how many copies of the workload the clients are divided.

    A copy has as many clients as the workload has connections, the last one possibly fewer.
    """
    return -(-parameters.crew.size // max(1, parameters.workload.connections))


def is_stored(root: Any, parameters: Parameters) -> bool:
    """Return whether :func:`store_objects` has nothing to do."""
    objects = root.get("zodbshootout", {}).get(_name(parameters))
    return objects is not None and objects.stored == _total(parameters)


def store_objects(connection: Any, parameters: Parameters) -> None:
    """Store the objects that exist before the workload, unless they are there."""
    transactions, storage = connection.transaction_manager, connection._storage
    objects = _objects(connection, parameters)
    if not objects.first:
        objects.first = _reserve(connection, _total(parameters))
    first, stored = objects.first, objects.stored
    transactions.commit()
    maker = RecordMaker(parameters.seed, parameters.compressibility)
    new = islice(_all_records(first, parameters, maker), stored, None)
    while batch := list(_batch(new)):
        chunk: bytes = storage.new_oid()
        record = chunk_record([new.oid for new in batch], Persistent)
        store_records(storage, [*batch, NewRecord(chunk, record)])
        with transactions:
            objects = _objects(connection, parameters)
            ghost = Chunk.__new__(Chunk)
            connection._cache.new_ghost(chunk, ghost)
            objects.chunks[len(objects.chunks)] = ghost
            objects.stored += len(batch)


def reserve_created(connection: Any, parameters: Parameters) -> None:
    """Reserve OIDs for the objects that a run creates."""
    workload = parameters.workload
    count = copies(parameters) * workload.created_objects * PASSES
    connection.transaction_manager.abort()
    # Another contender with this database may be faster.
    for attempt in connection.transaction_manager.attempts(_ATTEMPTS):
        with attempt:
            start = _reserve(connection, count)
            objects = _objects(connection, parameters)
            objects.run, objects.created = workload.run, start


class Oids:
    """The OIDs of the objects of one copy."""

    def __init__(self, objects: Objects, parameters: Parameters, copy: int) -> None:
        workload = parameters.workload
        self._initial = objects.first + copy * workload.initial_objects
        self._created_per_pass = workload.created_objects
        self._created = objects.created + copy * workload.created_objects * PASSES

    def oid(self, number: int, turn: int) -> bytes:
        """Return the OID of an object in a pass over the workload, counted from 0 on."""
        of_turn = self._created + turn % PASSES * self._created_per_pass
        first = of_turn if number & CREATED_OBJECT else self._initial
        oid: bytes = p64(first + (number & ~CREATED_OBJECT))
        return oid


def oids_of(database: Any, parameters: Parameters, copy: int) -> Oids:
    """Return the OIDs of a copy, once the first client of this run has reserved them.

    :raises TimeoutError: if it does not
    """
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        with database.connected() as connection:
            objects = connection.root()["zodbshootout"][_name(parameters)]
            if objects.run == parameters.workload.run:
                return Oids(objects, parameters, copy)
        time.sleep(0.01)
    raise TimeoutError("the first client has reserved no OIDs")


def _name(parameters: Parameters) -> str:
    workload = parameters.workload
    parts = (
        "replay", parameters.owner, workload.digest, f"{parameters.compressibility:g}",
        parameters.seed, copies(parameters), *([workload.data] if workload.data else []),
    )  # fmt: skip
    return "/".join(map(str, parts))


def _total(parameters: Parameters) -> int:
    workload = parameters.workload
    return copies(parameters) * workload.initial_objects + workload.other_objects


def _objects(connection: Any, parameters: Parameters) -> Objects:
    objects: Objects = top(connection.root()).setdefault(_name(parameters), Objects())
    return objects


def _reserve(connection: Any, count: int) -> int:
    """Reserve consecutive OIDs; return the first of them.  The caller commits."""
    storage = connection._storage
    reserved = top(connection.root()).setdefault("reserved OIDs", Reserved())
    first: int = max(u64(storage.new_oid()) + _MARGIN, reserved.end)
    reserved.end = first + count + 1
    # Storages allocate OIDs beyond all those that are in use.
    maker = RecordMaker(0, 0.0)
    last = p64(first + count)
    store_records(storage, [NewRecord(last, maker.record(last, 0))])
    return first


def _all_records(first: int, parameters: Parameters, maker: RecordMaker) -> Iterator[NewRecord]:
    workload = parameters.workload
    data: AbstractContextManager[Any] = nullcontext()
    if workload.data:
        data = closing(FileStorage(workload.data_path, read_only=True))
    with closing(Trace(workload.path)) as trace, data as source:
        for copy in range(copies(parameters)):
            start = first + copy * workload.initial_objects
            for initial in trace.initial_objects():
                oid = p64(start + initial.number)
                record = None
                if source is not None and initial.kind != Kind.STORE_BLOB:
                    record = _record_in(source, initial.oid)
                if record is None:
                    yield new_record(maker, initial.kind, oid, initial.size)
                else:
                    yield NewRecord(oid, record)
        if source is not None:
            used = {initial.oid for initial in trace.initial_objects()}
            start = first + copies(parameters) * workload.initial_objects
            yield from _other_records(source, used, start)


def _record_in(source: Any, oid: bytes) -> bytes | None:
    """Return the current record of an object in a storage, or ``None`` if there is none."""
    try:
        record: bytes = load_current(source, oid)[0]
    except POSKeyError:
        return None
    return record


def _other_records(source: Any, used: Container[bytes], start: int) -> Iterator[NewRecord]:
    """Return the current records of all other objects, with OIDs from *start* on."""
    following: bytes | None = None
    number = start
    while True:
        oid, _, record, following = source.record_iternext(following)
        if oid not in used:
            yield NewRecord(p64(number), record)
            number += 1
        if following is None:
            return


def new_record(maker: RecordMaker, kind: int, oid: bytes, size: int) -> NewRecord:
    """Return a record of *size* bytes, or that of a blob with a file of *size* bytes.

    The *kind* of an operation on the object decides.
    """
    if kind in OF_BLOBS:
        return NewRecord(oid, maker.blob_record, maker.content(size))
    if kind == Kind.STORE_RESOLVABLE:
        return NewRecord(oid, maker.resolvable(oid, size))
    return NewRecord(oid, maker.record(oid, size))


def _batch(new: Iterator[NewRecord]) -> Iterator[NewRecord]:
    """Take the records of one transaction."""
    size = 0
    for record in islice(new, CHUNK):
        yield record
        size += len(record.record) + len(record.blob or b"")
        if size >= _COMMIT_SIZE:
            return
