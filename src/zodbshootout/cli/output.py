"""The output of the command: results on standard output, everything else on standard error.

A stream that fails, because its disk is full or its reader has gone, discards further output.  The
run goes on: its results are in files.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import metadata
from pathlib import Path
from typing import IO, Any, TextIO, cast

from rich.console import Console
from rich.text import Text

from zodbshootout.errors import SOME_FAILED
from zodbshootout.model.masking import Mask


@dataclass(frozen=True)
class Streams:
    """Streams for results, for all other output, and for answers."""

    out: Console
    err: Console
    answers: TextIO | None
    """The input for answers to questions; ``None`` if there is no standard input."""
    mask: Mask = field(default_factory=Mask)
    """The mask of secrets in lines, messages and questions."""

    def say(self, line: str) -> None:
        """Print a line of the results."""
        print_line(self.out, self.mask(line))

    def tell(self, line: str) -> None:
        """Print a line that is not part of the results."""
        print_line(self.err, self.mask(line))

    def complain(self, message: str) -> None:
        """Print an error message on one line, with escapes for characters such as newlines."""
        line = self.mask(message)
        line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
        print_line(self.err, f"zodbshootout: {line}")

    def write(self, data: bytes) -> None:
        """Write *data* to standard output as it is."""
        cast("_TolerantStream", self.out.file).write_bytes(data)

    @property
    def can_ask(self) -> bool:
        return self.answers is not None and self.answers.isatty()

    def ask(self, question: str) -> bool:
        """Ask a question; return whether the answer is ``y`` or ``yes``, in upper or lower case."""
        assert self.answers is not None
        self.err.print(Text(f"{self.mask(question)} [y/N] "), end="", soft_wrap=True)
        return self.answers.readline().strip().lower() in {"y", "yes"}

    @property
    def loss(self) -> str | None:
        """The reason why output was lost; ``None`` if nothing was lost, or the reader has gone."""
        error = getattr(self.out.file, "error", None)
        return None if error is None or isinstance(error, BrokenPipeError) else error.strerror

    def status_after(self, status: int, results: Path | None = None) -> int:
        """Return *status*.  If output was lost, say where *results* are, and return a failure."""
        if self.loss is None:
            return status
        where = f"; results are in {results}" if results is not None and results.exists() else ""
        self.complain(f"cannot print: {self.loss}{where}")
        return status or SOME_FAILED


def print_line(console: Console, text: str) -> None:
    """Print *text* without markup and without wrapping lines."""
    console.print(Text(text), soft_wrap=True)


def project_url(name: str) -> str:
    """Return the URL called *name*, such as ``Source``, in this project's metadata."""
    addresses = metadata("zodbshootout").get_all("Project-URL") or []
    line: str = next(line for line in addresses if line.startswith(f"{name}, "))
    return line.partition(", ")[2]


def console_on(stream: TextIO | None) -> Console:
    """Return a console; its width is ``COLUMNS``, else the terminal's width, else 80.

    The terminal's width counts even if *stream* is a pipe, as in ``zodbshootout show last | less``.
    """
    console = Console(file=cast("IO[str]", _TolerantStream(stream)) if stream is not None else None)
    if console.width < 1:  # COLUMNS=0, as a shell without a terminal may set it
        console.width = 80
    return console


class _TolerantStream:
    """A stream that remembers its first write error and discards all further output."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None
        """The first write error, if any."""

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except UnicodeEncodeError as error:
            escaped = text.encode(error.encoding, "backslashreplace").decode(error.encoding)
            return self.write(escaped)
        except OSError as error:
            return self._fall_silent(error)

    def write_bytes(self, data: bytes) -> None:
        try:
            self._stream.buffer.write(data)
        except OSError as error:
            self._fall_silent(error)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._fall_silent(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _fall_silent(self, error: OSError) -> int:
        self.error = self.error or error
        with suppress(OSError):  # a stream may have no file descriptor
            descriptor = self._stream.fileno()
            devnull = os.open(os.devnull, os.O_WRONLY)
            os.dup2(devnull, descriptor)  # the buffer is flushed once more at exit
            os.close(devnull)
        return 0
