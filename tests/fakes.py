"""A storage whose operations take an exactly known time, on a clock that only they move.

Each kind of operation takes a different power of two, so that a measured time shows how many of
each kind it includes, and so that sums of many are exact.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import ZODB
from ZODB.ConflictResolution import ConflictResolvingStorage
from ZODB.MappingStorage import MappingStorage
from ZODB.POSException import ConflictError, ReadConflictError

from zodbshootout.client.benchmarks.benchmark import Benchmark
from zodbshootout.client.database import Database
from zodbshootout.client.protocol import Clock
from zodbshootout.client.storage_types import StorageType
from zodbshootout.crews.crew import Crew, Sample
from zodbshootout.crews.local import CrewPlan
from zodbshootout.model.specification import ClientKind, CrewShape, Parameters, Storage
from zodbshootout.model.storage_facts import CacheUse, Sharing

LOAD = 1.0
STORE = 2.0**5
NEW_OID = 2.0**10
CHECK = 2.0**14
"""Seconds: confirming that an object is current."""
PREFETCH = 2.0**19
TPC_BEGIN = 2.0**20
TPC_VOTE = 2.0**22
TPC_FINISH = 2.0**24
POLL = 2.0**26
"""Seconds: asking for the last transaction, as a connection does when a transaction begins."""
SYNC = 2.0**28
"""Seconds: the additional sync of a connection when the application begins a transaction."""
COMMIT = TPC_BEGIN + TPC_VOTE + TPC_FINISH
NOTICE = 1.0
"""Seconds between an order to start and the start; adding them needs no rounding."""


class FakeClock:
    """A clock that only ``spend`` advances.  Each client has its own time; all start together."""

    def __init__(self) -> None:
        self._now: Counter[int] = Counter()

    def now(self) -> float:
        if _is_client():
            return float(self._now[threading.get_ident()])
        # The thread that coordinates clients does so while they wait.
        return float(max(self._now.values(), default=0.0))

    def wait_until(self, instant: float) -> None:
        here = threading.get_ident()
        self._now[here] = max(instant, self._now[here])  # type: ignore[assignment]

    def spend(self, seconds: float) -> None:
        self._now[threading.get_ident()] += seconds  # type: ignore[assignment]


def _is_client() -> bool:
    return threading.current_thread().name.startswith("client-")


class FakeStorage(ConflictResolvingStorage, MappingStorage):  # type: ignore[misc]
    """A MappingStorage that spends time, and can be made to misbehave."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__("fake")
        self._crs_untransform_record_data = lambda data: data
        self._crs_transform_record_data = lambda data: data
        self.clock = clock
        self.loads = 0
        self.closed = 0
        """The number of calls of ``close``, after which the storage can still be used."""
        self.resolved: list[bytes] = []
        self.corrupt: Callable[[bytes, bytes], bytes] = lambda oid, data: data
        self.drops: Callable[[bytes], bool] = lambda data: False
        self.resolve: Callable[..., Any] = self.tryToResolveConflict
        """The merge of two changes of one object; ``None`` refuses the second."""
        self.refuses: Callable[[], bool] = lambda: False
        """Whether to refuse a transaction in its vote."""
        self.accepts_stale = False
        """Whether stale objects pass the check that they are current."""
        self.meeting: threading.Barrier | None = None
        """The barrier at which transactions wait for each other before any of them commits."""

    def close(self) -> None:
        self.closed += 1

    def loadBefore(self, oid: bytes, tid: bytes) -> Any:  # noqa: N802
        self.clock.spend(LOAD)
        self.loads += 1
        revision = super().loadBefore(oid, tid)
        return revision and (self.corrupt(oid, revision[0]), *revision[1:])

    def store(self, oid: bytes, serial: bytes, data: bytes, version: str, txn: Any) -> Any:
        self.clock.spend(STORE)
        if self.drops(data):
            return
        revisions = self._data.get(oid)
        if revisions and revisions.maxKey() != serial:
            committed = revisions.maxKey()
            data = self.resolve(oid, committed, serial, data, revisions[committed])
            if data is None:
                raise ConflictError(oid=oid, serials=(committed, serial))
            serial = committed
            self.resolved.append(oid)
        super().store(oid, serial, data, version, txn)

    def checkCurrentSerialInTransaction(self, oid: bytes, serial: bytes, txn: Any) -> None:  # noqa: N802
        self.clock.spend(CHECK)
        if not self.accepts_stale and self._data[oid].maxKey() != serial:
            raise ReadConflictError(oid=oid, serials=(self._data[oid].maxKey(), serial))

    def new_oid(self) -> Any:
        self.clock.spend(NEW_OID)
        return super().new_oid()

    def sync(self) -> None:
        self.clock.spend(SYNC)

    def lastTransaction(self) -> Any:  # noqa: N802
        self.clock.spend(POLL)
        return super().lastTransaction()

    def tpc_begin(self, transaction: Any, tid: Any = None) -> None:
        self.clock.spend(TPC_BEGIN)
        if self.meeting is not None and _is_client():
            with suppress(threading.BrokenBarrierError):
                self.meeting.wait(timeout=0.5)
        super().tpc_begin(transaction, tid)
        self.resolved = []

    def tpc_vote(self, transaction: Any) -> Any:
        self.clock.spend(TPC_VOTE)
        if self.refuses():
            raise ConflictError("refused")
        return self.resolved

    def tpc_finish(self, transaction: Any, func: Any = lambda tid: None) -> Any:
        self.clock.spend(TPC_FINISH)
        return super().tpc_finish(transaction, func)


