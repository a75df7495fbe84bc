"""The objects under test: their class, their content and the size of their stored record.

The content comes from SHAKE-128 over a label, so that it is the same in every process, can be
recomputed by whoever checks it, and does not compress.
"""

from __future__ import annotations

import functools
import hashlib

from persistent import Persistent
from ZODB.serialize import ObjectWriter

SHORTEST_CONTENT = 8
"""Bytes of content that still tell one object and one revision from another."""


class Item(Persistent):
    """A persistent object whose state is some bytes."""

    def __init__(self, content: bytes) -> None:
        self.content = content


def record_size(content_size: int) -> int:
    """Return the bytes that a storage is given for an :class:`Item` with that much content."""
    return len(ObjectWriter().serialize(Item(bytes(content_size))))


@functools.cache
def smallest_record() -> int:
    """Return the smallest record size (bytes) that can be asked for."""
    return record_size(SHORTEST_CONTENT)


@functools.cache
def content_size(wanted_record_size: int) -> int:
    """Return how much content makes a record of *wanted_record_size* bytes.

    Pickle writes the length of up to 255 bytes more briefly than that of more, so a few sizes
    cannot be met exactly and come out at most 3 bytes smaller.

    :raises ValueError: when a record cannot be that small
    """
    size = wanted_record_size - record_size(0)
    while size >= SHORTEST_CONTENT and record_size(size) > wanted_record_size:
        size -= 1
    if size < SHORTEST_CONTENT:
        raise ValueError(
            f"a stored object takes at least {smallest_record()} bytes, not {wanted_record_size}"
        )
    return size


class Payload:
    """The content of every object that one client writes or expects to read."""

    def __init__(self, seed: int, client: int, wanted_record_size: int) -> None:
        """Prepare content for records of *wanted_record_size* bytes, as *seed* has it."""
        self._prefix = f"{seed}/{client}/"
        self._size = content_size(wanted_record_size)

    def content(self, position: int, revision: int) -> bytes:
        """Return what the object at *position* holds after its *revision*-th change."""
        label = f"{self._prefix}{position}/{revision}".encode()
        return hashlib.shake_128(label).digest(self._size)

    def contents(self, objects: int, revision: int) -> list[bytes]:
        """Return the content of the first *objects* objects, in their order."""
        return [self.content(position, revision) for position in range(objects)]
