"""The places of the objects under test in a database.

::

    root["zodbshootout"]          an OOBTree
        "marker"                               shows that zodbshootout made this BTree
        "update/IOBTree/1000/300/0.5/0/001"    a mapping for each client
        "read/PersistentMapping/1000/300/0.5/0/001/5"    one of a client's mappings to be read
        "conflicts/PersistentMapping/1000/300/0.5/0/000"    a mapping for all clients
        "add/PersistentMapping/1000/300/0.5/0/000"    a BTree of the mappings that a client adds
        "grown IOBTree"                        the tree of --grown; see :mod:`.grown`

Benchmarks that only read share one dataset.  For benchmarks that write, each contender has datasets
of its own ("update/zeo/IOBTree/..."), so that contenders do not change each other's objects if they
use the same database.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, MutableMapping
from typing import Any

from BTrees.IOBTree import IOBTree
from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping

from zodbshootout.client.data.btrees import btree_class
from zodbshootout.client.data.grown import GrownTree
from zodbshootout.client.data.objects import BLOCK, Class, Document, Item, Tally, payload
from zodbshootout.model.outcome import CheckFailed
from zodbshootout.model.specification import MappingType, Parameters

Root = MutableMapping[str, Any]

TOP = "zodbshootout"
"""The key in the root under which zodbshootout stores everything."""
MARKER = "marker"
"""The key, under :data:`TOP`, of the mark by which zodbshootout recognizes its own data."""


class Dataset(enum.Enum):
    """A set of objects that several benchmarks share."""

    READ = "read"
    """Objects that no client may change, in several mappings for each client; see
    :func:`sets_to_read`."""
    ADD = "add"
    """For each client, a BTree that refers to the mappings which the client adds; see
    :func:`add_empty_mappings`."""
    UPDATE = "update"
    """For each client, a mapping of objects that only this client changes.

    A change is an assignment to ``content`` or, with ``--blobs``, a call of ``rewrite(content)``.
    """
    CONFLICTS = "conflicts"
    """Objects that all clients change, in the single mapping of client 0.

    These objects also have a ``count``.  Conflicting changes of the count are added up.
    """
    NEIGHBOURS = "neighbours"
    """For each client, a mapping of objects that this client changes and its neighbour reads.

    The objects have counts like those of :attr:`CONFLICTS`.  A single client, too, has a
    neighbour's mapping to read.
    """
    WORKLOAD = "workload"
    """The objects of a recorded workload; see :mod:`~zodbshootout.client.data.workload_objects`."""

    @property
    def kind(self) -> Class:
        """The class of the objects, unless their content is in blobs."""
        return Tally if self in {Dataset.CONFLICTS, Dataset.NEIGHBOURS} else Item

    def mappings(self, clients: int) -> int:
        """Return the number of clients to make mappings for; *clients* is the size of the crew."""
        if self is Dataset.CONFLICTS:
            return 1
        return max(clients, 2) if self is Dataset.NEIGHBOURS else clients


def key_at(parameters: Parameters, position: int) -> int | str:
    """Return the key of the object at *position*; keys sort as positions do."""
    return position if parameters.mapping is MappingType.IO else f"{position:09d}"


def new_item(dataset: Dataset, parameters: Parameters, content: bytes) -> Any:
    """Return a new object of the dataset's class."""
    return Document(content) if parameters.blobs else dataset.kind(content)


OBJECTS_TO_READ = 8192
"""The number of objects in all sets of all clients, unless the limits below forbid it."""
MAX_SETS = 256
MIN_SETS = 4
MIN_LARGE_SETS = 3
SMALL_SET = 4096
"""The number of objects above which a set is large."""


def sets_to_read(parameters: Parameters) -> int:
    """Return the number of sets per client; the client reads each of them once."""
    wanted = OBJECTS_TO_READ // (parameters.objects * parameters.crew.size)
    large = parameters.objects > SMALL_SET
    fewest = min(MIN_LARGE_SETS, 2 * parameters.crew.size - 1) if large else MIN_SETS
    return max(fewest, min(MAX_SETS, wanted))


