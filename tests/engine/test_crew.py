from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import Counter
from typing import Any

import pytest

from tests.fakes import (
    FakeClock,
    FakeSection,
    FakeStorage,
    contender_of,
    measure,
    parameters,
)
from zodbshootout.benchmarks.benchmark import Benchmark
from zodbshootout.benchmarks.client import Client
from zodbshootout.benchmarks.registry import benchmarks
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.database import Database
from zodbshootout.data.tree import Purpose
from zodbshootout.engine.crew import CrewFailed
from zodbshootout.engine.measurement import Measurement
from zodbshootout.engine.planting import plant
from zodbshootout.engine.processes import ProcessCrew
from zodbshootout.engine.threads import Rendezvous
from zodbshootout.guardian import manner_of_end
from zodbshootout.model import Unit


class Slow(Benchmark):
    """Clients that take longer to get ready, and longer to finish, the higher their number."""

    name = "slow"
    title = "Slow"
    purpose = Purpose.READ

    def begin(self) -> None:
        time.sleep(0.02 * self.client.index)

    def run(self) -> None:
        time.sleep(0.001 + 0.002 * self.client.index)


class Deadly(Slow):
    def run(self) -> None:
        if self.client.index == 1 and self.clocked:
            os.kill(os.getpid(), signal.SIGKILL)


class Leaving(Slow):
    def set_up(self) -> None:
        os._exit(7)


def crew_of_processes(benchmark: type[Benchmark], size: int) -> ProcessCrew:
    of = parameters(size=size, unit=Unit.PROCESS)

    def open_benchmark(index: int) -> Benchmark:
        database = Database(contender_of(FakeStorage(FakeClock())))
        return benchmark(Client(index, of, database))

    return ProcessCrew(size, open_benchmark, time.perf_counter)


def test_every_client_goes_on_until_the_last_has_finished() -> None:
    iterations = []

    class Counting(Slow):
        def run(self) -> None:
            super().run()
            if self.client.index == 0 and not self.clocked:
                iterations.append(1)

    clock = time.perf_counter
    (sample,) = measure(
        Counting, FakeStorage(FakeClock()), parameters(size=3, shared=True), clock, [10]
    )
    assert [client.iterations for client in sample.clients] == [10, 10, 10]
    assert len(iterations) > 1  # one before the start line, the others after the clocked ones


def test_a_client_that_could_obstruct_others_goes_on_for_as_long_as_it_was_measured() -> None:
    iterations: Counter[int] = Counter()

    class Obstructing(Slow):
        obstructs = True

        def run(self) -> None:
            super().run()
            iterations[self.client.index] += 1

    of = parameters(size=3, shared=True)
    measure(Obstructing, FakeStorage(FakeClock()), of, time.perf_counter, [4])
    # One before the start line, four on the clock, and at most four after that.
    assert iterations[0] <= 1 + 4 + 4


def test_a_killed_client_is_named_with_the_signal() -> None:
    expected = pytest.raises(CrewFailed, match=r"client 1 \(pid \d+\) was killed by SIGKILL")
    with expected, crew_of_processes(Deadly, 3) as crew:
        crew.measure(3)


def test_a_client_that_ends_before_it_is_set_up_is_noticed() -> None:
    expected = pytest.raises(CrewFailed, match=r"client \d \(pid \d+\) ended with exit status 7")
    with expected, crew_of_processes(Leaving, 2):
        pytest.fail("the crew cannot be complete")


def test_trap_16_clients_are_forked_from_a_process_that_has_opened_nothing() -> None:
    openers = multiprocessing.get_context("fork").Queue()

    class Telling(FakeSection):
        def open(self) -> Any:
            openers.put(os.getpid())
            return super().open()

    storage = FakeStorage(FakeClock())
    contender = Contender("fake", Telling(storage), {})
    of = parameters(size=3, unit=Unit.PROCESS, objects=2)
    with Measurement(benchmarks()["add"], contender, of).started() as crew:
        crew(1)
    pids = {openers.get(timeout=30) for _ in range(3)}
    assert len(pids) == 3
    assert os.getpid() not in pids
    assert openers.empty()


def test_no_process_is_left_of_a_crew_that_failed() -> None:
    crew = crew_of_processes(Deadly, 3)
    pids: list[int | None] = []
    with pytest.raises(CrewFailed), crew:
        pids.extend(process.pid for process in crew._processes)
        crew.measure(3)
    assert len(pids) == 3
    for pid in pids:
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_the_manner_of_an_end_is_told() -> None:
    assert manner_of_end(-9) == "was killed by SIGKILL"
    assert manner_of_end(3) == "ended with exit status 3"
    assert manner_of_end(None) == "no longer answers"


def test_all_who_meet_get_the_result_of_the_one_who_acts() -> None:
    meet = Rendezvous(1)
    assert meet(lambda: "done") == "done"


@pytest.mark.parametrize("shared", [True, False])
def test_between_getting_ready_and_the_clock_no_client_has_its_database_open(
    shared: bool,
) -> None:
    opened: list[int] = []
    during_interludes: list[int] = []
    pooled: list[int] = []

    class Looking(benchmarks()["cold"]):  # type: ignore[misc]
        def prepare(self) -> None:
            super().prepare()
            pooled.append(len(list(self.client.database.db.pool)))

    class Counting(FakeSection):
        def open(self) -> Any:
            db = super().open()
            opened.append(1)
            db.close = opened.pop  # a storage in memory cannot be opened again
            return db

    clock = FakeClock()
    of = parameters(size=3, shared=shared)
    storage = FakeStorage(clock)
    plant(Database(contender_of(storage)), Purpose.READ, of)
    measurement = Measurement(
        Looking,
        Contender("fake", Counting(storage), {}),
        of,
        clock,
        interlude=lambda: during_interludes.append(len(opened)),
    )
    with measurement.started() as crew:
        samples = [crew(1), crew(1)]
    assert during_interludes == [0, 0]
    assert opened == []
    # Each connects once before the clock starts, and none has to then.
    clients = 3 if shared else 1
    assert pooled[-1] >= clients
    assert [sample.counts()["loads"] for sample in samples] == [3 * 11, 3 * 11]


def test_planting_twice_writes_once() -> None:
    storage = FakeStorage(FakeClock())
    of = parameters(size=2, shared=True)
    with Database(contender_of(storage)) as database:
        plant(database, Purpose.READ, of)
        size = len(storage)
        plant(database, Purpose.READ, of)
        assert len(storage) == size


def test_shared_reading_counts_the_cache_use_of_all_once() -> None:
    clock = FakeClock()
    (sample,) = measure(
        benchmarks()["warm"], FakeStorage(clock), parameters(size=3, shared=True), clock, [2]
    )
    assert sample.counts() == {"loads": 3 * 2 * 11}
