"""Latencies before, during and after an operation, and what the operation does."""

from __future__ import annotations

import itertools
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import ZODB
from ZODB.blob import Blob
from ZODB.FileStorage import FileStorage
from ZODB.utils import p64

from tests.fakes import (
    FakeClock,
    FakeStorage,
    exactly_started,
    parameters,
    plan,
)
from tests.truth.queueing import SERVICE, mean_response, serving
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.data.objects import Item, pickled
from zodbshootout.client.database import Database
from zodbshootout.client.operation import BENCHMARK_OF, Operation
from zodbshootout.client.preparation import fill
from zodbshootout.crews.crew import Sample
from zodbshootout.model.outcome import CheckFailed, Unsupported
from zodbshootout.model.specification import Specification, Storage
from zodbshootout.model.storage_facts import Sharing, StorageInfo
from zodbshootout.scheduling.operations import operation_parameters, with_operation

pytestmark = pytest.mark.slow

OF_OBJECTS = parameters(
    objects=50, shared=True, during="pack", min_objects=50, revisions=3, garbage=0.5
)


def slices(stalls: dict[int, float], number: int, size: int, *, continues: bool) -> list[Sample]:
    """Take slices at 100 iterations a second of a millisecond each; some iterations *stall*."""
    clock, iterations = FakeClock(), itertools.count()
    request = serving(clock, lambda: clock.spend(stalls.get(next(iterations), 0.001)))
    params = parameters()
    with plan(request, FakeStorage(clock), params, clock).started() as crew:
        exactly_started(crew)
        return [crew.measure(size, n * size, 100, continues=continues) for n in range(number)]


@pytest.mark.parametrize("rate", [50, 80])
def test_short_slices_that_continue_show_the_queue_of_a_long_one(rate: int) -> None:
    clock = FakeClock()
    request = serving(clock, lambda: clock.spend(SERVICE))
    with plan(request, FakeStorage(clock), parameters(), clock).started() as crew:
        exactly_started(crew)
        samples = [crew.measure(20, 20 * n, rate, continues=True) for n in range(2500)]
    mean = sum(sample.seconds for sample in samples) / sum(sample.done for sample in samples)
    assert mean == pytest.approx(mean_response(rate), rel=0.05)


@pytest.mark.usefixtures("even_arrivals")
def test_iterations_that_a_stall_has_delayed_stay_late_in_the_next_slice() -> None:
    stalled, after = slices({20: 1.0}, 2, 25, continues=True)
    assert stalled.latencies.longest == pytest.approx(1.0)
    # Each iteration is due a hundredth of a second after the one before, and takes a thousandth.
    assert after.latencies.longest == pytest.approx(1.0 - 5 * 0.009)
    assert min(after.latencies.counts) == pytest.approx(1e9 * (1.0 - 29 * 0.009), rel=0.01)


@pytest.mark.usefixtures("even_arrivals")
def test_what_passes_between_two_slices_delays_no_iteration() -> None:
    first, second = slices({}, 2, 25, continues=True)
    assert second.start > first.end
    assert second.latencies.longest == pytest.approx(0.001, rel=1e-3)
    assert (first.uncounted, second.uncounted) == (0, 0)


def on_files(place: Path, fault: Any = lambda storage: None) -> Database:
    def open_db(_: Storage) -> Any:
        storage = FileStorage(str(place / "Data.fs"), blob_dir=str(place / "blobs"))
        fault(storage)
        return ZODB.DB(storage)

    database = Database(Storage(), open_db)
    fill(database, OF_OBJECTS)
    return database


def operated(database: Database, name: str = "pack") -> Operation:
    """Have an operation done beside a connection that stays open, and wait for the end."""
    operating = Operation(lambda: database)
    wanted = operation_parameters(replace(OF_OBJECTS, during=name))
    operating.prepare_operation(Specification(Storage(), name, wanted))
    with database.connected():
        operating.start_operation()
        while operating.operation_times() is None:
            time.sleep(0.01)
    return operating


def test_an_operation_packs_the_shared_db_of_clients_and_leaves_it_open(tmp_path: Path) -> None:
    database = on_files(tmp_path)
    operating = operated(database)
    began, ended = operating.operation_times() or (0.0, 0.0)
    assert 0 < began < ended
    assert operating.finish_operation()["operation_freed_objects"] == 50
    with database.connected() as connection:
        assert connection.root()
    database.close()


def test_an_operation_that_leaves_garbage_is_found_out(tmp_path: Path) -> None:
    def collect_none(storage: Any) -> None:
        packing = storage.pack
        storage.pack = lambda t, referencesf: packing(t, referencesf, gc=False)

    database = on_files(tmp_path, collect_none)
    operating = operated(database)
    with pytest.raises(CheckFailed, match="50 of 50 objects that nothing refers to"):
        operating.finish_operation()
    database.close()


def test_the_failure_of_an_operation_is_raised_where_its_end_is_waited_for(tmp_path: Path) -> None:
    def break_down(storage: Any) -> None:
        def refuse(t: Any, referencesf: Any) -> None:
            raise OSError("disk full")

        storage.pack = refuse

    database = on_files(tmp_path, break_down)
    with pytest.raises(OSError, match="disk full"):
        operated(database)
    database.close()


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of temporary files."""
    path = tmp_path / "scratch"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


LEFT_OPEN = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""A process that fails ends, and closes no iterator."""


