"""The transactions of a workload in the order of their replay; numbers identify objects.

Transactions that commit are in the order of their commits.  Any other transaction comes after the
last commit that it saw.

A trace is an SQLite database, so that any part of it can be read.  The memory for converting and
replaying a workload does not depend on its length, except for a few numbers per object.
"""

from __future__ import annotations

import hashlib
import sqlite3
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, starmap
from pathlib import Path
from typing import Any

from zodbshootout.model.specification import ReplayedWorkload
from zodbshootout.recording.chunks import BEGINS, NONE, Kind
from zodbshootout.recording.recorded import Transaction, Workload

CREATED_OBJECT = 1 << 31
"""The bit that is set in the number of an object that the workload creates."""
CREATING_STORE = 1 << 7
"""The bit that is set in the kind of an operation if it stores a new object."""
ASSUMED_SIZE = 100
"""Bytes assumed for a record of unknown size, such as one that was only prefetched."""
_MAX_NUMBER = 2**32 - 1
_LOAD, _FINISH, _END = int(Kind.LOAD), int(Kind.FINISH), int(Kind.END)
_PREFETCH, _LOAD_BLOB, _STORE_BLOB = map(int, (Kind.PREFETCH, Kind.LOAD_BLOB, Kind.STORE_BLOB))
_CONFLICT, _VOTE, _RESOLVABLE = map(int, (Kind.CONFLICT, Kind.VOTE, Kind.STORE_RESOLVABLE))
_TPC_BEGIN = int(Kind.TPC_BEGIN)
_STORES = frozenset({int(Kind.STORE), _RESOLVABLE})
_LOADS = frozenset({_LOAD, _PREFETCH, _LOAD_BLOB})
OF_BLOBS = frozenset({_LOAD_BLOB, _STORE_BLOB})
OF_OBJECTS = _LOADS | _STORES | {_STORE_BLOB, int(Kind.READ_CURRENT)}
"""The kinds of operations that use an object."""
_PASSED_OVER = BEGINS | {_END, _CONFLICT, _STORE_BLOB, int(Kind.FAILURE)}
_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE recorded (instant INTEGER, started INTEGER, connection INTEGER, body BLOB);
CREATE TABLE transactions (
    number INTEGER PRIMARY KEY, started INTEGER, connection INTEGER, body BLOB
);
CREATE TABLE objects (
    number INTEGER PRIMARY KEY, size INTEGER, kind INTEGER, is_stored INTEGER, oid BLOB
);
"""

Operation = tuple[int, int, int]
"""A :class:`~zodbshootout.recording.chunks.Kind`, the number of an object, and a size in bytes."""


@dataclass(frozen=True)
class ReplayedTransaction:
    """A transaction of a trace."""

    started: int
    """Nanoseconds from the start of the first transaction to the start of this one."""
    connection: int
    """The number of the connection; 0 is the connection with the most transactions."""
    operations: Sequence[Operation]


@dataclass(frozen=True)
class InitialObject:
    """An object that existed before the workload."""

    number: int
    size: int
    """Bytes of the record or, for a blob, of the file."""
    kind: int
    """``STORE_BLOB`` for a blob, ``STORE_RESOLVABLE`` if the class resolves conflicts, else the
    kind of the first operation."""
    oid: bytes
    """The OID in the recording."""


class Trace:
    """A trace made by :func:`make_trace`."""

    def __init__(self, path: str) -> None:
        """Open the file.

        :raises sqlite3.Error: if the file is missing
        """
        # No check of the thread is needed, because only one thread reads at a time.
        uri = f"{Path(path).absolute().as_uri()}?mode=ro"
        self._database = sqlite3.connect(uri, uri=True, check_same_thread=False)

    def close(self) -> None:
        self._database.close()

    def transactions(self, first: int, last: int) -> list[ReplayedTransaction]:
        """Return the transactions from number *first* up to, but not including, *last*."""
        rows = self._database.execute(
            "SELECT started, connection, body FROM transactions "
            "WHERE number >= ? AND number < ? ORDER BY number",
            (first, last),
        )
        return [
            ReplayedTransaction(started, connection, list(_operations(body)))
            for started, connection, body in rows
        ]

    def initial_objects(self) -> Iterator[InitialObject]:
        """Return the objects that existed before the workload, by ascending numbers from 0 on."""
        rows = self._database.execute("SELECT number, size, kind, oid FROM objects ORDER BY number")
        return starmap(InitialObject, rows)

    def stored_objects(self) -> set[int]:
        """Return the numbers of the initial objects, except blobs, that the workload stores."""
        rows = self._database.execute("SELECT number FROM objects WHERE is_stored")
        return {number for (number,) in rows}


def make_trace(workload: Workload, path: Path) -> ReplayedWorkload:
    """Write the trace of a workload to a new file.

    :raises WorkloadError: if a file of the workload is cut off or damaged
    :raises OSError: if a file cannot be read
    """
    database = sqlite3.connect(path)
    try:
        with database:
            database.executescript(_SCHEMA)
            attempts = _Attempts()
            rows = attempts.merged(workload)
            database.executemany("INSERT INTO recorded VALUES (?, ?, ?, ?)", rows)
            database.execute("CREATE INDEX instants ON recorded (instant)")
            objects = _Objects(list(attempts.oids))
            objects.classify(body for _, _, body in _recorded(database))
            connections = _ranks(database)
            rows = objects.numbered(_recorded(database), connections)
            database.executemany("INSERT INTO transactions VALUES (?, ?, ?, ?)", rows)
            database.executemany("INSERT INTO objects VALUES (?, ?, ?, ?, ?)", objects.initial())
            database.executescript("DROP INDEX instants; DROP TABLE recorded;")
    finally:
        database.close()
    return ReplayedWorkload(
        name=workload.path.name,
        digest=_digest(workload.files),
        transactions=objects.transactions,
        connections=len(connections),
        seconds=objects.nanoseconds / 1e9,
        initial_objects=objects.initial_count,
        all_objects=max(int(facts.get("objects", 0)) for facts in workload.facts),
        created_objects=objects.created_count,
        has_blobs=objects.has_blobs,
        path=str(path),
        **attempts.counts,
    )


def _instant(events: Sequence[tuple[int, bytes, int, bytes, int, int]]) -> int:
    """Return when a transaction was committed.

    If the transaction was not committed, return when its connection last polled.  If the connection
    did not poll either, return when the transaction's first event started.
    """
    finishes = [event[5] for event in events if event[0] == _FINISH]
    begins = [event[5] for event in events if event[0] in BEGINS]
    return max(finishes or begins or [events[0][4]])


def _operations(body: bytes) -> Iterator[Operation]:
    numbers = array("I", body)
    return zip(numbers[::3], numbers[1::3], numbers[2::3])


def _recorded(database: sqlite3.Connection) -> Iterator[tuple[int, int, bytes]]:
    """Yield the start, the connection and the operations of each transaction, in replay order."""
    # A separate cursor, because another one inserts rows meanwhile.
    yield from database.cursor().execute(
        "SELECT started, connection, body FROM recorded ORDER BY instant, rowid"
    )


def _ranks(database: sqlite3.Connection) -> dict[int, int]:
    """Return the rank of each connection; the one with the most transactions has rank 0."""
    rows = database.execute(
        "SELECT connection FROM recorded GROUP BY connection ORDER BY count(*) DESC, connection"
    )
    return {connection: rank for rank, (connection,) in enumerate(rows)}


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while block := file.read(2**20):
                digest.update(block)
    return digest.hexdigest()[:16]


class _Attempts:
    """The transactions of a workload, with failed attempts merged into them.

    After a conflict, the application repeats the transaction on the same connection.  The new
    attempt finds in the pickle cache what failed attempts loaded.  A merged transaction therefore
    has the loads of failed attempts first, then the other operations of the last attempt.
    """

    def __init__(self) -> None:
        self._connections: dict[tuple[int, int], int] = defaultdict(count().__next__)
        self._failed: dict[int, tuple[int, int, list[Operation]]] = {}
        """For each connection whose latest attempt failed: the instant of that attempt, the start
        of the first attempt, and the loads of all attempts."""
        self.oids: dict[bytes, int] = defaultdict(count().__next__)
        """A number for each OID, in order of appearance."""
        self.counts: dict[str, Any] = Counter()
        """Counts of recorded events; the keys are fields of :class:`ReplayedWorkload`."""

    def merged(self, workload: Workload) -> Iterator[tuple[int, int, int, bytes]]:
        """Return the rows of the transactions, in no particular order."""
        for transaction in workload.transactions():
            offset = workload.offset(transaction.process)
            connection = self._connections[transaction.process, transaction.connection]
            done = [event for event in transaction.events if event[0] != _END]
            if not done:
                continue
            started, instant = done[0][4] + offset, _instant(done) + offset
            operations = list(self._operations(transaction))
            kinds = {event[0] for event in done}
            if connection in self._failed:
                failed_at, first, loads = self._failed.pop(connection)
                if _TPC_BEGIN in kinds:  # an attempt can fail before its first store
                    started, operations = first, _repeated(loads, operations)
                else:  # the application gave up
                    yield self._row(failed_at, first, connection, loads)
            if _CONFLICT in kinds and _FINISH not in kinds:
                loads = [op for op in operations if op[0] in _LOADS]
                self._failed[connection] = instant, started, loads
                self.counts["retries"] += 1
            else:
                yield self._row(instant, started, connection, operations)
        for connection, (instant, started, loads) in self._failed.items():
            yield self._row(instant, started, connection, loads)

    def _row(
        self, instant: int, started: int, connection: int, operations: list[Operation]
    ) -> tuple[int, int, int, bytes]:
        kinds = Counter(kind & ~CREATING_STORE for kind, _, _ in operations)
        self.counts["read_only"] += not kinds[_FINISH]
        self.counts["loads"] += kinds[_LOAD]
        self.counts["stores"] += sum(kinds[kind] for kind in (*_STORES, _STORE_BLOB))
        flat = array("I", (number for operation in operations for number in operation))
        return instant, started, connection, flat.tobytes()

    def _operations(self, transaction: Transaction) -> Iterator[Operation]:
        blobs = {oid: size for kind, oid, size, *_ in transaction.events if kind == _STORE_BLOB}
        for kind, oid, size, serial, _, _ in transaction.events:
            if kind == _CONFLICT:
                self.counts["conflicts"] += 1
            elif kind == _VOTE:
                self.counts["resolutions"] += size
                self.counts["conflicts"] += size
            if kind in _PASSED_OVER:
                continue
            operation = kind
            if kind in _STORES:
                operation = _STORE_BLOB if oid in blobs else kind
                size = blobs.get(oid, size)  # noqa: PLW2901
                operation |= CREATING_STORE if serial == NONE else 0
            number = self.oids[oid] if kind in OF_OBJECTS else 0
            yield operation, number, min(size, _MAX_NUMBER)


def _repeated(loads: Iterable[Operation], operations: Iterable[Operation]) -> list[Operation]:
    """Return the loads of failed attempts, then the other operations of the last attempt.

    A load that was repeated is returned once, with its latest size.
    """
    sizes = {(kind, number): size for kind, number, size in loads}
    others = []
    for kind, number, size in operations:
        if (kind, number) in sizes:
            sizes[kind, number] = size
        else:
            others.append((kind, number, size))
    return [*((kind, number, size) for (kind, number), size in sizes.items()), *others]


class _Objects:
    """Assigns final numbers to objects; initial and created objects are numbered separately."""

    def __init__(self, oids: Sequence[bytes]) -> None:
        self._oids = oids
        self._kinds = array("I", bytes(4 * len(oids)))
        """For each object, its kind as in :class:`InitialObject`; 0 before its first operation."""
        self._sizes = array("I", bytes(4 * len(oids)))
        self._final = array("I", bytes(4 * len(oids)))
        self._stored = bytearray(len(oids))
        self.created_count = self.initial_count = self.transactions = 0
        self.has_blobs = False
        self.nanoseconds = 0
        """The time from the start of the first transaction to the start of the last one."""

    def classify(self, bodies: Iterable[bytes]) -> None:
        """Find the objects that the workload creates: their first operation is a creating store.

        Number these objects in the order of their creation, and initial objects by OID.
        """
        for body in bodies:
            for kind, number, size in _operations(body):
                if kind & ~CREATING_STORE in OF_OBJECTS:
                    self._note(kind, number, size)
        final = self._final
        self.has_blobs = _STORE_BLOB in set(self._kinds)
        initial = [n for n, final_number in enumerate(final) if not final_number & CREATED_OBJECT]
        initial.sort(key=self._oids.__getitem__)
        for final_number, number in enumerate(initial):
            final[number] = final_number
        self.initial_count = len(initial)

    def _note(self, kind: int, number: int, size: int) -> None:
        plain, known = kind & ~CREATING_STORE, self._kinds[number]
        if not known:
            self._kinds[number] = plain
            if kind & CREATING_STORE:
                self._final[number] = CREATED_OBJECT | self.created_count
                self.created_count += 1
        if plain in OF_BLOBS:
            if known != _STORE_BLOB:
                self._kinds[number], self._sizes[number] = _STORE_BLOB, size
        elif plain == _RESOLVABLE and known != _STORE_BLOB:
            self._kinds[number] = _RESOLVABLE
        self._sizes[number] = self._sizes[number] or size
        self._stored[number] |= plain in _STORES

    def numbered(
        self, recorded: Iterable[tuple[int, int, bytes]], ranks: dict[int, int]
    ) -> Iterator[tuple[int, int, int, bytes]]:
        """Return the rows of all transactions, with the final numbers of objects."""
        final = self._final
        first, creations = None, 0
        for started, connection, body in recorded:
            first = started if first is None else first
            flat = array("I", body)
            for at in range(0, len(flat), 3):
                plain = flat[at] & ~CREATING_STORE
                if plain not in OF_OBJECTS:
                    continue
                number = flat[at + 1] = final[flat[at + 1]]
                if flat[at] & CREATING_STORE:
                    if number == CREATED_OBJECT | creations:
                        creations += 1
                    else:  # the object exists already
                        flat[at] = plain
            row = self.transactions, max(0, started - first), ranks[connection], flat.tobytes()
            self.transactions += 1
            self.nanoseconds = max(self.nanoseconds, started - first)
            yield row

    def initial(self) -> Iterator[tuple[int, int, int, int, bytes]]:
        """Return the rows of the objects that existed before the workload."""
        for number, final_number in enumerate(self._final):
            if not final_number & CREATED_OBJECT:
                size, oid = self._sizes[number] or ASSUMED_SIZE, self._oids[number]
                yield final_number, size, self._kinds[number], self._stored[number], oid
