from __future__ import annotations

import time
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter, ne
from typing import Any

from ZODB.Connection import TransactionMetaData
from ZODB.POSException import ConflictError, POSKeyError, ReadConflictError
from ZODB.utils import z64

from zodbshootout.client.benchmarks.benchmark import (
    Benchmark,
    CheckFailed,
    Shape,
    Traits,
    Unsupported,
    without_objects,
)
from zodbshootout.client.data.datasets import Dataset
from zodbshootout.client.data.dealer import Dealer, Dealt
from zodbshootout.client.data.filler import blob_file, store_records
from zodbshootout.client.data.objects import is_same_object
from zodbshootout.client.data.sized_records import RecordMaker, belongs_to, record_size, resolves
from zodbshootout.client.data.trace import (
    CREATED_OBJECT,
    CREATING_STORE,
    OF_BLOBS,
    OF_OBJECTS,
    ReplayedTransaction,
    Trace,
)
from zodbshootout.client.data.workload_objects import new_record, oids_of, reserve_created
from zodbshootout.model.specification import Parameters
from zodbshootout.model.storage_facts import StorageInfo
from zodbshootout.recording.chunks import Kind

MAX_ATTEMPTS = 1000
"""The maximum number of attempts at a transaction; if all fail, so does the benchmark."""
PATIENCE = 30.0
"""The maximum number of seconds that a client waits for another one to create an object."""
POLL_INTERVAL = 0.0002
"""Seconds between two checks of whether another client has created an object."""
WARMED = 20_000
"""The maximum number of objects to load, and of transactions to search, when filling caches."""
SETTLED = 0.02
"""The maximum difference between two fractions of hits that count as equal.  The caches are full if
loading the same objects again gives an equal fraction of hits."""
MAX_WARMING = 5
"""The maximum number of times that a client loads the same objects to fill caches."""
KEPT_RECORDS = 1000
"""The maximum number of written records that a client checks at the end.  After each stretch, it
checks about as many loaded records."""

(
    _LOAD, _PREFETCH, _LOAD_BLOB, _NEW_OID, _TPC_BEGIN, _STORE, _RESOLVABLE, _STORE_BLOB,
    _READ_CURRENT, _VOTE, _FINISH, _ABORT,
) = map(int, (
    Kind.LOAD, Kind.PREFETCH, Kind.LOAD_BLOB, Kind.NEW_OID, Kind.TPC_BEGIN, Kind.STORE,
    Kind.STORE_RESOLVABLE, Kind.STORE_BLOB, Kind.READ_CURRENT, Kind.VOTE, Kind.FINISH, Kind.ABORT,
))  # fmt: skip
_STORES = frozenset({_STORE, _RESOLVABLE, _STORE_BLOB})
READ_ONLY, WRITING = "read_only", "writing"
"""The kinds of transactions."""
STEPS = ("begin", "load", "store", "vote", "finish")
"""The steps of a transaction; the benchmark adds up each step's times over all transactions."""
_BEGIN, _LOADING, _STORING, _VOTING, _FINISHING = STEPS
_STEP_OF = {
    _LOAD: _LOADING, _PREFETCH: _LOADING, _LOAD_BLOB: _LOADING, _VOTE: _VOTING,
    _FINISH: _FINISHING, _ABORT: _FINISHING,
}  # fmt: skip

Read = tuple[int, Sequence[bytes]]
"""A kind of operation, and the OIDs of the objects that it is applied to."""
Write = tuple[int, bytes, bytes]
"""A kind of operation, an OID, and a record or the content of a blob."""


@dataclass
class PreparedTransaction:
    """A transaction with its records and OIDs, ready to be replayed."""

    steps: Sequence[tuple[str, Sequence[Read], Sequence[Write]]]
    """The steps in order, each with its operations."""
    writes: Sequence[Write]
    sizes: Sequence[int]
    """The sizes in bytes of the records that the transaction loads."""
    revisions: Sequence[bytes]
    """The OIDs of the existing objects that the transaction stores or confirms.  For this, the
    client must know their latest revisions."""
    created: frozenset[bytes]
    """The OIDs of the objects that the transaction creates."""
    is_writing: bool