def with_a_blob(place: Path, fault: Any = lambda storage: None) -> Database:
    database = on_files(place, fault)
    with database.db.transaction() as connection:
        connection.root()["a blob"] = Blob(b"content")
    return database


def test_an_operation_copies_all_transactions_and_leaves_no_copy(
    scratch: Path, tmp_path: Path
) -> None:
    database = with_a_blob(tmp_path)
    with closing(database.db.storage.iterator()) as transactions:
        records = sum(len(list(transaction)) for transaction in transactions)
    operating = operated(database, "copy")
    assert len(list(scratch.iterdir())) == 1
    with database.db.transaction() as connection:
        connection.root()["newer"] = 1
    counts = operating.finish_operation()
    assert counts["operation_records"] == records > 50
    assert counts["operation_record_bytes"] > 50 * 300
    assert list(scratch.iterdir()) == []
    database.close()


def restoring(fault: Any) -> Any:
    """Return a fault of a storage's copies: *fault* of a record's data is restored."""

    def wrong(storage: Any) -> None:
        iterator = storage.iterator

        def first_wrong(*bounds: Any) -> Any:
            storage.iterator = iterator  # that with which the copy is compared
            for transaction in iterator(*bounds):
                records = [one for one in map(fault, transaction) if one is not None]
                yield TransactionRecord(transaction, records)

        storage.iterator = first_wrong

    return wrong


class TransactionRecord:
    """A transaction with other records."""

    def __init__(self, transaction: Any, records: list[Any]) -> None:
        self._transaction, self._records = transaction, records

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transaction, name)

    def __iter__(self) -> Any:
        return iter(self._records)


def without_the_first_object(record: Any) -> Any:
    return None if record.oid == p64(1) else record


def with_another_record(record: Any) -> Any:
    if record.oid == p64(1):
        record.data = pickled(Item(b"something else"))
    return record


@LEFT_OPEN
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (without_the_first_object, "was not copied"),
        (with_another_record, "copied with different data"),
    ],
)
def test_a_copy_that_lacks_something_is_found_out(
    fault: Any, message: str, scratch: Path, tmp_path: Path
) -> None:
    database = with_a_blob(tmp_path, restoring(fault))
    operating = operated(database, "copy")
    with pytest.raises(CheckFailed, match=rf"revision \w+ of object \w+ (was )?{message}"):
        operating.finish_operation()
    assert list(scratch.iterdir()) == []
    database.close()


@LEFT_OPEN
def test_a_copy_with_another_file_of_a_blob_is_found_out(scratch: Path, tmp_path: Path) -> None:
    database = with_a_blob(tmp_path)
    operating = operated(database, "copy")
    (copy,) = scratch.glob("*/blobs/**/*.blob")
    copy.chmod(0o600)
    copy.write_bytes(b"Content")
    with pytest.raises(
        CheckFailed, match=r"the blob of revision \w+ of object \w+ was copied with"
    ):
        operating.finish_operation()
    database.close()


def test_what_a_storage_without_history_has_lost_meanwhile_may_be_missing(
    scratch: Path, tmp_path: Path
) -> None:
    database = with_a_blob(tmp_path)
    operating = operated(database, "copy")
    storage = database.db.storage
    iterator = storage.iterator
    storage.iterator = lambda *bounds: itertools.islice(iterator(*bounds), 2, None)
    assert operating.finish_operation()["operation_records"] > 0
    database.close()


def test_a_storage_without_an_iterator_cannot_be_copied() -> None:
    facts = StorageInfo("FakeStorage")
    database = SimpleNamespace(db=SimpleNamespace(storage=object()), facts=facts)
    with pytest.raises(Unsupported, match="FakeStorage has no iterator"):
        Operation(lambda: database).prepare_operation(  # type: ignore[arg-type, return-value]
            Specification(Storage(), "copy", OF_OBJECTS)
        )


def test_a_storage_in_memory_cannot_be_copied() -> None:
    info = StorageInfo("MappingStorage", Sharing.VOLATILE)
    assert BENCHMARK_OF["copy"].refusal(info, OF_OBJECTS) == (
        "MappingStorage: ZODB cannot copy transactions that are in memory"
    )
    assert BENCHMARK_OF["copy"].refusal(StorageInfo(read_only=True), OF_OBJECTS) is None


def test_a_database_has_what_the_operation_removes_also_if_the_benchmark_needs_none() -> None:
    requested = parameters(objects=20, revisions=2, garbage=0.1, during="pack", rate=9.0)
    fitted = with_operation(benchmarks()["tpc"].fitted(requested), requested)
    assert (fitted.min_objects, fitted.revisions, fitted.garbage) == (20, 2, 0.1)
    packed = operation_parameters(fitted)
    assert (packed.objects, packed.revisions, packed.garbage) == (20, 2, 0.1)
    assert (packed.crew.size, packed.rate, packed.during) == (1, 0.0, "")
    copied = with_operation(fitted, replace(requested, during="copy", min_objects=30))
    assert (copied.min_objects, copied.revisions, copied.garbage) == (20, 0, 0.0)
