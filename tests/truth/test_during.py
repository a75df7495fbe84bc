"""Latencies before, during and after an operation, and what the operation does."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import pytest
import ZODB
from ZODB.FileStorage import FileStorage

from tests.fakes import FakeClock, FakeStorage, exactly_started, parameters, plan
from tests.truth.test_rates import SERVICE, mean_response, serving
from zodbshootout.client import operation
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.database import Database
from zodbshootout.client.operation import Operation
from zodbshootout.client.preparation import fill
from zodbshootout.crews.crew import Sample
from zodbshootout.model.outcome import CheckFailed
from zodbshootout.model.specification import Specification, Storage
from zodbshootout.scheduling.operations import operation_parameters, with_operation

OF_OBJECTS = parameters(
    objects=50, shared=True, during="before pack", min_objects=50, revisions=3, garbage=0.5
)


def slices(stalls: dict[int, float], number: int, size: int, *, continues: bool) -> list[Sample]:
    """Take slices at 100 iterations a second of a millisecond each; some iterations *stall*."""
    clock, iterations = FakeClock(), itertools.count()
    request = serving(clock, lambda: clock.spend(stalls.get(next(iterations), 0.001)))
    params = parameters(even_arrivals=True)
    with plan(request, FakeStorage(clock), params, clock).started() as crew:
        exactly_started(crew)
        return [crew.measure(size, n * size, 100, continues=continues) for n in range(number)]


@pytest.mark.parametrize("rate", [50, 80])
def test_short_slices_that_continue_show_the_queue_of_a_long_one(rate: int) -> None:
    clock = FakeClock()
    request = serving(clock, lambda: clock.spend(SERVICE))
    with plan(request, FakeStorage(clock), parameters(), clock).started() as crew:
        exactly_started(crew)
        samples = [crew.measure(20, 20 * n, rate, continues=True) for n in range(5000)]
    mean = sum(sample.seconds for sample in samples) / sum(sample.done for sample in samples)
    assert mean == pytest.approx(mean_response(rate), rel=0.05)


def test_iterations_that_a_stall_has_delayed_stay_late_in_the_next_slice() -> None:
    stalled, after = slices({20: 1.0}, 2, 25, continues=True)
    assert stalled.latencies.longest == pytest.approx(1.0)
    # Each iteration is due a hundredth of a second after the one before, and takes a thousandth.
    assert after.latencies.longest == pytest.approx(1.0 - 5 * 0.009)
    assert min(after.latencies.counts) == pytest.approx(1e9 * (1.0 - 29 * 0.009), rel=0.01)


def test_what_passes_between_two_slices_delays_no_iteration() -> None:
    first, second = slices({}, 2, 25, continues=True)
    assert second.start > first.end
    assert second.latencies.longest == pytest.approx(0.001, rel=1e-3)
    assert (first.uncounted, second.uncounted) == (0, 0)


def on_files(place: Path, fault: Any = lambda storage: None) -> Database:
    def open_db(_: Storage) -> Any:
        storage = FileStorage(str(place / "Data.fs"))
        fault(storage)
        return ZODB.DB(storage)

    database = Database(Storage(), open_db)
    fill(database, OF_OBJECTS)
    return database


def pack(database: Database) -> Operation:
    """Pack beside a connection that stays open, and wait for the end."""
    operating = Operation(database)
    operating.prepare_operation(Specification(Storage(), "pack", operation_parameters(OF_OBJECTS)))
    with database.connected():
        operating.start_operation()
        while operating.operation_times() is None:
            time.sleep(0.01)
    return operating


def test_an_operation_packs_the_shared_db_of_clients_and_leaves_it_open(tmp_path: Path) -> None:
    database = on_files(tmp_path)
    operating = pack(database)
    began, ended = operating.operation_times() or (0.0, 0.0)
    assert 0 < began < ended
    assert operating.finish_operation()["freed_objects"] == 50
    with database.connected() as connection:
        assert connection.root()
    database.close()


def test_an_operation_that_leaves_garbage_is_found_out(tmp_path: Path) -> None:
    def collect_none(storage: Any) -> None:
        packing = storage.pack
        storage.pack = lambda t, referencesf: packing(t, referencesf, gc=False)

    database = on_files(tmp_path, collect_none)
    operating = pack(database)
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
        pack(database)
    database.close()


def test_a_benchmark_of_another_environment_cannot_be_an_operation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(operation, "benchmarks", dict)
    with pytest.raises(Exception, match="pack is not installed in its environment"):
        Operation().prepare_operation(Specification(Storage(), "pack", OF_OBJECTS))


def test_a_database_has_what_the_operation_removes_also_if_the_benchmark_needs_none() -> None:
    requested = parameters(objects=20, revisions=2, garbage=0.1, during="pack", rate=9.0)
    fitted = with_operation(benchmarks()["tpc"].fitted(requested), requested)
    assert (fitted.min_objects, fitted.revisions, fitted.garbage) == (20, 2, 0.1)
    packed = operation_parameters(fitted)
    assert (packed.objects, packed.revisions, packed.garbage) == (20, 2, 0.1)
    assert (packed.crew.size, packed.rate, packed.during) == (1, 0.0, "")
