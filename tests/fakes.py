"""A storage whose operations take an exactly known time, on a clock that only they move.

Each kind of operation takes a different power of two, so that a measured time tells how many of
each were on the clock, and sums of many are exact.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import ZODB
from ZODB.ConflictResolution import ConflictResolvingStorage
from ZODB.MappingStorage import MappingStorage
from ZODB.POSException import ConflictError, ReadConflictError

from zodbshootout.benchmarks.benchmark import Benchmark
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.layer import CacheUse, Layer, Sharing
from zodbshootout.engine.measurement import Measurement
from zodbshootout.engine.sample import CrewSample
from zodbshootout.model import CrewShape, Parameters, Unit

LOAD = 1.0
STORE = 2.0**8
NEW_OID = 2.0**16
CHECK = 2.0**24
"""Seconds: confirming that an object is current."""
PREFETCH = 2.0**28
TPC_BEGIN = 2.0**30
TPC_VOTE = 2.0**31
TPC_FINISH = 2.0**32
POLL = 2.0**36
"""Seconds: asking for the last transaction, as a connection does when a transaction begins."""
SYNC = 2.0**37
"""Seconds: what a connection does besides where the application says that one begins."""
COMMIT = TPC_BEGIN + TPC_VOTE + TPC_FINISH


class FakeClock:
    """Stands still but for what is spent.  Threads have a time each; they agree where they meet."""

    def __init__(self) -> None:
        self._now: Counter[int] = Counter()

    def __call__(self) -> float:
        return float(self._now[threading.get_ident()])

    def spend(self, seconds: float) -> None:
        self._now[threading.get_ident()] += seconds  # type: ignore[assignment]

    def agree(self) -> None:
        """Put all threads on the time of the latest; all of them but this one are waiting."""
        latest = max(self._now.values(), default=0)
        for thread in self._now:
            self._now[thread] = latest


class FakeStorage(ConflictResolvingStorage, MappingStorage):  # type: ignore[misc]
    """A MappingStorage that spends time, and can be told to misbehave."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__("fake")
        self._crs_untransform_record_data = lambda data: data
        self._crs_transform_record_data = lambda data: data
        self.clock = clock
        self.loads = 0
        self.resolved: list[bytes] = []
        self.corrupt: Callable[[bytes, bytes], bytes] = lambda oid, data: data
        self.drops: Callable[[bytes], bool] = lambda data: False
        self.resolve: Callable[..., Any] = self.tryToResolveConflict
        """What becomes of two changes of one object; ``None`` refuses the second."""
        self.refuses: Callable[[], bool] = lambda: False
        """Whether a transaction is refused when it comes to its vote."""
        self.accepts_stale = False
        """Whether objects pass for current that are not."""
        self.meeting: threading.Barrier | None = None
        """Where transactions wait for each other before the first of them commits."""

    def loadBefore(self, oid: bytes, tid: bytes) -> Any:  # noqa: N802
        self.clock.spend(LOAD)
        self.loads += 1
        found = super().loadBefore(oid, tid)
        return found and (self.corrupt(oid, found[0]), *found[1:])

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
        if self.meeting is not None and threading.current_thread().name.startswith("client-"):
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


class PrefetchingStorage(FakeStorage):
    """One that can be told of objects before they are read, which makes no difference to it."""

    def prefetch(self, oids: Any, tid: bytes) -> None:
        self.clock.spend(PREFETCH)


class CachingStorage(FakeStorage):
    """One with a cache that counts its hits and cannot be emptied."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.cached: set[bytes] = set()
        self.hits = 0

    def loadBefore(self, oid: bytes, tid: bytes) -> Any:  # noqa: N802
        self.hits += oid in self.cached
        self.cached.add(oid)
        return super().loadBefore(oid, tid)


class CachingLayer(Layer):
    """What is known of a CachingStorage."""

    storage_class = "tests.fakes.CachingStorage"
    sharing = Sharing.VOLATILE

    def empty_cache(self) -> tuple[str, ...]:
        return ("a cache that is not emptied",)

    def cache_use(self) -> CacheUse:
        return CacheUse(self.storage.hits, None)


class FakeSection:
    """Opens one and the same storage every time, as a server's clients would."""

    def __init__(self, storage: Any) -> None:
        self.storage = storage
        self.name = "fake"

    def open(self) -> ZODB.DB:
        return ZODB.DB(self.storage, cache_size=self.cache_size)

    cache_size = 5000


def contender_of(storage: Any, cache_size: int = 5000) -> Contender:
    section = FakeSection(storage)
    section.cache_size = cache_size
    return Contender("fake", section, {})


def parameters(
    *, size: int = 1, shared: bool = False, objects: int = 10, unit: Unit = Unit.THREAD, **more: Any
) -> Parameters:
    return Parameters(CrewShape(size, unit, shared), objects=objects, **more)


def measure(
    benchmark: type[Benchmark],
    storage: Any,
    of: Parameters,
    clock: Callable[[], float],
    loops: Sequence[int] = (1,),
    cache_size: int = 5000,
) -> list[CrewSample]:
    """Measure values of so many loops each with a crew of threads in this process."""
    of = benchmark.fitted(of)
    with Measurement(benchmark, contender_of(storage, cache_size), of, clock).started() as crew:
        return [crew(number) for number in loops]
