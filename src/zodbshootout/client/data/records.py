"""The objects under test: their classes, their content and the size of their stored records.

Each has a ``content``, whatever keeps it.
"""

from __future__ import annotations

import functools
from typing import Any, Union

from persistent import Persistent
from ZODB.blob import Blob
from ZODB.serialize import ObjectWriter

from zodbshootout.client.data.payload import SHORTEST_CONTENT, Payload
from zodbshootout.client.specification import Parameters


class Item(Persistent):
    """A persistent object whose state is some bytes."""

    def __init__(self, content: bytes) -> None:
        self.content = content


class Tally(Persistent):
    """An item that counts, and whose counts add up where transactions conflict."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.count = 0

    def _p_resolveConflict(  # noqa: N802 - ZODB's name
        self, old: dict[str, Any], saved: dict[str, Any], new: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the state in which both changes since *old* are counted."""
        return {**new, "count": saved["count"] + new["count"] - old["count"]}


class Document(Persistent):
    """A persistent object whose content is a blob: two records and a file."""

    def __init__(self, content: bytes) -> None:
        self.blob = Blob(content)

    @property
    def content(self) -> bytes:
        """The whole of the blob, read from its file."""
        with self.blob.open() as file:
            content: bytes = file.read()
        return content

    def rewrite(self, content: bytes) -> None:
        """Write the blob anew; assigning to an attribute would change this object as well."""
        with self.blob.open("w") as file:
            file.write(content)


Class = Union[type[Item], type[Tally]]  # Python 3.9 has no |
"""A class whose content is part of the record."""


def holder(item: Any) -> Any:
    """Return the object whose record changes when the content of *item* does."""
    return item.blob if isinstance(item, Document) else item


def records_each(parameters: Parameters) -> int:
    """Return how many records an object of the benchmarks takes."""
    return 2 if parameters.blobs else 1


def pickled(thing: Any) -> bytes:
    """Return the record of an object that refers to no other, as a storage is given it."""
    record: bytes = ObjectWriter().serialize(thing)
    return record


def record_size(content_size: int, kind: Class = Item) -> int:
    """Return the bytes of the record of an object of that class with that much content."""
    return len(pickled(kind(bytes(content_size))))


@functools.cache
def smallest_record() -> int:
    """Return the smallest record size (bytes) that can be asked for."""
    return record_size(SHORTEST_CONTENT, Tally)


def content_size(wanted_record_size: int, kind: Class = Item) -> int:
    """Return how much content makes a record of *wanted_record_size* bytes.

    Pickle writes the length of up to 255 bytes more briefly than that of more, so a few sizes
    cannot be met exactly and come out at most 3 bytes smaller.  A :class:`Tally` grows by up to
    3 bytes while it counts.

    :raises ValueError: when a record cannot be that small
    """
    size = wanted_record_size - record_size(0, kind)
    while size >= SHORTEST_CONTENT and record_size(size, kind) > wanted_record_size:
        size -= 1
    if size < SHORTEST_CONTENT:
        raise ValueError(f"no record of {wanted_record_size} bytes can hold any content")
    return size


def payload(parameters: Parameters, client: int, kind: Class = Item) -> Payload:
    """Return what the objects of one client hold."""
    size = parameters.object_size
    if not parameters.blobs:
        size = content_size(size, kind)
    return Payload(parameters.seed, client, size, parameters.compressibility)
