"""Errors that reach clients while a server restarts, and commits that it has lost."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from ZODB.POSException import StorageError

from tests.fakes import (
    FakeClock,
    FakeStorage,
    database_of,
    exactly_started,
    parameters,
    plan,
)
from zodbshootout.client import recovery
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.data.datasets import Dataset, sets_to_read
from zodbshootout.client.preparation import populate
from zodbshootout.client.recovery import Recovered
from zodbshootout.model.outcome import CheckFailed, Failed, Unsupported
from zodbshootout.workers.measuring import Measuring

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("even_arrivals")]

FAILING = 4
"""Attempts to commit that the server refuses while it restarts."""


class RestartedStorage(FakeStorage):
    """A storage whose server is killed when it has acknowledged some commits."""

    def __init__(self, clock: FakeClock, at: int, lose: Callable[[Any], None]) -> None:
        super().__init__(clock)
        self.at, self.lose = at, lose
        self.refused = self.commits = 0
        self.latest: dict[bytes, bytes] = {}
        """The objects of the last transaction, with the ID of that."""

    def tpc_begin(self, transaction: Any, tid: Any = None) -> None:
        if self.commits == self.at and self.refused < FAILING:
            if not self.refused:
                self.lose(self)
            self.refused += 1
            raise StorageError("the server is gone")
        self.stored: list[bytes] = []
        super().tpc_begin(transaction, tid)

    def store(self, oid: bytes, *arguments: Any) -> Any:
        self.stored.append(oid)
        return super().store(oid, *arguments)

    def tpc_finish(self, transaction: Any, func: Any = lambda tid: None) -> Any:
        tid = super().tpc_finish(transaction, func)
        self.commits += bool(self.stored)
        self.latest = dict.fromkeys(self.stored, tid)
        return tid


def lose_nothing(storage: Any) -> None:
    """Keep all commits."""


def lose_the_last_commit(storage: Any) -> None:
    for oid, tid in storage.latest.items():
        del storage._data[oid][tid]
        if not storage._data[oid]:
            del storage._data[oid]


def restarted(
    name: str, lose: Callable[[Any], None], at: int = 40, clock: FakeClock | None = None
) -> Recovered:
    """Have a client do iterations while its server restarts."""
    clock = clock or FakeClock()
    storage = RestartedStorage(clock, at, lose)
    params = parameters(objects=3, rate=1e-9, during="restart")
    with plan(benchmarks()[name], storage, params, clock).started() as crew:
        exactly_started(crew)
        for number in range(6):
            crew.measure(15, 15 * number, 1e-9, continues=True)
        (recovered,) = crew.call("recovered", 0.0)
        crew.verify()
    assert storage.refused == FAILING
    result: Recovered = recovered
    return result


@pytest.mark.parametrize("name", ["update", "add", "store"])
def test_iterations_that_fail_are_repeated_and_no_commit_is_lost(name: str) -> None:
    recovered = restarted(name, lose_nothing)
    assert (recovered.failed, recovered.lost) == (FAILING, 0)
    assert recovered.acknowledged >= 90
    assert len(recovered.ends) == 90


@pytest.mark.parametrize("name", ["update", "store"])
def test_a_server_that_loses_the_last_acknowledged_commit_is_found_out(name: str) -> None:
    recovered = restarted(name, lose_the_last_commit)
    assert (recovered.failed, recovered.lost) == (FAILING, 1)


def test_a_failed_client_is_supplied_for_the_iterations_that_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    supplied: list[int] = []
    add: Any = benchmarks()["add"]
    supply = add.supply

    def noted(benchmark: Any, iterations: int) -> Any:
        supplied.append(iterations)
        return supply(benchmark, iterations)

    monkeypatch.setattr(add, "supply", noted)
    restarted("add", lose_nothing)
    assert supplied == [15] * 3 + [15 - 5] * FAILING + [15] * 3


@pytest.mark.parametrize("error", [CheckFailed("it is wrong"), Unsupported("it has none")])
@pytest.mark.parametrize("sound", [0, 1])
def test_what_no_server_is_to_blame_for_is_not_repeated(
    error: Exception, sound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "PATIENCE", 0.1)
    raised = iter([StorageError("the server is gone")] * sound + [error] * 99)
    attempts: list[int] = []

    class Wrong(benchmarks()["cold"]):  # type: ignore[misc]
        def run(self) -> None:
            attempts.append(1)
            raise next(raised)

    clock = FakeClock()
    params = parameters(objects=3, rate=1e-9, during="restart")
    storage = FakeStorage(clock)
    with database_of(storage) as database:
        populate(database, Dataset.READ, params)
    with (
        pytest.raises(Failed, match=str(error)),
        plan(Wrong, storage, params, clock).started() as crew,
    ):
        exactly_started(crew)
        crew.measure(5, 0, 1e-9, continues=True)
    assert len(attempts) == 1 + sound


def test_cold_reads_go_on_with_other_sets_in_the_next_slice() -> None:
    read: list[int] = []

    class Noting(benchmarks()["cold"]):  # type: ignore[misc]
        def note_set(self, read_set: Any) -> None:
            read.append(read_set.number)
            super().note_set(read_set)

    clock = FakeClock()
    params = parameters(objects=3, rate=1e-9, during="restart")
    storage = FakeStorage(clock)
    with database_of(storage) as database:
        populate(database, Dataset.READ, params)
    sets = sets_to_read(params)
    with plan(Noting, storage, params, clock).started() as crew:
        exactly_started(crew)
        for number in range(3):
            crew.measure(sets // 2 - 1, (sets // 2 - 1) * number, 1e-9, continues=True)
        crew.verify()
    assert len(read) == 3 * (sets // 2 - 1)
    assert read == [number % sets for number in range(len(read))]


def test_a_client_that_fails_does_not_wait_for_those_who_share_its_db() -> None:
    clock = FakeClock()
    storage = FakeStorage(clock)
    params = parameters(size=2, shared=True, objects=3, rate=1e-9, during="restart")
    with database_of(storage) as database:
        populate(database, Dataset.READ, params)
    load, failures = storage.loadBefore, iter([StorageError("the server is gone")])

    def fail_once(oid: bytes, tid: bytes) -> Any:
        if storage.is_restarting and (failure := next(failures, None)):
            raise failure
        return load(oid, tid)

    storage.is_restarting = False
    storage.loadBefore = fail_once  # type: ignore[method-assign]
    with plan(benchmarks()["cold"], storage, params, clock).started() as crew:
        exactly_started(crew)
        storage.is_restarting = True
        crew.measure(5, 0, 1e-9, continues=True)
        clients = crew.call("recovered", 0.0)
        crew.verify()
    assert sorted(client.failed for client in clients) == [0, 1]


def test_connections_are_noted_when_they_are_seen_for_the_first_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = FakeClock()
    times: list[float] = []

    def sockets() -> frozenset[tuple[int, str]]:
        """Return a connection, and from the third time on another one."""
        times.append(clock.now())
        return frozenset({(1, "a")} if len(times) < 3 else {(2, "a")})

    monkeypatch.setattr(recovery, "sockets", sockets)
    recovered = restarted("update", lose_nothing, clock=clock)
    assert recovered.connected == {(1, "a"): times[0], (2, "a"): times[2]}
    assert len(times) == 6 + 1 + 1  # stretches, a repetition, the end


def test_connections_that_were_not_there_before_are_reconnections() -> None:
    first, second, third, late = (1, "a"), (2, "b"), (3, "c"), (4, "d")
    # The clients are threads of one process, and have not looked at the same instants.
    clients = [
        Recovered(0, 5, 0, [], {first: 1.0, second: 2.5, third: 3.0}),
        Recovered(1, 5, 0, [], {first: 1.5, second: 1.9, third: 3.5, late: 9.0}),
    ]
    measuring: Any = SimpleNamespace(_crew=SimpleNamespace(call=lambda *_: clients))
    assert Measuring.recovered(measuring, began=1.7, gone=2.0)["reconnections"] == 2


def test_a_server_that_does_not_come_back_is_the_failure_of_a_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recovery, "PATIENCE", -1.0)
    with pytest.raises(Failed, match="the server is gone"):
        restarted("update", lose_nothing)
