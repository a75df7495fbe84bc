"""The objects under test: their classes, their content and the size of their stored records.

Stored records contain the names of this module and of its classes, so renaming these would make
existing databases unreadable.
"""

from __future__ import annotations

import functools
import hashlib
import io
from typing import Any, Union

from persistent import Persistent
from ZODB._compat import PersistentUnpickler
from ZODB.blob import Blob
from ZODB.broken import find_global
from ZODB.serialize import ObjectWriter

from zodbshootout.model.specification import Parameters

SHORTEST_CONTENT = 8
"""The minimum content size in bytes; shorter contents might be equal by chance."""
CHUNK = 256
"""The approximate maximum size of a chunk in bytes.  A chunk is random bytes, then blanks; all
chunks of an object have about the same share of blanks."""
BLOCK = 100
"""The number of objects whose random bytes are generated together, to save time."""


class Item(Persistent):
    """A persistent object whose state is some bytes."""

    def __init__(self, content: bytes) -> None:
        self.content = content


class Tally(Persistent):
    """An item that counts its changes.

    If two transactions conflict, the count includes the changes of both transactions.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.count = 0

    def _p_resolveConflict(  # noqa: N802 - ZODB's name
        self, old: dict[str, Any], saved: dict[str, Any], new: dict[str, Any]
    ) -> dict[str, Any]:
        return {**new, "count": saved["count"] + new["count"] - old["count"]}


class Document(Persistent):
    """A persistent object whose content is a blob; it takes two records and a file."""

    def __init__(self, content: bytes) -> None:
        self.blob = Blob(content)

    @property
    def content(self) -> bytes:
        with self.blob.open() as file:
            content: bytes = file.read()
        return content

    def rewrite(self, content: bytes) -> None:
        """Overwrite the blob.  A new blob would change the record of this object as well."""
        with self.blob.open("w") as file:
            file.write(content)


Class = Union[type[Item], type[Tally]]  # Python 3.9 has no |
"""A class of objects whose content is part of their record."""


def holder(item: Any) -> Any:
    """Return the object whose record changes when the content of *item* changes."""
    return item.blob if isinstance(item, Document) else item


def rewrite(item: Any, content: bytes) -> None:
    """Give *item* new content, as an application does."""
    if isinstance(item, Document):
        item.rewrite(content)
    else:
        item.content = content


def records_each(parameters: Parameters) -> int:
    """Return the number of records per object."""
    return 2 if parameters.blobs else 1


def pickled(thing: Any) -> bytes:
    """Return the record that a storage gets for *thing*, an object without references."""
    record: bytes = ObjectWriter().serialize(thing)
    return record


def class_and_state(record: bytes) -> tuple[Any, Any] | None:
    """Return the class and the state of a record, or ``None`` if it cannot be unpickled.

    OIDs replace the objects that the state refers to.
    """
    unpickler = PersistentUnpickler(None, _referenced, io.BytesIO(record))
    try:
        cls, state = unpickler.load(), unpickler.load()
        if isinstance(cls, tuple):  # the class has arguments; classes under test have none
            cls, _ = cls
        return find_global(*cls) if isinstance(cls, tuple) else cls, state
    except Exception:  # noqa: BLE001 - garbled bytes can raise anything
        return None


def _referenced(reference: Any) -> Any:
    return reference[0] if isinstance(reference, tuple) else reference


def is_same_object(record: bytes, other: bytes) -> bool:
    """Return whether two records have the same class and state.

    The bytes may differ, for example if the storage keeps objects as JSON.
    """
    if record == other:
        return True
    known = class_and_state(other)
    return known is not None and class_and_state(record) == known


def record_size(content_size: int, kind: Class = Item) -> int:
    """Return the size in bytes of a record of class *kind* with *content_size* bytes of content."""
    return len(pickled(kind(bytes(content_size))))


@functools.cache
def smallest_record() -> int:
    """Return the smallest record size (bytes) that a user may choose."""
    return record_size(SHORTEST_CONTENT, Tally)


def content_size(wanted_record_size: int, kind: Class = Item) -> int:
    """Return the size (bytes) of the content that makes a record of *wanted_record_size* bytes.

    Three record sizes are impossible, because pickle needs 3 bytes more for content of more than
    255 bytes.  If one of them is wanted, the record is 1 to 3 bytes smaller.  A :class:`Tally`
    grows by up to 3 bytes while it counts.

    :raises ValueError: if a record cannot be that small
    """
    size = wanted_record_size - record_size(0, kind)
    while size >= SHORTEST_CONTENT and record_size(size, kind) > wanted_record_size:
        size -= 1
    if size < SHORTEST_CONTENT:
        raise ValueError(f"no record of {wanted_record_size} bytes can hold any content")
    return size


class Payload:
    """The content of every object that one client writes or expects to read.

    It consists of incompressible bytes and of blanks, which are compressible.  The incompressible
    bytes are a SHAKE-128 hash of a label, so they are the same in every process.
    """

    def __init__(self, seed: int, client: int, size: int, compressibility: float) -> None:
        """Prepare content of *size* bytes, at least :data:`SHORTEST_CONTENT` of them random.

        *compressibility* is the share of blanks, from 0 to 1.
        """
        self._prefix = f"{seed}/{client}/"
        self._random_size = max(min(size, SHORTEST_CONTENT), round(size * (1 - compressibility)))
        chunks = max(1, -(-size // CHUNK))
        blanks = size - self._random_size
        self._chunks = [
            (
                self._random_size * chunk // chunks,
                self._random_size * (chunk + 1) // chunks,
                b" " * (blanks * (chunk + 1) // chunks - blanks * chunk // chunks),
            )
            for chunk in range(chunks)
        ]
        """For each chunk: the beginning and end of its random bytes, and the blanks after them."""

    def contents(self, objects: int, revision: int, first: int = 0) -> list[bytes]:
        """Return the contents of consecutive objects in one revision.

        *objects* is the number of these objects; *first* is the position of the first, from 0.
        """
        contents: list[bytes] = []
        for block in range(first // BLOCK, -(-(first + objects) // BLOCK)):
            begin = max(first - block * BLOCK, 0)
            end = min(first + objects - block * BLOCK, BLOCK)
            label = f"{self._prefix}{block}/{revision}".encode()
            noise = hashlib.shake_128(label).digest(self._random_size * end)
            contents += self._interleaved(noise, range(begin * self._random_size, len(noise)))
        return contents

    def _interleaved(self, noise: bytes, span: range) -> list[bytes]:
        starts = span[:: self._random_size]
        if len(self._chunks) == 1:
            blanks, size = self._chunks[0][2], self._random_size
            return [noise[start : start + size] + blanks for start in starts]
        return [
            b"".join(
                part
                for begin, end, blanks in self._chunks
                for part in (noise[start + begin : start + end], blanks)
            )
            for start in starts
        ]


def payload(parameters: Parameters, client: int, kind: Class = Item) -> Payload:
    """Return the content of the objects of one client."""
    size = parameters.object_size
    if not parameters.blobs:
        size = content_size(size, kind)
    return Payload(parameters.seed, client, size, parameters.compressibility)
