"""A storage that does something wrong makes its cell fail, with a message that says what."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fakes import FakeClock, FakeStorage, measure, parameters
from zodbshootout.benchmarks.benchmark import CheckFailed
from zodbshootout.benchmarks.reading import Reading, check_contents, read
from zodbshootout.benchmarks.registry import benchmarks
from zodbshootout.data.records import payload
from zodbshootout.engine.crew import CrewFailed


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def storage(clock: FakeClock) -> FakeStorage:
    return FakeStorage(clock)


def failure(name: str, storage: FakeStorage, *, shared: bool = False) -> str:
    with pytest.raises(CrewFailed) as caught:
        measure(benchmarks()[name], storage, parameters(shared=shared), storage.clock, [1, 1])
    return str(caught.value)


def flipping(position: int) -> Callable[[bytes, bytes], bytes]:
    content = payload(parameters(), 0).content(position, revision=0)
    return lambda oid, data: data.replace(content, bytes(len(content)))


@pytest.mark.parametrize("name", ["cold", "hot"])
def test_wrong_data_read(name: str, storage: FakeStorage) -> None:
    storage.corrupt = flipping(3)
    assert failure(name, storage) == (
        "1 of 10 objects hold other data than was written, the first of them object 3"
    )


def test_wrong_data_read_while_hot_in_the_pickle_cache(storage: FakeStorage) -> None:
    storage.corrupt = flipping(3)
    assert "1 of 10 objects hold other data" in failure("steamin", storage)


def test_a_dropped_store_of_an_added_object(storage: FakeStorage) -> None:
    content = payload(parameters(), 0).content(4, revision=0)
    storage.drops = lambda data: content in data
    assert failure("add", storage).startswith("POSKeyError")


def test_a_dropped_update(storage: FakeStorage) -> None:
    contents = [payload(parameters(), 0).content(4, revision) for revision in (1, 2)]
    storage.drops = lambda data: any(content in data for content in contents)
    assert failure("update", storage) == (
        "1 of 10 objects hold other data than was written, the first of them object 4"
    )


def test_an_added_object_that_comes_back_changed(storage: FakeStorage) -> None:
    content = payload(parameters(), 0).content(4, revision=0)
    storage.corrupt = lambda oid, data: data.replace(content, bytes(len(content)))
    assert "holds other data than was added" in failure("add", storage)


def test_a_load_during_steamin(storage: FakeStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_after_a_load(benchmark: Reading) -> None:
        next(iter(benchmark.mapping.values()))._p_deactivate()
        benchmark.bytes_read = read(benchmark.mapping)

    monkeypatch.setattr(Reading, "read", read_after_a_load)
    assert failure("steamin", storage) == "the connection loaded 50 objects where 0 were due"


def test_a_cold_read_served_from_the_pickle_cache(
    storage: FakeStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmarks()["cold"], "empty", lambda benchmark: ())
    assert failure("cold", storage) == "the connection loaded 0 objects where 11 were due"


def test_missing_objects_are_told_from_changed_ones() -> None:
    with pytest.raises(CheckFailed, match="found 1 objects where 2 were written"):
        check_contents([b"a"], [b"a", b"b"])


def test_a_storage_without_prefetch_is_unsupported_and_not_failed(storage: FakeStorage) -> None:
    with pytest.raises(CrewFailed) as caught:
        measure(benchmarks()["prefetch_cold"], storage, parameters(), storage.clock)
    assert caught.value.failure.unsupported
    assert caught.value.failure.cause == "FakeStorage has no prefetch"


def test_the_failure_of_one_client_is_told_rather_than_the_broken_wait_of_the_others(
    storage: FakeStorage,
) -> None:
    storage.corrupt = flipping(3)
    with pytest.raises(CrewFailed, match="object 3"):
        measure(benchmarks()["cold"], storage, parameters(size=4, shared=True), storage.clock, [5])
