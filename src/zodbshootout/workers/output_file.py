"""The files into which fork servers and workers print."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from zodbshootout.guardian import TAIL_SIZE, last_lines

PIECE = 65536
"""The maximum number of bytes of a worker's output to read at once."""
MAX_RELAYED = 2**20
"""The maximum number of bytes of a worker's output that are passed on to the user."""
MAX_OUTPUT = 2**22
"""The size in bytes above which the file with a process's output is emptied."""


class OutputFile:
    """The output file of a process; the coordinator passes on its lines.

    A large file is emptied, because endless output would fill the disk, or the memory if the file
    is in memory.  A pipe would be worse: once full, it would stop the process, unless the
    coordinator read it during measurements.
    """

    def __init__(self, path: Path, relay: Callable[[str], None] = lambda _: None) -> None:
        self.path = path
        self._relay = relay
        self._relayed = 0
        self._removed = 0
        """The number of bytes that were removed from the file."""
        self._end = b""
        """The last of the bytes that were removed."""

    def relay(self, *, ended: bool = False) -> None:
        """Pass on the lines printed since the last call.

        An incomplete last line is passed on only if the worker has *ended*.  Nothing is passed on
        after :data:`MAX_RELAYED` bytes.  Lines longer than a :data:`PIECE` are passed on in pieces.
        """
        with suppress(FileNotFoundError), self.path.open("rb") as file:
            while self._relayed < MAX_RELAYED:
                file.seek(self._relayed)
                piece = file.read(PIECE)
                whole = piece if ended or len(piece) == PIECE else b""
                whole = piece[: piece.rfind(b"\n") + 1] or whole
                if not whole:
                    return
                self._relayed += len(whole)
                for line in whole.decode(errors="replace").splitlines():
                    self._relay(line)

    def limit(self) -> None:
        """Empty the file if it exceeds :data:`MAX_OUTPUT`, but first pass on new lines.

        The process opened the file for appending, so it goes on at the beginning of the empty file.
        The last lines are kept in memory.
        """
        with suppress(OSError):
            if self.path.stat().st_size <= MAX_OUTPUT:
                return
            self.relay()
            with self.path.open("r+b") as file:
                self._end = _end_of(file)
                self._removed += file.tell()
                file.truncate(0)  # output at this very moment is lost

    def last_lines(self) -> list[str]:
        """Return the last lines; see :func:`~zodbshootout.guardian.last_lines`."""
        try:
            with self.path.open("rb") as file:
                end = _end_of(file)
        except OSError:
            end = b""
        return last_lines(io.BytesIO(self._end + end))

    def close(self) -> None:
        """Pass on the last lines, and a note if lines were left out."""
        self.relay(ended=True)
        with suppress(FileNotFoundError):
            size = self._removed + self.path.stat().st_size
            if self._relayed >= MAX_RELAYED and size > self._relayed:
                self._relay(
                    f"a worker has printed at least {size:,} bytes; "
                    f"only the first {self._relayed:,} are shown"
                )


def _end_of(file: IO[bytes]) -> bytes:
    file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_SIZE))
    return file.read()
