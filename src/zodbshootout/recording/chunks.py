"""The format of a recorded workload: a header, then chunks of events.

Each chunk is readable on its own.  ``docs/formats.rst`` describes the format.
"""

from __future__ import annotations

import json
import struct
import sys
import zlib
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from io import SEEK_CUR, BytesIO
from itertools import chain, count, islice, repeat
from operator import add, floordiv, sub
from typing import Any, BinaryIO, NamedTuple

VERSION = 1
"""The version of the format in which files are written; later versions cannot be read."""
MAGIC = b"zodb-workload "
"""The beginning of the first line, which ends with the version."""
NONE = bytes(8)
"""Eight null bytes, for an event without an OID or without a serial."""
_MARK = b"WLCH"
_HEAD = struct.Struct("<4sIII")
"""A chunk's head: mark, length of the compressed payload, its CRC-32, and number of events."""
_COUNTS = struct.Struct("<II")
"""The start of a payload: its number of segments, then its number of (OID, serial) pairs."""
_SEGMENT = struct.Struct("<IIQ")
"""A segment's head: connection, number of events, and start of the first event in `_TICK` units."""
_TICK = 100
"""The unit of durations and of gaps between events, in nanoseconds."""
_MAX_TICKS = 2**32 - 1
_LEVEL = 1
"""The level of zlib; 1 is faster than the default, but files become slightly larger."""


class Kind(IntEnum):
    """The kinds of events; their values are part of the format."""

    BEGIN = 1
    """The connection polled; *number* objects were invalidated."""
    BEGIN_ALL = 2
    """The connection polled; all objects were invalidated."""
    LOAD = 3
    """A record of *number* bytes with this OID and serial was loaded."""
    PREFETCH = 4
    """The OID was one of several to prefetch."""
    LOAD_BLOB = 5
    """The file of a blob of *number* bytes was loaded."""
    NEW_OID = 6
    """The OID was allocated."""
    TPC_BEGIN = 7
    STORE = 8
    """A record of *number* bytes was stored over revision *serial*, which is 0 for a new object."""
    STORE_RESOLVABLE = 9
    """As ``STORE``, for an object whose class resolves conflicts."""
    STORE_BLOB = 10
    """The file of a blob of *number* bytes was stored with the preceding record."""
    READ_CURRENT = 11
    """The commit required that *serial* was the OID's current revision."""
    VOTE = 12
    """*number* conflicts were resolved."""
    FINISH = 13
    """The transaction was committed with the tid *serial*."""
    ABORT = 14
    END = 15
    """The transaction ended; its thread used *number* nanoseconds of processor time."""
    CONFLICT = 16
    """A call of kind *number* raised a conflict; this event replaces the call's own event."""
    FAILURE = 17
    """A call of kind *number* raised another exception; this event replaces the call's event."""


BEGINS = frozenset({int(Kind.BEGIN), int(Kind.BEGIN_ALL)})


class Event(NamedTuple):
    """A call of a storage method, or the end of a transaction."""

    kind: int
    oid: bytes
    number: int
    serial: bytes
    start: int
    """The time in nanoseconds, by a monotonic clock."""
    end: int


FIELDS = len(Event._fields)
Segment = tuple[int, Sequence[Any]]
"""A connection's number, and one flat list: the fields of its first event, then of its second, etc.
Extending a flat list is much faster than appending tuples to a list."""


class FormatError(ValueError):
    """A file is not a complete workload; the message says why."""


def header(facts: Mapping[str, Any]) -> bytes:
    """Return the first two lines of a file: the version, and *facts* in JSON."""
    return MAGIC + b"%d\n" % VERSION + json.dumps(facts).encode() + b"\n"


def read_header(file: BinaryIO) -> dict[str, Any]:
    """Read the header of a file; return its facts.

    :raises FormatError: if the file is not a workload, or has a later version
    """
    first = file.readline(64)
    version = first[len(MAGIC) :].strip()
    if not (first.startswith(MAGIC) and version.isdigit() and first.endswith(b"\n")):
        raise FormatError("this is not a recorded workload")
    if int(version) > VERSION:
        raise FormatError(
            f"this workload has version {int(version)} of the format; this zodbshootout reads "
            f"versions up to {VERSION}: install a later zodbshootout"
        )
    line = file.readline()
    if not line.endswith(b"\n"):
        raise FormatError(f"cut off in its header, at byte {file.tell()}")
    try:
        facts: dict[str, Any] = json.loads(line)
    except ValueError:
        raise FormatError("damaged: its header is not JSON") from None
    return facts


