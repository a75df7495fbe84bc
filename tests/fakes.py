"""A storage whose operations take an exactly known time, on a clock that only they move.

Each kind of operation takes a different power of ten, so that a measured time tells how many of
each were on the clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import ZODB
from ZODB.MappingStorage import MappingStorage

from zodbshootout.benchmarks.benchmark import Benchmark
from zodbshootout.contenders.contender import Contender
from zodbshootout.engine.measurement import Measurement
from zodbshootout.engine.sample import CrewSample
from zodbshootout.model import CrewShape, Parameters, Unit

LOAD = 1.0
STORE = 1e3
NEW_OID = 1e6
COMMIT = 1e9
"""Seconds: tpc_begin, tpc_vote and tpc_finish take a third each."""


class FakeClock:
    """Stands still but for what is spent; every thread has a time of its own."""

    def __init__(self) -> None:
        self._local = threading.local()

    def __call__(self) -> float:
        return getattr(self._local, "now", 0.0)

    def spend(self, seconds: float) -> None:
        self._local.now = self() + seconds


class FakeStorage(MappingStorage):  # type: ignore[misc]
    """A MappingStorage that spends time, and can be told to misbehave."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__("fake")
        self.clock = clock
        self.loads = 0
        self.corrupt: Callable[[bytes, bytes], bytes] = lambda oid, data: data
        self.drops: Callable[[bytes], bool] = lambda data: False

    def loadBefore(self, oid: bytes, tid: bytes) -> Any:  # noqa: N802
        self.clock.spend(LOAD)
        self.loads += 1
        found = super().loadBefore(oid, tid)
        return found and (self.corrupt(oid, found[0]), *found[1:])

    def store(self, oid: bytes, serial: bytes, data: bytes, version: str, txn: Any) -> Any:
        self.clock.spend(STORE)
        if not self.drops(data):
            super().store(oid, serial, data, version, txn)

    def new_oid(self) -> Any:
        self.clock.spend(NEW_OID)
        return super().new_oid()

    def tpc_begin(self, transaction: Any, tid: Any = None) -> None:
        self.clock.spend(COMMIT / 4)
        super().tpc_begin(transaction, tid)

    def tpc_vote(self, transaction: Any) -> Any:
        self.clock.spend(COMMIT / 4)
        return super().tpc_vote(transaction)

    def tpc_finish(self, transaction: Any, func: Any = lambda tid: None) -> Any:
        self.clock.spend(COMMIT / 2)
        return super().tpc_finish(transaction, func)


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
    with Measurement(benchmark, contender_of(storage, cache_size), of, clock).started() as crew:
        return [crew(number) for number in loops]
