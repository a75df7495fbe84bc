"""What the command prints and reads: results on standard output, all else on standard error.

A stream that cannot be written to, for its disk is full or its reader gone, falls silent.  It does
not end the run, whose results are in files.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any, TextIO, cast

from rich.console import Console
from rich.text import Text

from zodbshootout.client.masking import Mask


@dataclass(frozen=True)
class Streams:
    """Where results and where everything else is printed."""

    out: Console
    err: Console
    answers: TextIO | None
    """Where answers to questions come from; ``None`` where nobody can answer."""
    mask: Mask = field(default_factory=Mask)
    """Hides secrets in what is printed line by line."""

    def say(self, line: str) -> None:
        """Print a line of the results."""
        print_line(self.out, self.mask(line))

    def complain(self, message: str) -> None:
        """Print one line that says what is wrong, whatever characters are in it."""
        print_line(self.err, _on_one_line(self.mask(f"zodbshootout: {message}")))

    @property
    def can_ask(self) -> bool:
        """Whether somebody is there to answer."""
        return self.answers is not None and self.answers.isatty()

    def ask(self, question: str) -> bool:
        """Ask a question; only ``y`` or ``yes`` is a yes, and no answer is a no."""
        assert self.answers is not None
        self.err.print(Text(f"{self.mask(question)} [y/N] "), end="", soft_wrap=True)
        return self.answers.readline().strip().lower() in {"y", "yes"}

    @property
    def loss(self) -> str | None:
        """Why not everything is printed that somebody would read, ``None`` if it is."""
        error = getattr(self.out.file, "error", None)
        return None if error is None or isinstance(error, BrokenPipeError) else error.strerror


def print_line(console: Console, text: str) -> None:
    """Print *text* as it is, and break no line."""
    console.print(Text(text), soft_wrap=True)


def _on_one_line(text: str) -> str:
    """Return *text* with an escape for each character that ends a line or cannot be printed."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def console_on(stream: TextIO | None) -> Console:
    """Return a console that wraps at a terminal's edge, and nowhere where there is no terminal."""
    file = cast("IO[str]", _Lasting(stream)) if stream is not None else None
    console = Console(file=file)
    return console if console.is_terminal else Console(file=file, width=1000)


class _Lasting:
    """A stream that is written to as long as that can be done."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None
        """Why it can no longer be written to."""

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except UnicodeEncodeError as error:
            escaped = text.encode(error.encoding, "backslashreplace").decode(error.encoding)
            return self.write(escaped)
        except OSError as error:
            return self._fall_silent(error)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._fall_silent(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _fall_silent(self, error: OSError) -> int:
        self.error = self.error or error
        with suppress(OSError):  # it may have no file of the system's
            descriptor = self._stream.fileno()
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)  # what is buffered is flushed once more at exit
            os.close(nowhere)
        return 0
