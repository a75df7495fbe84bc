"""Where the objects under test live in a database.

::

    root["zodbshootout"]          an OOBTree
        "marker"                               what tells that it is this program's
        "update/IOBTree/1000/300/0.5/0/001"    a mapping for each client
        "read/PersistentMapping/1000/300/0.5/0/001/5"    several, which hold other objects
        "conflicts/PersistentMapping/1000/300/0.5/0/000"    one for all clients
        "add/PersistentMapping/1000/300/0.5/0/000"    what holds the mappings that are added

Benchmarks that only read share one tree; those that write have one each, and one for each
contender ("update/zeo/IOBTree/..."), so that what a cell finds depends neither on the cells before
it nor on other contenders that have the same database.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

from BTrees.IOBTree import IOBTree
from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping

from zodbshootout.client.data.btrees import btree_class
from zodbshootout.client.data.payload import BLOCK
from zodbshootout.client.data.records import Class, Document, Item, Tally, payload
from zodbshootout.client.specification import MappingType, Parameters

TOP = "zodbshootout"
"""The key in the root under which everything of ours is kept."""
MARKER = "marker"
"""The key of what tells in there that this program has made it."""


class Dataset(enum.Enum):
    """What a tree is for, and so which benchmarks find it as they left it."""

    READ = "read"
    """Objects that nobody changes, in several mappings for each client."""
    ADD = "add"
    """An object for each client that refers to the mappings that it makes."""
    UPDATE = "update"
    """Objects that their client changes, in a mapping for each."""
    CONFLICTS = "conflicts"
    """Objects that all clients change, in one mapping."""
    NEIGHBOURS = "neighbours"
    """Objects that their client changes and its neighbour reads, in a mapping for each."""

    @property
    def kind(self) -> Class:
        """The class of the objects, where their content is not in blobs."""
        return Tally if self in {Dataset.CONFLICTS, Dataset.NEIGHBOURS} else Item

    def mappings(self, clients: int) -> int:
        """Return for how many clients of a crew of that size there are mappings."""
        if self is Dataset.CONFLICTS:
            return 1
        return max(clients, 2) if self is Dataset.NEIGHBOURS else clients


def key_at(parameters: Parameters, position: int) -> int | str:
    """Return the key of the object at *position*; keys sort as positions do."""
    return position if parameters.mapping is MappingType.IO else f"{position:09d}"


def new_item(purpose: Dataset, parameters: Parameters, content: bytes) -> Any:
    """Return a new object as *purpose* wants it."""
    return Document(content) if parameters.blobs else purpose.kind(content)


OBJECTS_TO_READ = 16_384
"""Objects that all clients together find in sets to be read, at least where there are few."""
MAX_SETS = 256
MIN_SETS = 4
MIN_LARGE_SETS = 3
SMALL_SET = 4096
"""Objects up to which a set is small enough to have several whatever the number of clients."""


def sets_to_read(parameters: Parameters) -> int:
    """Return how many sets of objects each client finds that it can read once each."""
    wanted = OBJECTS_TO_READ // (parameters.objects * parameters.crew.size)
    large = parameters.objects > SMALL_SET
    fewest = min(MIN_LARGE_SETS, 2 * parameters.crew.size - 1) if large else MIN_SETS
    return max(fewest, min(MAX_SETS, wanted))


def sets_to_time(parameters: Parameters) -> int:
    """Return how many of these sets count: clients that have read theirs go on with the others."""
    sets = sets_to_read(parameters)
    return sets if parameters.crew.size == 1 else max(1, sets - max(1, sets // 4))


def contents(
    purpose: Dataset, parameters: Parameters, client: int, revision: int, number: int = 0
) -> list[bytes]:
    """Return what the objects of a client's set *number* hold after their *revision*-th change."""
    objects = parameters.objects
    first = number * -(-objects // BLOCK) * BLOCK
    return payload(parameters, client, purpose.kind).contents(objects, revision, first)


def name(purpose: Dataset, parameters: Parameters, client: int, number: int = 0) -> str:
    """Return the key under which set *number* of a client is."""
    mapping = parameters.mapping.value
    if parameters.leaf_size or parameters.internal_size:
        mapping = f"{mapping}({parameters.leaf_size},{parameters.internal_size})"
    parts = (
        purpose.value,
        *([parameters.owner] if parameters.owner and purpose is not Dataset.READ else []),
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


def find(
    root: MutableMapping[str, Any],
    purpose: Dataset,
    parameters: Parameters,
    client: int,
    number: int = 0,
) -> Any:
    """Return set *number* of a client.

    :raises KeyError: when :func:`make` has not made it
    """
    return root[TOP][name(purpose, parameters, client, number)]


def top(root: MutableMapping[str, Any]) -> Any:
    """Return what holds everything of ours; it is made where it is missing."""
    found = root.get(TOP)
    if found is None:
        found = root[TOP] = OOBTree(
            {MARKER: "made by zodbshootout, which may write and delete here"}
        )
    return found


def others(root: Mapping[Any, Any]) -> list[str]:
    """Return the keys of the root under which there is what this program has not put there."""
    return [str(key) for key in root if key != TOP or not _is_marked(root[key])]


def _is_marked(found: Any) -> bool:
    return isinstance(found, OOBTree) and MARKER in found


def is_missing(
    root: MutableMapping[str, Any],
    purpose: Dataset,
    parameters: Parameters,
    client: int,
    number: int = 0,
) -> bool:
    """Say whether :func:`make` would write set *number* of a client."""
    ours = root.get(TOP, {})
    key = name(purpose, parameters, client, number)
    if purpose is Dataset.ADD:
        return key not in ours
    return key not in ours or len(ours[key]) != parameters.objects


def make(
    root: MutableMapping[str, Any],
    purpose: Dataset,
    parameters: Parameters,
    client: int,
    number: int = 0,
) -> int:
    """Make set *number* of a client where it is missing; the caller commits.

    Return how many objects were made.
    """
    if not is_missing(root, purpose, parameters, client, number):
        return 0
    ours = top(root)
    key = name(purpose, parameters, client, number)
    if purpose is Dataset.ADD:
        ours[key] = IOBTree()
        return 0
    ours[key] = mapping = new_mapping(parameters)
    wanted = contents(purpose, parameters, client, 0, number)
    fill(mapping, parameters, (new_item(purpose, parameters, each) for each in wanted))
    return len(wanted)


def add_empty_mappings(parent: Any, parameters: Parameters, count: int) -> list[Any]:
    """Have *parent* refer to *count* new mappings, and to nothing else; the caller commits.

    What was added before then is garbage, which packing removes.
    """
    made = [new_mapping(parameters) for _ in range(count)]
    parent.clear()
    parent.update(dict(enumerate(made)))
    return made


def fill(mapping: MutableMapping[Any, Any], parameters: Parameters, items: Iterable[Any]) -> None:
    """Put *items* into *mapping*, in their order."""
    for position, item in enumerate(items):
        mapping[key_at(parameters, position)] = item


def new_mapping(parameters: Parameters) -> Any:
    """Return an empty mapping of the type that is asked for."""
    if parameters.mapping is MappingType.PERSISTENT_MAPPING:
        return PersistentMapping()
    cls = btree_class(parameters.mapping.value, parameters.leaf_size, parameters.internal_size)
    return cls()