class Reference(list[Any]):
    """A persistent reference in a state."""


class _Pickler(pickle.Pickler):
    def persistent_id(self, thing: Any) -> Any:
        return thing[0] if isinstance(thing, Reference) else None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, reference: Any) -> Reference:
        return Reference([reference])


def pickled_again(record: bytes) -> bytes:
    """Return a record of the same class and state in other bytes, as zodb-pgjsonb makes it."""
    unpickler = _Unpickler(io.BytesIO(record), encoding="bytes")
    kind, state = unpickler.load(), unpickler.load()
    if isinstance(kind, type):
        kind = (kind.__module__, kind.__name__), None
    return _pickle(kind) + _pickle(state)


def _pickle(thing: Any) -> bytes:
    file = io.BytesIO()
    _Pickler(file, 3).dump(thing)
    return pickletools.optimize(file.getvalue())


class PrefetchingStorage(FakeStorage):
    """A FakeStorage with a prefetch, which spends time and loads nothing."""

    def prefetch(self, oids: Any, tid: bytes) -> None:
        self.clock.spend(PREFETCH)


class CachingStorage(FakeStorage):
    """A FakeStorage with a cache that counts its hits and cannot be emptied."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.cached: set[bytes] = set()
        self.hits = 0

    def loadBefore(self, oid: bytes, tid: bytes) -> Any:  # noqa: N802
        self.hits += oid in self.cached
        self.cached.add(oid)
        return super().loadBefore(oid, tid)


class CachingStorageType(StorageType):
    """The storage type of a CachingStorage."""

    storage_class = "tests.fakes.CachingStorage"
    sharing = Sharing.VOLATILE

    def cache_use(self) -> CacheUse:
        return CacheUse(self.storage.hits, None)


def database_of(storage: Any, cache_size: int = 5000) -> Database:
    """Return a database that opens the same *storage* every time, as clients of a server do."""
    return Database(Storage(), lambda _: ZODB.DB(storage, cache_size=cache_size))


def parameters(
    *,
    size: int = 1,
    shared: bool = False,
    objects: int = 10,
    unit: ClientKind = ClientKind.THREAD,
    **more: Any,
) -> Parameters:
    return Parameters(CrewShape(size, unit, shared), objects=objects, **more)


def plan(
    benchmark: type[Benchmark],
    storage: Any,
    wanted: Parameters,
    clock: Clock,
    cache_size: int = 5000,
) -> CrewPlan:
    """Return the plan of a crew whose clients open *storage*."""
    fitted = benchmark.fitted(wanted)
    return CrewPlan(benchmark, fitted, lambda: database_of(storage, cache_size), clock)


def exactly_started(crew: Crew) -> Crew:
    """Make a crew start at instants that can be added to others without rounding."""
    crew._notice = NOTICE
    return crew


def client_values(sample: Sample) -> list[float]:
    """Return the seconds per iteration of each client."""
    return [sample.on_clock / share if share else 0.0 for share in sample.shares]


def measure(
    benchmark: type[Benchmark],
    storage: Any,
    wanted: Parameters,
    clock: Clock,
    loops: Sequence[int] = (1,),
    cache_size: int = 5000,
) -> list[Sample]:
    """Measure a value for each number of iterations in *loops*, with threads in this process."""
    with plan(benchmark, storage, wanted, clock, cache_size).started() as crew:
        exactly_started(crew)
        return [crew.measure(number) for number in loops]
