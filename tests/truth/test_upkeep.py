"""Benchmarks of old revisions and of upkeep fail if a storage does something wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import ZODB
from ZODB.FileStorage import FileStorage

from tests.fakes import LOAD, FakeClock, FakeStorage, measure, parameters, plan
from zodbshootout.client import session
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.database import Database
from zodbshootout.client.preparation import fill, populate
from zodbshootout.crews.crew import Sample
from zodbshootout.crews.local import CrewPlan
from zodbshootout.model.outcome import Failed
from zodbshootout.model.specification import Parameters, Storage
from zodbshootout.model.storage_facts import StorageInfo


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    # The clock may stand still while clients poll for orders.
    monkeypatch.setattr(session, "POLL_INTERVAL", 0.0)
    return FakeClock()


@pytest.fixture
def storage(clock: FakeClock) -> FakeStorage:
    return FakeStorage(clock)


def failure_on(storage: FakeStorage, name: str, loops: int = 4, **more: Any) -> str:
    chosen, params = benchmarks()[name], parameters(**more)
    with (
        pytest.raises(Failed) as caught,
        plan(chosen, storage, params, storage.clock).started() as crew,
    ):
        crew.measure(loops)
        crew.verify()
    return str(caught.value)


Fault = Callable[[Any], None]
"""Changes an open FileStorage so that it does something wrong."""


def measure_files(
    place: Path, name: str, loops: int = 3, fault: Fault = lambda storage: None, **more: Any
) -> Sample:
    """Measure a benchmark with a FileStorage in *place*, and have it verified."""
    path = place / "Data.fs"

    opened: list[Any] = []

    def open_db(_: Storage) -> Any:
        storage = FileStorage(str(path), blob_dir=str(place / "blobs"))
        opened.append(storage)
        fault(storage)
        return ZODB.DB(storage)

    benchmark = benchmarks()[name]
    wanted = benchmark.fitted(parameters(shared=True, **more))
    with Database(Storage(), open_db) as database:
        fill(database, wanted)
        populate(database, benchmark.dataset, wanted)
    try:
        with CrewPlan(benchmark, wanted, lambda: Database(Storage(), open_db)).started() as crew:
            sample = crew.measure(loops)
            crew.verify()
    finally:
        for storage in opened:  # a crew that fails closes none
            storage.close()
    return sample


def failure_on_files(place: Path, name: str, fault: Fault, **more: Any) -> str:
    with pytest.raises(Failed) as caught:
        measure_files(place, name, fault=fault, **more)
    return str(caught.value)


def fitted(name: str, **more: Any) -> Parameters:
    return benchmarks()[name].fitted(parameters(**more))


@pytest.mark.parametrize("clients", [1, 3])
@pytest.mark.parametrize("name", ["undo", "history", "load_before"])
@pytest.mark.parametrize("blobs", [False, True])
def test_old_revisions_of_a_filestorage_are_found_and_checked(
    name: str, clients: int, blobs: bool, tmp_path: Path
) -> None:
    sample = measure_files(tmp_path, name, size=clients, blobs=blobs, revisions=4)
    assert sample.iterations == 3 * clients


def test_history_fails_if_a_revision_is_missing(storage: FakeStorage) -> None:
    history = storage.history
    storage.history = lambda oid, size: history(oid, size)[:-1]
    assert failure_on(storage, "history", revisions=3) == (
        "the history of object 0 has 2 revisions that are not the 3 that were committed last"
    )


def test_history_fails_if_the_newest_revision_is_another(storage: FakeStorage) -> None:
    history = storage.history
    storage.history = lambda oid, size: history(oid, 9)[1 : size + 1]
    assert "are not the 3 that were committed last" in failure_on(storage, "history", revisions=3)


def test_load_before_loads_each_old_revision_once(storage: FakeStorage) -> None:
    params = parameters(revisions=3)
    assert benchmarks()["load_before"].most_at_once(params) == 20
    (sample,) = measure(benchmarks()["load_before"], storage, params, storage.clock, [40])
    assert sample.value == LOAD
    assert sample.counts["loads"] == 40


def test_load_before_fails_if_the_newest_revision_is_loaded(storage: FakeStorage) -> None:
    load = storage.loadBefore

    def load_newest(oid: bytes, tid: bytes) -> Any:
        return load(oid, b"\xff" * 8) and (*load(oid, b"\xff" * 8)[:2], None)

    storage.loadBefore = load_newest  # type: ignore[method-assign]
    assert failure_on(storage, "load_before", revisions=3) == (
        "object 0 was not loaded as it was in revision 1 of 3"
    )


def do_nothing(storage: Any) -> None:
    storage.undo = lambda tid, transaction: (None, [])


def test_undo_fails_if_nothing_is_undone(tmp_path: Path) -> None:
    assert "10 of 10 objects hold other data" in failure_on_files(tmp_path, "undo", do_nothing)


def test_undo_fails_if_nothing_is_undone_an_even_number_of_times(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="not of the transaction that was to undo another"):
        measure_files(tmp_path, "undo", 2, do_nothing)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("undo", "RelStorage has no undo, as it is configured here"),
        ("history", "RelStorage keeps no old revisions, as it is configured here"),
        ("load_before", "RelStorage keeps no old revisions, as it is configured here"),
    ],
)
def test_a_storage_without_history_is_refused(name: str, reason: str) -> None:
    info = StorageInfo("RelStorage", keeps_history=False, undoes=False)
    assert benchmarks()[name].refusal(info, parameters()) == reason
    assert benchmarks()[name].refusal(StorageInfo(), parameters()) is None


def test_several_clients_do_not_undo_if_the_storage_refuses_that() -> None:
    info = StorageInfo("RelStorage", undo_flaw="one at a time")
    assert benchmarks()["undo"].refusal(info, parameters(size=2)) == "one at a time; use -c 1"
    assert benchmarks()["undo"].refusal(info, parameters()) is None


def test_only_benchmarks_of_old_revisions_have_a_number_of_them() -> None:
    assert fitted("history", revisions=5).revisions == 5
    assert fitted("load_before", revisions=1).revisions == 2
    assert {fitted(name, revisions=5).revisions for name in ("add", "tpc", "undo", "replay")} == {0}