def encode(segments: Iterable[Segment]) -> bytes:
    """Return a chunk with the events of several connections, at least one event of each."""
    segments = list(segments)
    fields = list(chain.from_iterable(own_fields for _, own_fields in segments))
    kinds, oids, numbers, serials, starts, ends = (fields[field::FIELDS] for field in range(FIELDS))
    # Instants are rounded before they are subtracted, so that errors do not add up.
    starts = list(map(floordiv, starts, repeat(_TICK)))
    ends = list(map(floordiv, ends, repeat(_TICK)))
    # A key is OID + serial.  If keys were tuples, millions of them would keep the garbage collector
    # busy.
    table: dict[bytes, int] = defaultdict(count().__next__)
    entries = array("I", map(table.__getitem__, map(add, oids, serials)))
    heads, gaps, stop = [], [], 0
    for connection, own_fields in segments:
        first, stop = stop, stop + len(own_fields) // FIELDS
        heads.append(_SEGMENT.pack(connection, stop - first, starts[first]))
        gaps += [0, *map(sub, starts[first + 1 : stop], ends[first : stop - 1])]
    payload = b"".join(
        [
            _COUNTS.pack(len(segments), len(table)),
            *heads,
            bytes(kinds),
            _planes(entries),
            _planes(_ticks(gaps)),
            _planes(_ticks(list(map(sub, ends, starts)))),
            _planes(array("Q", numbers)),
            _transposed(b"".join(table), 2 * len(NONE)),
        ]
    )
    packed = zlib.compress(payload, _LEVEL)
    return _HEAD.pack(_MARK, len(packed), zlib.crc32(packed), len(kinds)) + packed


def _ticks(times: list[int]) -> array[int]:
    try:
        return array("I", times)
    except OverflowError:
        # A gap is negative if threads share a connection, and too long if the machine slept.
        return array("I", [min(max(time, 0), _MAX_TICKS) for time in times])


def _planes(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return _transposed(numbers.tobytes(), numbers.itemsize)


def _transposed(column: bytes, width: int) -> bytes:
    """Return all items' first bytes, then all second bytes, and so on; this compresses better."""
    return b"".join(column[byte::width] for byte in range(width))


def decode(packed: bytes) -> list[Segment]:
    """Return the events of a chunk's payload."""
    payload = BytesIO(zlib.decompress(packed))
    segments, keys = _COUNTS.unpack(payload.read(_COUNTS.size))
    heads = list(_SEGMENT.iter_unpack(payload.read(segments * _SEGMENT.size)))
    events = sum(own_events for _, own_events, _ in heads)
    kinds = _column(payload, events, 1)
    entries, gaps, durations = (_array("I", _column(payload, events, 4)) for _ in range(3))
    numbers = _array("Q", _column(payload, events, 8))
    table = list(struct.iter_unpack("8s8s", _column(payload, keys, 16)))
    decoded: list[Segment] = []
    rows = zip(kinds, entries, gaps, durations, numbers)  # noqa: B905
    for connection, own_events, first_start in heads:
        fields: list[Any] = []
        end = first_start
        for kind, entry, gap, duration, number in islice(rows, own_events):
            oid, serial = table[entry]
            start = end + gap
            end = start + duration
            fields += (kind, oid, number, serial, start * _TICK, end * _TICK)
        decoded.append((connection, fields))
    return decoded


def _column(payload: BytesIO, items: int, width: int) -> bytes:
    """Read the next column, with items of *width* bytes."""
    column = bytearray(items * width)
    for byte in range(width):
        column[byte::width] = payload.read(items)
    return bytes(column)


def _array(code: str, column: bytes) -> array[int]:
    numbers = array(code, column)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def read_chunks(file: BinaryIO) -> Iterator[list[Segment]]:
    """Read the chunks of a file after its header.

    :raises FormatError: if the file ends inside a chunk, or a chunk is damaged
    """
    while (head := _read_head(file)) is not None:
        yield _read_payload(file, *head)


def first_and_last(file: BinaryIO) -> Iterator[list[Segment]]:
    """Yield the first and then the last chunk after a file's header, even if they are the same.

    :raises FormatError: if the file ends inside a chunk, or one of these chunks is damaged
    """
    last = 0
    while (head := _read_head(file)) is not None:
        offset, length, _ = head
        if not last:
            yield _read_payload(file, *head)
        else:
            file.seek(length, SEEK_CUR)
        last = offset
    if last:
        file.seek(last)
        yield from islice(read_chunks(file), 1)


def _read_head(file: BinaryIO) -> tuple[int, int, int] | None:
    """Return a chunk's offset, payload length and checksum; ``None`` at the end of the file."""
    offset = file.tell()
    head = file.read(_HEAD.size)
    if not head:
        return None
    if len(head) < _HEAD.size:
        raise _cut_off(offset)
    mark, length, checksum, _ = _HEAD.unpack(head)
    if mark != _MARK:
        raise FormatError(f"damaged at byte {offset}: no chunk begins there")
    return offset, length, checksum


def _read_payload(file: BinaryIO, offset: int, length: int, checksum: int) -> list[Segment]:
    packed = file.read(length)
    if len(packed) < length:
        raise _cut_off(offset)
    if zlib.crc32(packed) != checksum:
        raise FormatError(f"damaged: the checksum of the chunk at byte {offset} is wrong")
    return decode(packed)


def _cut_off(offset: int) -> FormatError:
    return FormatError(f"cut off after byte {offset}; to keep the start: truncate -s {offset}")