class Replay(Benchmark):
    """Replay the transactions of a recorded application (--workload)."""

    name = "replay"
    title = "Replayed Transactions"
    legend = "the recorded calls of the storage, transaction by transaction"
    dataset = Dataset.WORKLOAD
    counted = "transactions"
    topic = "replaying"
    traits = Traits(numbered=True)

    @classmethod
    def fitted(cls, parameters: Parameters) -> Parameters:
        workload = parameters.workload
        # Filler stands in for objects that the workload does not use, so that the storage's index
        # is as large and slow as in the application.  A file of --data already has these objects.
        others = 0 if workload.data else max(0, workload.all_objects - workload.initial_objects)
        parameters = replace(parameters, blobs=False, min_objects=parameters.min_objects or others)
        return replace(
            without_objects(parameters),
            compressibility=parameters.compressibility,
            workload=workload,
        )

    @classmethod
    def refusal(cls, info: StorageInfo, parameters: Parameters) -> str | None:
        if parameters.workload.has_blobs and info.stores_blobs is False:
            return (
                f"the workload has blobs, which {info.storage_name} as configured here does not "
                "store; add a blob-dir"
            )
        return super().refusal(info, parameters)

    @classmethod
    def shape(cls, parameters: Parameters) -> Shape:
        shape = super().shape(parameters)
        return shape._replace(work=1, most_at_once=1000, fewest=1, in_rounds=True)

    def set_up(self) -> None:
        parameters = self.client.parameters
        self.trace = Trace(parameters.workload.path)
        self.maker = RecordMaker(parameters.seed, parameters.compressibility)
        self.changing = self.trace.stored_objects()
        self.dealer = Dealer(parameters, self.client.index)
        self.pace.arrivals = self.dealer.arrivals
        self.retry_flaw = self.client.database.facts.retry_flaw
        self.storage: Any = None
        self.next = 0
        """The number of the next iteration."""
        self.revisions: dict[bytes, bytes] = {}
        """The latest known revisions, by OID, of the objects that an application would
        have in its pickle cache."""
        self.settled: set[tuple[int, int]] = set()
        """The objects that are ready for the replay, as pairs of a pass over the workload and the
        object's number.  An object that the workload creates is ready once it exists.  An object
        that the workload changes is ready once it has the recorded size."""
        self.awaited: set[bytes] = set()
        """The OIDs of the objects that clients create in this stretch."""
        self.written: dict[bytes, tuple[bytes, bytes]] = {}
        """The latest committed revision and record of some objects, by OID; empty records are not
        checked."""
        self.warming: Counter[str] = Counter()
        if self.client.index == 0:
            with self.client.second_connection() as connection:
                reserve_created(connection, parameters)

    def prepare(self) -> None:
        if self.storage is None:
            self.oids = oids_of(self.client.database, self.client.parameters, self.dealer.copy)
            self.storage = self.client.connect()._storage
            self.client.abort()
            self.now = self.pace.now
            self.after_completion = getattr(self.storage, "afterCompletion", lambda: None)
        if self.first is not None and self.first != self.next:
            self.dealer.go_to(self.next, self.first)
            self.next = self.first
            self.settled.clear()
            self._begin()
            self._warm()

    def supply(self, iterations: int) -> int:
        of_all, own = self.dealer.deal(self.trace, self.next, iterations)
        self.next += iterations
        if self.dealer.member == 0:
            self._settle(of_all)
        self.awaited.clear()
        for turn, transaction in of_all:
            for kind, number, _ in transaction.operations:
                if number & CREATED_OBJECT or number in self.changing:
                    self.settled.add((turn, number))
                if kind & CREATING_STORE:
                    self.awaited.add(self.oids.oid(number, turn))
        self.committed: bytes | None = None
        """The revision that the latest transaction committed; :meth:`_note_commit` resets it."""
        self.transactions = [self._prepared(turn, transaction) for turn, transaction in own]
        self.pace.schedule = self.dealer.schedule(of_all, own)
        self.pace.labels = [
            WRITING if transaction.is_writing else READ_ONLY for transaction in self.transactions
        ]
        self.queue = iter(self.transactions)
        self._take_next()
        self.tpc_transaction: TransactionMetaData | None = None
        """The transaction in two-phase commit, or ``None``."""
        self.sizes = array("I")
        """The sizes in bytes of the loaded records, without those that :meth:`_refresh` loads."""
        self.records: list[tuple[bytes, bytes]] = []
        """The OIDs and the records of the first loads in the stretch."""
        self.numbers: Counter[str] = Counter()
        self.seconds = dict.fromkeys(STEPS, 0.0)
        return iterations

    def between(self) -> None:
        self._note_commit()
        self._take_next()

    def _take_next(self) -> None:
        self.current = next(self.queue)
        self.files = {
            oid: blob_file(self.storage, content)
            for kind, oid, content in self.current.writes
            if kind == _STORE_BLOB
        }

    def _note_commit(self) -> None:
        """Note the revisions and records that the latest transaction committed, if any."""
        if self.committed is None:
            return
        for kind, oid, record in self.current.writes:
            self.revisions[oid] = self.committed
            self.written[oid] = self.committed, record if kind == _STORE else b""
        self._forget(self.resolved)
        self.committed = None

    def run(self) -> None:
        self.loads_before = len(self.sizes)
        for _ in range(MAX_ATTEMPTS):
            try:
                self._attempt(self.current)
            except (ConflictError, POSKeyError) as error:
                self._abort()
                if self._is_missing(error):
                    self._wait_for(error)
                elif isinstance(error, POSKeyError):
                    raise
                else:
                    self._check_can_retry()
                    self.numbers["retries"] += 1
            else:
                return
        raise CheckFailed(f"a transaction was refused {MAX_ATTEMPTS} times")

    def _is_missing(self, error: ConflictError | POSKeyError) -> bool:
        """Return whether *error* is about another client's object that is not visible yet."""
        if isinstance(error, ReadConflictError):  # raised for an object newer than the transaction
            return error.oid in self.awaited
        return isinstance(error, POSKeyError) and error.args[0] in self.awaited

    def _check_can_retry(self) -> None:
        if self.retry_flaw is not None:
            raise Unsupported(
                f"{self.retry_flaw}, and transactions of several clients conflict; use -c 1"
            )

    def _attempt(self, transaction: PreparedTransaction) -> None:
        now, seconds = self.now, self.seconds
        self.loads_of_attempt = 0
        start = now()
        self._begin()
        end = now()
        seconds[_BEGIN] += end - start
        for step, reads, writes in transaction.steps:
            start = end
            if step == _LOADING:
                self._read(reads)
            elif step == _STORING:
                self._refresh(transaction.revisions)
                end = now()
                seconds[_LOADING] += end - start
                start = end
                self._store(writes, transaction.created)
            elif step == _VOTING:
                self._vote()
            elif transaction.is_writing:
                self._finish()
            end = now()
            seconds[step] += end - start
        if not transaction.is_writing:
            self._abort()
            seconds[_FINISHING] += now() - end

    def _begin(self) -> None:
        self.storage.sync(True)
        invalidated = self.storage.poll_invalidations()
        if invalidated is None:
            self.revisions.clear()
        else:
            self._forget(invalidated)

    def _read(self, reads: Sequence[Read]) -> None:
        for kind, oids in reads:
            if kind == _LOAD:
                self._load_once(oids)
            elif kind == _LOAD_BLOB:
                self._refresh(oids)
                for oid in oids:
                    self.storage.loadBlob(oid, self.revisions[oid])
            elif hasattr(self.storage, "prefetch"):
                self.storage.prefetch(oids)

    def _load_once(self, oids: Sequence[bytes]) -> None:
        """Load objects, unless an earlier attempt has loaded them and they are unchanged."""
        loaded = len(self.sizes) - self.loads_before
        repeated = min(len(oids), max(0, loaded - self.loads_of_attempt))
        self.loads_of_attempt += len(oids)
        self._refresh(oids[:repeated])
        self._load(oids[repeated:], self.sizes)

    def _load(self, oids: Sequence[bytes], sizes: array[int]) -> None:
        load, note, revisions = self.storage.load, sizes.append, self.revisions
        if len(self.records) < KEPT_RECORDS:
            for oid in oids:
                record, revisions[oid] = load(oid)
                note(len(record))
                self.records.append((oid, record))
            return
        for oid in oids:
            record, revisions[oid] = load(oid)
            note(len(record))

    def _refresh(self, oids: Sequence[bytes]) -> None:
        """Load the objects whose latest revision is unknown because they were invalidated."""
        unknown = [oid for oid in oids if oid not in self.revisions]
        if unknown:
            self._load(unknown, array("I"))
            self.numbers["extra_loads"] += len(unknown)

    def _store(self, writes: Sequence[Write], created: frozenset[bytes]) -> None:
        storage, revisions, transaction = self.storage, self.revisions, self.tpc_transaction
        for kind, oid, record in writes:
            if kind == _NEW_OID:
                storage.new_oid()
            elif kind == _TPC_BEGIN:
                transaction = self.tpc_transaction = TransactionMetaData()
                storage.tpc_begin(transaction)
            elif kind == _READ_CURRENT:
                storage.checkCurrentSerialInTransaction(oid, revisions[oid], transaction)
            else:
                revision = z64 if oid in created else revisions[oid]
                if kind == _STORE_BLOB:
                    file = self.files.pop(oid, None) or blob_file(storage, record)
                    blob = self.maker.blob_record
                    storage.storeBlob(oid, revision, blob, file, "", transaction)
                else:
                    storage.store(oid, revision, record, "", transaction)

    def _vote(self) -> None:
        self.resolved = list(self.storage.tpc_vote(self.tpc_transaction) or ())
        self.numbers["resolutions"] += len(self.resolved)

    def _finish(self) -> None:
        self.committed = self.storage.tpc_finish(self.tpc_transaction)
        self.tpc_transaction = None
        self.after_completion()
        self.numbers["commits"] += 1

    def _abort(self) -> None:
        if self.tpc_transaction is not None:
            self.storage.tpc_abort(self.tpc_transaction)
            self.tpc_transaction = None
            # Invalidate the changed objects, as a connection does.
            self._forget(self.current.revisions)
        self.after_completion()

    def _forget(self, oids: Iterable[bytes]) -> None:
        """Forget the revisions of objects, so that they are loaded again before they are stored."""
        for oid in oids:
            self.revisions.pop(oid, None)

    def _wait_for(self, error: ConflictError | POSKeyError) -> None:
        """Wait, up to :data:`PATIENCE`, until another client has created the missing object."""
        oid = error.oid if isinstance(error, ConflictError) else error.args[0]
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            time.sleep(POLL_INTERVAL)
            self._begin()
            with suppress(POSKeyError, ReadConflictError):
                self.storage.load(oid)
                self.numbers["waits"] += 1
                self.pace.waited_until = self.now()
                return
        raise CheckFailed(f"another client should have created object {oid.hex()}, but did not")

    def check(self, done: int) -> None:  # noqa: ARG002
        self._note_commit()
        expected = [size for transaction in self.transactions for size in transaction.sizes]
        commits = sum(transaction.is_writing for transaction in self.transactions)
        if (self.numbers["commits"], len(self.sizes)) != (commits, len(expected)):
            raise CheckFailed(
                f"{self.numbers['commits']} commits and {len(self.sizes)} loads, where {commits} "
                f"commits and {len(expected)} loads were recorded"
            )
        is_synthetic = not self.client.parameters.workload.data
        for oid, record in self.records if is_synthetic else []:
            if not belongs_to(record, oid) and not is_same_object(record, self.maker.blob_record):
                raise CheckFailed(f"the record of object {oid.hex()} is not one of those stored")
        self.count(
            loads=len(self.sizes) + self.numbers["extra_loads"],
            extra_loads=self.numbers["extra_loads"],
            loads_of_other_size=sum(map(ne, self.sizes, expected)),
            conflicts=self.numbers["retries"] + self.numbers["resolutions"],
            resolutions=self.numbers["resolutions"],
            retries=self.numbers["retries"],
            waits=self.numbers["waits"],
            commits=commits,
            **{f"{step}_ns": round(seconds * 1e9) for step, seconds in self.seconds.items()},
            **self.warming,
        )
        self.warming.clear()
        while len(self.written) > KEPT_RECORDS:
            del self.written[next(iter(self.written))]

    def verify(self) -> None:
        with self.client.fresh_connection() as connection:
            connection.prefetch(list(self.written))
            for oid, (revision, record) in self.written.items():
                stored, serial = connection._storage.load(oid)
                is_changed = serial == revision and record and not is_same_object(stored, record)
                if serial < revision or is_changed:
                    raise CheckFailed(
                        f"object {oid.hex()} does not have the record that was committed last"
                    )

    def tear_down(self) -> None:
        self.trace.close()
        super().tear_down()

    def _prepared(self, turn: int, transaction: ReplayedTransaction) -> PreparedTransaction:
        operations: list[Write] = []
        sizes: list[int] = []
        revisions: dict[bytes, None] = {}
        created = set()
        for kind, number, size in transaction.operations:
            plain = kind & ~CREATING_STORE
            oid = self.oids.oid(number, turn) if plain in OF_OBJECTS else b""
            if kind & CREATING_STORE:
                created.add(oid)
            elif plain in _STORES or plain == _READ_CURRENT:
                revisions[oid] = None
            if plain == _LOAD:
                sizes.append(record_size(size))
            record = b""
            if plain in _STORES:
                new = new_record(self.maker, plain, oid, size)
                record = new.record if new.blob is None else new.blob
            operations.append((plain, oid, record))
        return PreparedTransaction(
            steps=list(_steps(operations)),
            writes=[write for write in operations if write[0] in _STORES],
            sizes=sizes,
            revisions=[oid for oid in revisions if oid not in created],
            created=frozenset(created),
            is_writing=_FINISH in {kind for kind, _, _ in operations},
        )

    def _settle(self, transactions: Sequence[Dealt]) -> None:
        """Bring the objects of *transactions* into the state in which the recording found them."""
        missing, sizes = self._requirements(transactions)
        self._begin()
        batch = [new_record(self.maker, kind, oid, size) for oid, (kind, size) in missing.items()]
        for oid, size in sizes.items():
            record, revision = self.storage.load(oid)
            self.revisions[oid] = revision
            if len(record) != record_size(size):
                kind = _RESOLVABLE if resolves(record) else _STORE
                new = new_record(self.maker, kind, oid, size)
                batch.append(new._replace(revision=revision))
        if batch:
            store_records(self.storage, batch)
            self._forget([oid for oid, *_ in batch])

    def _requirements(
        self, transactions: Sequence[Dealt]
    ) -> tuple[dict[bytes, tuple[int, int]], dict[bytes, int]]:
        """Return what the transactions need, as two dictionaries with OIDs as keys.

        The first has the kind and the size of each missing object.  The second has the size that
        an existing object must have.
        """
        missing: dict[bytes, tuple[int, int]] = {}
        sizes: dict[bytes, int] = {}
        done = set(self.settled)
        for turn, transaction in transactions:
            for kind, number, size in transaction.operations:
                if kind & CREATING_STORE:
                    done.add((turn, number))
                if (turn, number) in done:
                    continue
                oid = self.oids.oid(number, turn)
                if number & CREATED_OBJECT:
                    earlier = missing.get(oid, (kind, size))
                    missing[oid] = (kind, size) if kind in OF_BLOBS else earlier
                elif number in self.changing:
                    done.add((turn, number))
                    if kind == _LOAD:
                        sizes.setdefault(oid, size)
        return missing, sizes

    def _warm(self) -> None:
        """Load the most recently used objects, repeatedly until the caches are full.

        The loads are in the order of the last uses, because the order decides what a cache keeps.
        """
        oids = [self.oids.oid(number, 0) for number in reversed(self._recent())]
        if not oids:
            return
        self.records = []
        served = -1.0
        for _ in range(MAX_WARMING):
            before = self.client.database.cache_use()
            self._load(oids, array("I"))
            after = self.client.database.cache_use()
            if before is None or after is None:
                return
            hits = min(len(oids), after.since(before).hits)
            self.warming["warming_hits"], self.warming["warming_loads"] = hits, len(oids)
            if abs(hits / len(oids) - served) <= SETTLED:
                return
            served = hits / len(oids)

    def _recent(self) -> list[int]:
        """Return the numbers of objects in the client's preceding transactions, latest first."""
        recent: dict[int, None] = {}
        for transaction in self.dealer.before(self.trace, self.next, WARMED):
            for kind, number, _ in reversed(transaction.operations):
                if kind & ~CREATING_STORE in OF_OBJECTS and not number & CREATED_OBJECT:
                    recent.setdefault(number)
            if len(recent) >= WARMED:
                break
        return list(recent)


def _steps(
    operations: Sequence[Write],
) -> Iterator[tuple[str, Sequence[Read], Sequence[Write]]]:
    for step, group in groupby(operations, lambda write: _STEP_OF.get(write[0], _STORING)):
        writes = list(group)
        reads = [
            (kind, [oid for _, oid, _ in of_kind])
            for kind, of_kind in groupby(writes, itemgetter(0))
            if step == _LOADING
        ]
        yield step, reads, writes


BENCHMARKS = (Replay,)
