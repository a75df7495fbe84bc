from __future__ import annotations

import pickle

import pytest
from BTrees.IOBTree import IOBTree

from zodbshootout.client.data import btrees
from zodbshootout.client.data.btrees import btree_class


def test_the_class_without_sizes_is_that_of_btrees() -> None:
    assert btree_class("IOBTree", 0, 0) is IOBTree


@pytest.mark.parametrize(
    ("leaf", "internal", "expected"), [(7, 9, (7, 9)), (7, 0, (7, 500)), (0, 9, (60, 9))]
)
def test_a_class_has_the_requested_node_sizes_and_its_leaves_fit(
    leaf: int, internal: int, expected: tuple[int, int]
) -> None:
    cls = btree_class("IOBTree", leaf, internal)
    assert (cls.max_leaf_size, cls.max_internal_size) == expected
    tree = cls({number: number for number in range(1000)})
    bucket = tree._firstbucket
    sizes = []
    while bucket is not None:
        sizes.append(len(bucket))
        bucket = bucket._next
    assert max(sizes) <= expected[0]
    assert sum(sizes) == 1000


def test_an_unpickled_tree_has_the_class_that_its_record_names() -> None:
    tree = pickle.loads(pickle.dumps(btree_class("OOBTree", 5, 6)({"a": 1})))
    assert type(tree).__module__ == "zodbshootout.client.data.btrees"
    assert type(tree).__name__ == "OOBTree_5_6"
    assert type(tree) is btrees.OOBTree_5_6
    assert dict(tree) == {"a": 1}


def test_a_class_name_with_a_size_of_zero_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'OOBTree_0_6'"):
        _ = btrees.OOBTree_0_6
