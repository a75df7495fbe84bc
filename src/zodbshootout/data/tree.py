"""Where the objects under test live in a database.

::

    root["zodbshootout"]          an OOBTree
        "read/PersistentMapping/1000/300/0.5/0/000"    one mapping for each purpose and client
        "update/IOBTree/1000/300/0.5/0/001"
        "conflicts/PersistentMapping/1000/300/0.5/0/000"    one for all clients

Benchmarks that only read share one tree; those that write have one each, so that what a cell
finds does not depend on the cells before it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, MutableMapping
from typing import Any

from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping

from zodbshootout.data.btrees import btree_class
from zodbshootout.data.records import Class, Document, Item, Tally, payload
from zodbshootout.model import MappingType, Parameters

SHELF = "zodbshootout"
"""The key in the root under which everything of ours is kept."""


class Purpose(enum.Enum):
    """What a tree is for, and so which benchmarks find it as they left it."""

    READ = "read"
    """Objects that nobody changes, in a mapping for each client."""
    ADD = "add"
    """An empty mapping for each client."""
    UPDATE = "update"
    """Objects that their client changes, in a mapping for each."""
    CONFLICTS = "conflicts"
    """Objects that all clients change, in one mapping."""
    NEIGHBOURS = "neighbours"
    """Objects that their client changes and its neighbour reads, in a mapping for each."""

    @property
    def filled(self) -> bool:
        """Whether the tree holds its objects before the benchmark starts."""
        return self is not Purpose.ADD

    @property
    def kind(self) -> Class:
        """The class of the objects, where their content is not in blobs."""
        return Tally if self in {Purpose.CONFLICTS, Purpose.NEIGHBOURS} else Item

    def mappings(self, clients: int) -> int:
        """Return how many mappings so many clients work with; they are numbered from 0."""
        if self is Purpose.CONFLICTS:
            return 1
        return max(clients, 2) if self is Purpose.NEIGHBOURS else clients


def key_at(parameters: Parameters, position: int) -> int | str:
    """Return the key of the object at *position*; keys sort as positions do."""
    return position if parameters.mapping is MappingType.IO else f"{position:09d}"


def new_item(purpose: Purpose, parameters: Parameters, content: bytes) -> Any:
    """Return a new object as *purpose* wants it."""
    return Document(content) if parameters.blobs else purpose.kind(content)


def contents(purpose: Purpose, parameters: Parameters, number: int, revision: int) -> list[bytes]:
    """Return what the objects of mapping *number* hold after their *revision*-th change."""
    return payload(parameters, number, purpose.kind).contents(parameters.objects, revision)


def name(purpose: Purpose, parameters: Parameters, number: int) -> str:
    """Return the key of mapping *number* on the shelf."""
    mapping = parameters.mapping.value
    if parameters.leaf_size or parameters.internal_size:
        mapping = f"{mapping}({parameters.leaf_size},{parameters.internal_size})"
    parts = (
        purpose.value,
        *(["blobs"] if parameters.blobs else []),
        mapping,
        parameters.objects,
        parameters.object_size,
        f"{parameters.compressibility:g}",
        parameters.seed,
        f"{number:03d}",
    )
    return "/".join(map(str, parts))


def find(
    root: MutableMapping[str, Any], purpose: Purpose, parameters: Parameters, number: int
) -> Any:
    """Return mapping *number*.

    :raises KeyError: when :func:`plant` has not made it
    """
    return root[SHELF][name(purpose, parameters, number)]


def shelf(root: MutableMapping[str, Any]) -> Any:
    """Return what everything of ours hangs on; it is made where it is missing."""
    found = root.get(SHELF)
    if found is None:
        found = root[SHELF] = OOBTree()
    return found


def plant(
    root: MutableMapping[str, Any], purpose: Purpose, parameters: Parameters, number: int
) -> bool:
    """Make mapping *number* with its objects where it is missing; the caller commits.

    Return whether anything was made.
    """
    ours = shelf(root)
    key = name(purpose, parameters, number)
    if key in ours and (not purpose.filled or len(ours[key]) == parameters.objects):
        return False
    ours[key] = mapping = _new_mapping(parameters)
    if purpose.filled:
        wanted = contents(purpose, parameters, number, revision=0)
        fill(mapping, parameters, (new_item(purpose, parameters, each) for each in wanted))
    return True


def fill(mapping: MutableMapping[Any, Any], parameters: Parameters, items: Iterable[Any]) -> None:
    """Put *items* into *mapping*, in their order."""
    for position, item in enumerate(items):
        mapping[key_at(parameters, position)] = item


def _new_mapping(parameters: Parameters) -> Any:
    if parameters.mapping is MappingType.PERSISTENT_MAPPING:
        return PersistentMapping()
    cls = btree_class(parameters.mapping.value, parameters.leaf_size, parameters.internal_size)
    return cls()
