"""Where the objects under test live in a database.

::

    root["zodbshootout"]          an OOBTree
        "read/PersistentMapping/1000/300/0/000"    one mapping for each purpose and client
        "update/IOBTree/1000/300/0/001"

Benchmarks that only read share one tree; those that write have one each, so that what a cell
finds does not depend on the cells before it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, MutableMapping
from typing import Any

from BTrees.IOBTree import IOBTree
from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping

from zodbshootout.data.records import Item, Payload
from zodbshootout.model import MappingType, Parameters

SHELF = "zodbshootout"
"""The key in the root under which everything of ours is kept."""

_FACTORIES = {
    MappingType.PERSISTENT_MAPPING: PersistentMapping,
    MappingType.IO: IOBTree,
    MappingType.OO: OOBTree,
}


class Purpose(enum.Enum):
    """What a tree is for, and so which benchmarks find it as they left it."""

    READ = "read"
    ADD = "add"
    UPDATE = "update"

    @property
    def filled(self) -> bool:
        """Whether the tree holds its objects before the benchmark starts."""
        return self is not Purpose.ADD


def key_at(parameters: Parameters, position: int) -> int | str:
    """Return the key of the object at *position*; keys sort as positions do."""
    return position if parameters.mapping is MappingType.IO else f"{position:09d}"


def fill(mapping: MutableMapping[Any, Item], parameters: Parameters, items: Iterable[Item]) -> None:
    """Put *items* into *mapping*, in their order."""
    for position, item in enumerate(items):
        mapping[key_at(parameters, position)] = item


def name(purpose: Purpose, parameters: Parameters, client: int) -> str:
    """Return the key of one client's mapping on the shelf."""
    parts = (
        purpose.value,
        parameters.mapping.value,
        parameters.objects,
        parameters.object_size,
        parameters.seed,
        f"{client:03d}",
    )
    return "/".join(map(str, parts))


def find(
    root: MutableMapping[str, Any], purpose: Purpose, parameters: Parameters, client: int
) -> Any:
    """Return one client's mapping.

    :raises KeyError: when :func:`plant` has not made it
    """
    return root[SHELF][name(purpose, parameters, client)]


def plant(
    root: MutableMapping[str, Any], purpose: Purpose, parameters: Parameters, client: int
) -> bool:
    """Make one client's mapping with its objects where it is missing; the caller commits.

    Return whether anything was made.
    """
    shelf = root.get(SHELF)
    if shelf is None:
        shelf = root[SHELF] = OOBTree()
    key = name(purpose, parameters, client)
    if key in shelf and (not purpose.filled or len(shelf[key]) == parameters.objects):
        return False
    shelf[key] = mapping = _FACTORIES[parameters.mapping]()
    if purpose.filled:
        payload = Payload(parameters.seed, client, parameters.object_size)
        fill(mapping, parameters, map(Item, payload.contents(parameters.objects, revision=0)))
    return True