def sets_to_time(parameters: Parameters) -> int:
    """Return how many sets a client reads in counted iterations; uncounted ones read the rest."""
    sets = sets_to_read(parameters)
    return sets if parameters.crew.size == 1 else max(1, sets - max(1, sets // 4))


def contents(
    dataset: Dataset, parameters: Parameters, client: int, revision: int, number: int = 0
) -> list[bytes]:
    """Return the contents that the objects of a client's set have in *revision*.

    *number* is the number of the set.
    """
    objects = parameters.objects
    first = number * -(-objects // BLOCK) * BLOCK
    return payload(parameters, client, dataset.kind).contents(objects, revision, first)


def name(dataset: Dataset, parameters: Parameters, client: int, number: int = 0) -> str:
    """Return the key of a client's set with this number."""
    mapping = mapping_name(parameters)
    parts = (
        dataset.value,
        *([parameters.owner] if parameters.owner and dataset is not Dataset.READ else []),
        *(["blobs"] if parameters.blobs else []),
        mapping,
        parameters.objects,
        parameters.object_size,
        f"{parameters.compressibility:g}",
        parameters.seed,
        f"{client:03d}",
        *([number] if number else []),
    )
    return "/".join(map(str, parts))


def mapping_name(parameters: Parameters) -> str:
    """Return the name of the type of mapping, with the parameters that determine its nodes."""
    mapping = f"grown {parameters.mapping.value}" if parameters.grown else parameters.mapping.value
    if parameters.leaf_size or parameters.internal_size:
        return f"{mapping}({parameters.leaf_size},{parameters.internal_size})"
    return mapping


def find_objects(
    root: Root, dataset: Dataset, parameters: Parameters, client: int, number: int = 0
) -> Any:
    """Return the mapping that holds a client's set with this number.

    :raises CheckFailed: if the mapping is missing
    """
    ours, key = root.get(TOP, {}), name(dataset, parameters, client, number)
    if key not in ours:
        raise CheckFailed(
            "the database lacks the objects that were written for this benchmark: another process "
            "has removed them, or each process sees only what it has written itself"
        )
    return ours[key]


def top(root: Root) -> Any:
    """Return the BTree for everything that zodbshootout stores; create it if it is missing."""
    if root.get(TOP) is None:
        root[TOP] = OOBTree({MARKER: "made by zodbshootout, which may write and delete here"})
    return root[TOP]


def others(root: Mapping[Any, Any]) -> list[str]:
    """Return the root's keys that zodbshootout did not create."""
    ours = root.get(TOP)
    marked = isinstance(ours, OOBTree) and MARKER in ours
    return [str(key) for key in root if key != TOP or not marked]


def is_missing(
    root: Root, dataset: Dataset, parameters: Parameters, client: int, number: int = 0
) -> bool:
    """Return whether :func:`make` would write a client's set with this number."""
    ours = root.get(TOP, {})
    key = name(dataset, parameters, client, number)
    if dataset is Dataset.ADD:
        return key not in ours
    return key not in ours or len(ours[key]) != parameters.objects


def make(root: Root, dataset: Dataset, parameters: Parameters, client: int, number: int = 0) -> int:
    """Create a client's set if it is missing; return the number of new objects.

    The caller commits.
    """
    if not is_missing(root, dataset, parameters, client, number):
        return 0
    ours = top(root)
    key = name(dataset, parameters, client, number)
    if dataset is Dataset.ADD:
        ours[key] = IOBTree()
        return 0
    if parameters.grown:
        mapping = grown_tree(root, parameters).place(parameters.objects)
    else:
        mapping = new_mapping(parameters)
    ours[key] = mapping
    items = [
        new_item(dataset, parameters, content)
        for content in contents(dataset, parameters, client, 0, number)
    ]
    for position, item in enumerate(items):
        mapping[key_at(parameters, position)] = item
    return len(items)


def grown_tree(root: Root, parameters: Parameters) -> GrownTree:
    """Return the tree of ``--grown``; create it if it is missing.  The caller commits."""
    grown: GrownTree = top(root).setdefault(
        mapping_name(parameters), GrownTree(new_mapping(parameters))
    )
    return grown


def add_empty_mappings(parent: Any, parameters: Parameters, count: int) -> list[Any]:
    """Replace the mappings in a client's BTree *parent* by *count* new ones; return the new ones.

    The caller commits.
    """
    if parameters.grown:
        tree = grown_tree(parent._p_jar.root(), parameters)
        mappings = [tree.vacant(parameters.objects) for _ in range(count)]
    else:
        mappings = [new_mapping(parameters) for _ in range(count)]
    parent.clear()
    parent.update(dict(enumerate(mappings)))
    return mappings


def new_mapping(parameters: Parameters) -> Any:
    """Return an empty mapping of the configured type."""
    if parameters.mapping is MappingType.PERSISTENT_MAPPING:
        return PersistentMapping()
    return btree_class(parameters.mapping.value, parameters.leaf_size, parameters.internal_size)()
