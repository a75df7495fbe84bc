"""Generated records of recorded sizes; a recording does not contain the records themselves.

Each record contains the OID of its object, so that a check notices a truncated record and a record
of another object.  The names of this module and of its classes must stay: stored records contain
them.
"""

from __future__ import annotations

import struct

from BTrees.Length import Length
from persistent import Persistent
from ZODB.blob import Blob

from zodbshootout.client.data.objects import Payload, class_and_state, pickled

SMALLEST = 41
"""The size in bytes of the smallest record."""
_POOL = 2**20
"""The size in bytes of the generated content with which records are filled."""


def _head(cls: type) -> bytes:
    """Return the pickle of a class, followed by the beginning of the pickle of a state."""
    name = f"c{cls.__module__}\n{cls.__name__}\nq".encode()
    return b"\x80\x03" + name + b"\x00.\x80\x03"


class Resolvable(Persistent):
    """An object whose state is bytes and whose class resolves conflicts."""

    def _p_resolveConflict(self, old: bytes, saved: bytes, new: bytes) -> bytes:  # noqa: ARG002, N802
        return new


_HEAD, _RESOLVABLE_HEAD, _LENGTH_HEAD = map(_head, (Persistent, Resolvable, Length))
_SHORT, _LONG = b"C", b"B"
_SHORT_INTEGER, _LONG_INTEGER = b"\x8a", b"\x8b"
_STOP = b"."
"""Opcodes of pickle protocol 3; see :mod:`pickletools`."""
_OID = 8
_MAX_BYTE = 255
_POSITIVE = b"\x01"
"""The most significant byte of a positive integer; pickles store it last."""
_SMALLEST_RESOLVABLE = len(_RESOLVABLE_HEAD) + 2 + _OID + len(_STOP)


class RecordMaker:
    """Make records for ``replay`` that compress like the objects of the other benchmarks."""

    def __init__(self, seed: int, compressibility: float) -> None:
        (self._pool,) = Payload(seed, 0, _POOL, compressibility).contents(1, 0)
        self._position = 0
        self.blob_record = pickled(Blob())
        """The record of every blob."""

    def content(self, size: int) -> bytes:
        """Return *size* bytes that differ from call to call."""
        pieces = []
        while size:
            # 4099 is a prime, so every position is used before any is reused.
            self._position = (self._position + 4099) % _POOL
            piece = self._pool[self._position : self._position + size]
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def record(self, oid: bytes, size: int) -> bytes:
        """Return a record of ``record_size(size)`` bytes."""
        return self._record(_HEAD, oid, record_size(size))

    def resolvable(self, oid: bytes, size: int) -> bytes:
        """Return a record of ``record_size(size)`` bytes, of a class that resolves conflicts.

        If the record is small, the class is ``Length``, which applications use as a counter.
        """
        if size >= _SMALLEST_RESOLVABLE:
            return self._record(_RESOLVABLE_HEAD, oid, size)
        head, room = _sized(_LENGTH_HEAD, _SHORT_INTEGER, _LONG_INTEGER, record_size(size))
        digits = oid * (room // _OID + 1)
        return b"".join([head, digits[: room - 1], _POSITIVE, _STOP])

    def _record(self, head: bytes, oid: bytes, size: int) -> bytes:
        head, room = _sized(head, _SHORT, _LONG, size)
        return b"".join([head, self.content(room - _OID), oid, _STOP])


def _sized(head: bytes, short: bytes, long: bytes, size: int) -> tuple[bytes, int]:
    """Return *head* followed by the opcode and the size of a state; also return this size."""
    room = size - len(head) - len(_STOP) - 2
    if room <= _MAX_BYTE:
        return head + short + bytes([room]), room
    return head + long + struct.pack("<I", room - 3), room - 3


def belongs_to(record: bytes, oid: bytes) -> bool:
    """Return whether a record is complete and was made for the object *oid*."""
    cls, state = class_and_state(record) or (None, None)
    if cls is Length:
        return isinstance(state, int)  # resolving a conflict changes its digits
    return cls in {Persistent, Resolvable} and isinstance(state, bytes) and state.endswith(oid)


def resolves(record: bytes) -> bool:
    """Return whether the class of a record resolves conflicts."""
    cls, _ = class_and_state(record) or (None, None)
    return cls in {Length, Resolvable}


def record_size(size: int) -> int:
    """Return the size in bytes of the record for an object whose recorded size is *size*."""
    return max(size, SMALLEST)
