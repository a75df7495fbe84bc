from __future__ import annotations

from typing import Any

import pytest
import ZODB
from transaction import TransactionManager
from ZODB.utils import u64

from tests.client.data.counting import CountingStorage
from tests.fakes import parameters
from zodbshootout.client.data import filler
from zodbshootout.client.data.datasets import TOP
from zodbshootout.client.data.filler import fill_up, filled
from zodbshootout.client.data.objects import Item


@pytest.fixture
def storage() -> CountingStorage:
    return CountingStorage()


def fill(db: ZODB.DB, objects: int, **more: Any) -> int:
    transactions = TransactionManager(explicit=True)
    connection = db.open(transactions)
    transactions.begin()
    try:
        return fill_up(connection, parameters(min_objects=objects, **more))
    finally:
        connection.close()


def test_fill_up_adds_only_the_missing_objects(storage: CountingStorage) -> None:
    db = ZODB.DB(storage)
    assert fill(db, 2500) == 2500
    records = len(storage)
    assert fill(db, 2500) == 0
    assert fill(db, 100) == 0
    assert len(storage) == records
    assert fill(db, 2600) == 100


def test_filler_is_counted_without_being_made(storage: CountingStorage) -> None:
    db = ZODB.DB(storage)
    with db.transaction() as connection:
        assert filled(connection.root(), parameters()) == 0
    assert len(storage) == 1
    fill(db, 2500)
    with db.transaction() as connection:
        assert filled(connection.root(), parameters()) == 2500
        assert filled(connection.root(), parameters(blobs=True)) == 0


@pytest.mark.slow
def test_the_progress_of_filling_is_noted() -> None:
    noted: list[int] = []
    connection = ZODB.DB(None).open(TransactionManager(explicit=True))
    connection.transaction_manager.begin()
    fill_up(connection, parameters(min_objects=45_000), noted.append)
    assert noted == [20_000, 40_000, 45_000]


@pytest.mark.slow
def test_transactions_are_bounded_in_objects_and_in_bytes(
    storage: CountingStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunk = 1  # record, which refers to the objects
    db = ZODB.DB(storage)
    fill(db, 2500)
    assert max(storage.stored) == 1000 + chunk
    storage.stored.clear()
    monkeypatch.setattr(filler, "CHUNK_BYTES", 100_000)
    fill(db, 5000)
    assert max(storage.stored) == 100_000 // 300 + chunk
    storage.stored.clear()
    fill(db, 5010, object_size=1_000_000)
    assert storage.stored[:10] == [1 + chunk] * 10


def test_packing_keeps_all_filler_objects_readable(storage: CountingStorage) -> None:
    db = ZODB.DB(storage)
    fill(db, 1200, object_size=128)
    records = len(storage)
    db.pack()
    assert len(storage) == records
    with db.transaction() as connection:
        chunks = connection.root()[TOP]["filler"].chunks.values()
        items = [item for chunk in chunks for item in chunk.objects]
        assert len({u64(item._p_oid) for item in items}) == 1200
        assert all(isinstance(item, Item) for item in items)
        assert len({item.content for item in items}) == 1200
        assert {len(connection._storage.load(item._p_oid)[0]) for item in items} == {128}
