"""No client starts before all are ready, and the spread of their starts is reported."""

from __future__ import annotations

import multiprocessing
import threading
import time
from typing import Any

import pytest
import ZODB

from tests.fakes import (
    NOTICE,
    FakeClock,
    FakeStorage,
    exactly_started,
    measure,
    parameters,
    plan,
)
from zodbshootout.client.benchmarks.benchmark import Benchmark
from zodbshootout.client.database import Database
from zodbshootout.client.protocol import SystemClock
from zodbshootout.crews.crew import MAX_LATENESS
from zodbshootout.crews.local import CrewPlan
from zodbshootout.model.specification import ClientKind, Storage
from zodbshootout.workers.summary import summarize

pytestmark = pytest.mark.slow

CLIENTS = 20


def in_memory() -> Database:
    return Database(Storage(), lambda _: ZODB.DB(None))


def noting(ready: Any, started: Any, iterations: Any) -> type[Benchmark]:
    """Return a benchmark whose clients with higher numbers take longer to get ready."""

    class Noting(Benchmark):
        name = "noting"
        title = "Noting"
        dataset = None

        def prepare(self) -> None:
            time.sleep(0.005 * self.client.index)

        def supply(self, iterations: int) -> int:
            if not ready[self.client.index]:
                ready[self.client.index] = time.perf_counter()
            return iterations

        def run(self) -> None:
            if not started[self.client.index]:
                started[self.client.index] = time.perf_counter()
            iterations[self.client.index] += self.timed
            time.sleep(0.001)

    return Noting


@pytest.mark.parametrize(
    ("unit", "shared"),
    [(ClientKind.PROCESS, False), (ClientKind.THREAD, True), (ClientKind.THREAD, False)],
)
def test_trap_5_no_client_of_20_starts_before_the_last_is_ready(
    unit: ClientKind, shared: bool
) -> None:
    fork = multiprocessing.get_context("fork")
    ready, started = fork.Array("d", CLIENTS), fork.Array("d", CLIENTS)
    iterations = fork.Array("i", CLIENTS)
    params = parameters(size=CLIENTS, unit=unit, shared=shared, objects=2)
    with CrewPlan(noting(ready, started, iterations), params, in_memory).started() as crew:
        sample = crew.measure(3)
    assert min(started[:]) >= max(ready[:]) > 0
    assert sample.start >= max(ready[:])
    assert iterations[:] == [3] * CLIENTS
    assert sample.iterations == 3 * CLIENTS


LATE_NOTICE, LATE_RUN = 8.0, 32.0


class Late(FakeClock):
    """A clock on which client 2 gets a processor late and client 1 receives the start late."""

    def __init__(self) -> None:
        super().__init__()
        self.has_received = False

    def now(self) -> float:
        # Client 1 first reads the clock after it has received the start.
        if not self.has_received and threading.current_thread().name == "client-1":
            self.has_received = True
            self.spend(NOTICE + LATE_NOTICE)
        return super().now()

    def wait_until(self, instant: float) -> None:
        late = LATE_RUN if threading.current_thread().name == "client-2" else 0.0
        super().wait_until(max(instant, self.now()) + late)


class Still(Benchmark):
    """A benchmark whose iteration takes a second."""

    name = "still"
    title = "Still"
    dataset = None
    clock: Late

    def run(self) -> None:
        self.clock.spend(1.0)


def test_a_late_notice_of_the_start_and_a_late_processor_are_reported() -> None:
    Still.clock = clock = Late()
    (sample,) = measure(Still, FakeStorage(FakeClock()), parameters(size=3), clock, [4])
    assert sample.start_spread == LATE_NOTICE
    assert sample.start_delay == LATE_RUN
    summary = summarize([sample], [0])
    assert (summary["start_spread_s"], summary["start_delay_s"]) == (LATE_NOTICE, LATE_RUN)


def test_a_stall_does_not_delay_the_later_starts_of_a_run() -> None:
    Still.clock = clock = Late()
    started = plan(Still, FakeStorage(FakeClock()), parameters(size=3), clock)
    with started.started() as crew:
        exactly_started(crew)
        assert crew.measure(4).start_spread == LATE_NOTICE
        notices = []
        for _ in range(100):
            before = clock.now()
            sample = crew.measure(4)
            notices.append(sample.start - before)
            assert sample.start_spread == 0.0
    assert NOTICE < notices[0] <= NOTICE + MAX_LATENESS
    assert notices == sorted(notices, reverse=True)
    assert notices[-1] == pytest.approx(NOTICE, abs=0.01 * MAX_LATENESS)
    assert sum(notices) - 100 * NOTICE <= LATE_NOTICE


def test_a_slow_machine_gets_the_notice_that_it_needs() -> None:
    slow = 0.125

    class Hearing(FakeClock):
        """A clock on which the client receives every start late."""

        received = True

        def now(self) -> float:
            if not self.received and threading.current_thread().name == "client-0":
                self.received = True
                self.spend(NOTICE + slow)
            return super().now()

    class Prepared(Still):
        def prepare(self) -> None:
            clock.received = False

    Still.clock = clock = Hearing()  # type: ignore[assignment]
    with plan(Prepared, FakeStorage(FakeClock()), parameters(size=2), clock).started() as crew:
        exactly_started(crew)
        spreads = [crew.measure(1).start_spread for _ in range(100)]
    assert spreads[0] == slow
    assert spreads[5] < 0.5 * slow
    assert max(spreads[30:]) <= 0.1 * slow


def test_a_client_waits_on_the_system_clock_until_the_instant_or_later() -> None:
    clock = SystemClock()
    for wait in (0.0, 0.0001, 0.002, -1.0):
        instant = clock.now() + wait
        clock.wait_until(instant)
        assert clock.now() >= instant
