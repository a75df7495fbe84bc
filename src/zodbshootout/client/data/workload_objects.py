"""The objects of a replayed workload in a database, and their OIDs.

::

    root["zodbshootout"]["replay/zeo/1a2b3c4d5e6f7081/0.5/0/2"]    the Objects for two copies
        .chunks                               an IOBTree of Chunks that refer to the objects

The objects that existed before the workload have consecutive OIDs.  A pass replays the
workload once; the objects that it creates have consecutive OIDs, too.  Every client can therefore
compute an OID from the number of an object.
The OIDs are reserved: the storage does not allocate them to other objects.
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

from zodbshootout.client.data.datasets import TOP, top
from zodbshootout.client.data.filler import CHUNK, NewRecord, chunk_record, store_records
from zodbshootout.client.data.objects import pickled
from zodbshootout.client.data.sized_records import RecordMaker
from zodbshootout.client.data.trace import CREATED_OBJECT, OF_BLOBS, Trace
from zodbshootout.model.outcome import CheckFailed
from zodbshootout.model.specification import Parameters, ReplayedWorkload
from zodbshootout.recording.chunks import Kind

PASSES = 1024
"""The number of passes for which a run reserves OIDs; later passes reuse these OIDs."""
_MARGIN = 2**20
"""The number of OIDs to leave free below the reserved OIDs.  While a run reserves OIDs, clients may
allocate OIDs from this margin."""
_ATTEMPTS = 20
"""The maximum number of attempts to reserve OIDs."""
_COMMIT_SIZE = 16 * 1024**2
"""The size in bytes at which a batch of records is committed, even if it is not a full chunk."""
_PATIENCE = 30.0
"""Seconds that the other clients of a run wait for the first one to reserve OIDs."""


class Objects(Persistent):
    """The initial objects of all :func:`copies` of a workload, and OIDs for created objects."""

    def __init__(self) -> None:
        self.first = 0
        """The OID of the first object that existed before the workload, as a number."""
        self.stored = 0
        """The number of objects that :func:`store_objects` has stored so far."""
        self.chunks = IOBTree()
        self.run = ""
        """The run that reserved OIDs for the objects that the workload creates."""
        self.created = 0
        """The first OID that the run reserved, as a number."""


class Reserved(Persistent):
    """The first OID, as a number, above all reservations in the database."""

    def __init__(self) -> None:
        self.end = 0


def with_data(workload: ReplayedWorkload, path: Path) -> ReplayedWorkload:
    """Return *workload*, with a FileStorage from which to take the records of objects.

    FileStorage's exceptions propagate.

    :raises CheckFailed: if the FileStorage lacks most of the workload's objects
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
    """Return how many copies of the workload the clients replay.

    A copy has one client per connection of the workload; the last copy may have fewer clients.
    """
    return -(-parameters.crew.size // max(1, parameters.workload.connections))


def is_stored(root: Any, parameters: Parameters) -> bool:
    """Return whether :func:`store_objects` has nothing to do."""
    objects = root.get(TOP, {}).get(_name(parameters))
    return objects is not None and objects.stored == _total(parameters)


def store_objects(connection: Any, parameters: Parameters) -> None:
    """Store the objects that existed before the workload and that the database lacks."""
    transactions, storage = connection.transaction_manager, connection._storage
    objects = _objects(connection, parameters)
    if not objects.first:
        objects.first = _reserve(connection, _total(parameters))
    first, stored = objects.first, objects.stored
    transactions.commit()
    records = islice(_all_records(first, parameters), stored, None)
    while batch := list(_batch(records)):
        chunk: bytes = storage.new_oid()
        references = chunk_record([record.oid for record in batch], Persistent)
        # An interrupted run may have stored the batch, but nothing that refers to the objects.
        missing = [] if _has_object(storage, batch[0].oid) else batch
        store_records(storage, [*missing, NewRecord(chunk, references)])
        with transactions:
            objects = _objects(connection, parameters)
            objects.chunks[len(objects.chunks)] = connection.get(chunk)
            objects.stored += len(batch)


def reserve_created(connection: Any, parameters: Parameters) -> None:
    """Reserve OIDs for the objects that a run creates."""
    workload = parameters.workload
    count = copies(parameters) * workload.created_objects * PASSES
    connection.transaction_manager.abort()
    # This conflicts if another contender in the same database reserves OIDs at the same time.
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
        """Return the OID of an object in a pass.

        *number* identifies the object; *turn* is the number of earlier passes.
        """
        created = self._created + turn % PASSES * self._created_per_pass
        first = created if number & CREATED_OBJECT else self._initial
        oid: bytes = p64(first + (number & ~CREATED_OBJECT))
        return oid


def oids_of(database: Any, parameters: Parameters, copy: int) -> Oids:
    """Wait until the first client of this run has reserved OIDs; return the OIDs of a copy.

    :raises TimeoutError: if the first client takes too long
    """
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        with database.connected() as connection:
            objects = connection.root()[TOP][_name(parameters)]
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
    """Reserve *count* consecutive OIDs; return the first one, as a number.  The caller commits."""
    storage = connection._storage
    reserved = top(connection.root()).setdefault("reserved OIDs", Reserved())
    first: int = max(u64(storage.new_oid()) + _MARGIN, reserved.end)
    reserved.end = first + count + 1
    # Storages allocate only OIDs above the highest stored OID, so store a record above the
    # reserved OIDs.
    store_records(storage, [NewRecord(p64(first + count), pickled(Persistent()))])
    return first


def _all_records(first: int, parameters: Parameters) -> Iterator[NewRecord]:
    workload = parameters.workload
    maker = RecordMaker(parameters.seed, parameters.compressibility)
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


def _has_object(storage: Any, oid: bytes) -> bool:
    try:
        storage.load(oid)
    except POSKeyError:
        return False
    return True


def _record_in(source: Any, oid: bytes) -> bytes | None:
    """Return the current record of an object in a storage, or ``None`` if there is none."""
    try:
        record: bytes = load_current(source, oid)[0]
    except POSKeyError:
        return None
    return record


def _other_records(source: Any, used: Container[bytes], start: int) -> Iterator[NewRecord]:
    """Yield the current records of objects that are not *used*, under new OIDs from *start* on."""
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
    """Return a record of *size* bytes or, for a blob, a record with a file of *size* bytes.

    *kind* is the kind of an operation on the object.
    """
    if kind in OF_BLOBS:
        return NewRecord(oid, maker.blob_record, maker.content(size))
    if kind == Kind.STORE_RESOLVABLE:
        return NewRecord(oid, maker.resolvable(oid, size))
    return NewRecord(oid, maker.record(oid, size))


def _batch(records: Iterator[NewRecord]) -> Iterator[NewRecord]:
    """Take the records for one transaction from *records*."""
    size = 0
    for record in islice(records, CHUNK):
        yield record
        size += len(record.record) + len(record.blob or b"")
        if size >= _COMMIT_SIZE:
            return
