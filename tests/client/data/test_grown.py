"""The tree of ``--grown``: its keys, and the parts of it that benchmarks use."""

from __future__ import annotations

from itertools import chain, pairwise
from typing import Any

import pytest
import ZODB
from transaction import TransactionManager

from tests.client.data.counting import CountingStorage
from tests.fakes import parameters
from zodbshootout.client.data import grown
from zodbshootout.client.data.btrees import btree_class
from zodbshootout.client.data.datasets import Dataset, find_objects, grown_tree, key_at, make
from zodbshootout.client.data.filler import fill_up, filled
from zodbshootout.client.data.grown import ODD_KEYS, GrownTree
from zodbshootout.model.specification import MappingType, Parameters

KINDS = pytest.mark.parametrize("kind", list(MappingType)[1:])


def tree_of(kind: MappingType) -> GrownTree:
    return GrownTree(btree_class(kind.value, 0, 0)())


def like(min_objects: int, kind: MappingType) -> Parameters:
    return parameters(objects=30, mapping=kind, min_objects=min_objects, grown=True)


@pytest.fixture
def connection() -> Any:
    return ZODB.DB(CountingStorage()).open(TransactionManager(explicit=True))


def grow(connection: Any, wanted: Parameters) -> int:
    connection.transaction_manager.begin()
    return fill_up(connection, wanted)


@KINDS
def test_layers_have_ascending_keys_and_none_in_common(kind: MappingType) -> None:
    tree = tree_of(kind)
    layers = []
    for count in (10, 1000, 7):
        layers.append(list(tree.next_layer(count)))
        tree.layers += 1
    assert list(map(len, layers)) == [10, 1000, 7]
    assert all(layer == sorted(layer, key=int) for layer in layers)
    assert len(set(chain.from_iterable(layers))) == 1017


def test_the_largest_layer_and_the_last_one_have_keys_that_an_iobtree_takes() -> None:
    tree = tree_of(MappingType.IO)
    tree.layers = grown.LAYERS - 1
    assert max(map(int, tree.next_layer(5))) < 2**31
    assert tree.next_layer(grown.LAYER)
    with pytest.raises(ValueError, match="can grow 32 times"):
        tree.next_layer(grown.LAYER + 1)
    tree.layers += 1
    with pytest.raises(ValueError, match="can grow 32 times"):
        tree.next_layer(1)


@KINDS
def test_parts_have_no_key_in_common_with_each_other_or_with_the_filling(kind: MappingType) -> None:
    tree = tree_of(kind)
    filling = set(tree.next_layer(100_000))
    placed = [tree.place(1000).keys for _ in range(50)]
    added = [tree.vacant(1000).keys for _ in range(200)]
    keys = list(chain.from_iterable([*placed, *added]))
    assert len(set(keys)) == len(keys) == 250_000
    assert not filling & set(keys)
    if kind is MappingType.IO:
        assert max(map(int, keys)) < 2**31


def test_objects_of_a_part_are_far_from_each_other() -> None:
    keys = sorted(map(int, tree_of(MappingType.IO).place(1000).keys))
    gaps = [later - former for former, later in pairwise(keys)]
    assert min(gaps) > 4 * ODD_KEYS / 1000 / 10


@pytest.mark.slow
@KINDS
def test_a_tree_grows_to_the_number_of_objects(kind: MappingType, connection: Any) -> None:
    assert grow(connection, like(2500, kind)) == 2500
    assert grow(connection, like(2500, kind)) == 0
    assert grow(connection, like(3000, kind)) == 500
    connection.transaction_manager.begin()
    assert filled(connection.root(), like(0, kind)) == 3000
    tree = grown_tree(connection.root(), like(0, kind))
    assert tree.layers == 2
    contents = [item.content for item in tree.tree.values()]
    assert len(contents) == len(set(contents)) == len(tree.tree) == 3000


@KINDS
def test_a_dataset_is_between_the_objects_of_the_tree(kind: MappingType, connection: Any) -> None:
    grow(connection, like(1000, kind))
    manager = connection.transaction_manager
    manager.begin()
    for number in range(3):
        assert make(connection.root(), Dataset.READ, like(1000, kind), 0, number) == 30
    manager.commit()
    connection.cacheMinimize()
    manager.begin()
    parts = [
        find_objects(connection.root(), Dataset.READ, like(1000, kind), 0, n) for n in range(3)
    ]
    contents = [item.content for part in parts for item in part.values()]
    assert len(set(contents)) == 90
    keys = [key_at(like(1000, kind), position) for position in range(30)]
    assert [part[key].content for part in parts for key in keys] == contents
    assert len(grown_tree(connection.root(), like(0, kind)).tree) == 1090
