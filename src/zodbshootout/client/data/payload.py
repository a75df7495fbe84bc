"""The content of the objects under test.

It comes from SHAKE-128 over a label, so that it is the same in every process, can be recomputed by
whoever checks it, and does not compress; and from blanks between these bytes, which do.
"""

from __future__ import annotations

import hashlib

SHORTEST_CONTENT = 8
"""Bytes of content that still tell one object and one revision from another."""
CHUNK = 256
"""Bytes of content in which random bytes and blanks alternate once.  Compression that works on
blocks, as that of databases and file systems does, then finds the same in each block."""
BLOCK = 100
"""Objects whose random bytes are drawn together, which takes a fraction of the time."""


class Payload:
    """The content of every object that one client writes or expects to read."""

    def __init__(self, seed: int, client: int, size: int, compressibility: float) -> None:
        """Prepare content of *size* bytes, as *seed* has it.

        *compressibility* is the part of it that consists of blanks, from 0 to 1; but
        :data:`SHORTEST_CONTENT` bytes are random in any case.
        """
        self._prefix = f"{seed}/{client}/"
        least = min(size, SHORTEST_CONTENT)
        self._random_size = max(least, round(size * (1 - compressibility)))
        chunks = max(1, -(-size // CHUNK))
        self._chunks = [
            (
                *_share(self._random_size, chunk, chunks),
                b" " * _length(size - self._random_size, chunk, chunks),
            )
            for chunk in range(chunks)
        ]

    def content(self, position: int, revision: int) -> bytes:
        """Return what the object at *position* holds after its *revision*-th change."""
        return self.contents(1, revision, position)[0]

    def contents(self, objects: int, revision: int, first: int = 0) -> list[bytes]:
        """Return the content of *objects* objects from the position *first* on, in their order."""
        found: list[bytes] = []
        for block in range(first // BLOCK, -(-(first + objects) // BLOCK)):
            begin = max(first - block * BLOCK, 0)
            end = min(first + objects - block * BLOCK, BLOCK)
            label = f"{self._prefix}{block}/{revision}".encode()
            noise = hashlib.shake_128(label).digest(self._random_size * end)
            found += self._filled(noise, range(begin * self._random_size, len(noise)))
        return found

    def _filled(self, noise: bytes, span: range) -> list[bytes]:
        """Return the contents whose random bytes are that *span* of *noise*."""
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


def _share(total: int, chunk: int, chunks: int) -> tuple[int, int]:
    """Return where a chunk's share of *total* bytes begins and ends."""
    return total * chunk // chunks, total * (chunk + 1) // chunks


def _length(total: int, chunk: int, chunks: int) -> int:
    start, end = _share(total, chunk, chunks)
    return end - start
