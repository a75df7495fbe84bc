from __future__ import annotations

import statistics

import pytest
import transaction
import ZODB
from hypothesis import given
from hypothesis import strategies as st

from zodbshootout.client.data.datasets import Dataset, contents, find_objects, key_at, make
from zodbshootout.client.data.objects import content_size, record_size, smallest_record
from zodbshootout.model.specification import CrewShape, MappingType, Parameters


@given(st.integers(min_value=smallest_record(), max_value=100_000))
def test_a_record_is_at_most_3_bytes_smaller_than_requested(size: int) -> None:
    assert 0 <= size - record_size(content_size(size)) <= 3


@pytest.mark.parametrize("size", [128, 300, 999, 10_000])
def test_trap_7_stored_records_have_the_requested_size_on_average(size: int) -> None:
    parameters = Parameters(CrewShape(1), objects=50, object_size=size)
    db = ZODB.DB(None)
    with db.transaction() as connection:
        make(connection.root(), Dataset.READ, parameters, client=0)
    with db.transaction() as connection:
        mapping = find_objects(connection.root(), Dataset.READ, parameters, client=0)
        sizes = [len(connection._storage.load(item._p_oid)[0]) for item in mapping.values()]
    db.close()
    assert statistics.fmean(sizes) == pytest.approx(size, rel=0.05)


def test_a_record_size_without_room_for_content_is_refused() -> None:
    with pytest.raises(ValueError, match="no record of 20 bytes"):
        content_size(20)
    assert smallest_record() < 128


@pytest.mark.parametrize("mapping", list(MappingType))
def test_keys_sort_in_the_order_of_their_positions(mapping: MappingType) -> None:
    parameters = Parameters(CrewShape(1), mapping=mapping)
    keys = [key_at(parameters, position) for position in range(0, 2000, 7)]
    assert keys == sorted(keys)


def test_a_mapping_holds_its_objects_in_the_order_of_contents() -> None:
    parameters = Parameters(CrewShape(1), objects=5)
    root: dict[str, object] = {}
    make(root, Dataset.READ, parameters, client=0)
    items = find_objects(root, Dataset.READ, parameters, client=0).values()
    assert [item.content for item in items] == contents(Dataset.READ, parameters, 0, revision=0)


def test_a_tree_that_lost_objects_is_made_again() -> None:
    parameters = Parameters(CrewShape(1), objects=5)
    root: dict[str, object] = {}
    assert make(root, Dataset.READ, parameters, client=0)
    assert not make(root, Dataset.READ, parameters, client=0)
    find_objects(root, Dataset.READ, parameters, client=0).popitem()
    assert make(root, Dataset.READ, parameters, client=0)
    assert len(find_objects(root, Dataset.READ, parameters, client=0)) == 5
    transaction.abort()
