"""The output of the command: results on standard output, everything else on standard error.

A stream that cannot be written to, because its disk is full or its reader gone, falls silent.  It
does not end the run: the results are in files.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, TextIO, cast

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from zodbshootout.client.masking import Mask
from zodbshootout.client.outcome import State
from zodbshootout.errors import SOME_FAILED
from zodbshootout.results.result import CellResult, long_name
from zodbshootout.scheduling.result_store import Observer

WORTH_SHOWING = 30.0
"""Seconds; a shorter time left is not printed."""


@dataclass(frozen=True)
class Streams:
    """The streams for results, for everything else, and for answers."""

    out: Console
    err: Console
    answers: TextIO | None
    """The input for answers to questions; ``None`` if nobody can answer."""
    mask: Mask = field(default_factory=Mask)
    """Hides secrets in what is printed line by line."""

    def say(self, line: str) -> None:
        """Print a line of the results."""
        print_line(self.out, self.mask(line))

    def complain(self, message: str) -> None:
        """Print an error message on one line, whatever characters are in it."""
        line = self.mask(f"zodbshootout: {message}")
        print_line(
            self.err,
            "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line),
        )

    @property
    def can_ask(self) -> bool:
        return self.answers is not None and self.answers.isatty()

    def ask(self, question: str) -> bool:
        """Ask a question; only ``y`` or ``yes`` is a yes, and no answer is a no."""
        assert self.answers is not None
        self.err.print(Text(f"{self.mask(question)} [y/N] "), end="", soft_wrap=True)
        return self.answers.readline().strip().lower() in {"y", "yes"}

    @property
    def loss(self) -> str | None:
        """The reason why output is lost, ``None`` if none is or nobody would have read it."""
        error = getattr(self.out.file, "error", None)
        return None if error is None or isinstance(error, BrokenPipeError) else error.strerror

    def status_after(self, status: int, results: Path | None = None) -> int:
        """Return *status*, or that of a failure if output was lost, and name the *results*."""
        if self.loss is None:
            return status
        where = f"; results are in {results}" if results is not None and results.exists() else ""
        self.complain(f"cannot print: {self.loss}{where}")
        return status or SOME_FAILED


def print_line(console: Console, text: str) -> None:
    """Print *text* as it is, and break no line."""
    console.print(Text(text), soft_wrap=True)


def console_on(stream: TextIO | None) -> Console:
    """Return a console that wraps lines at a terminal's edge, and nowhere in a file."""
    file = cast("IO[str]", _Lasting(stream)) if stream is not None else None
    console = Console(file=file)
    return console if console.is_terminal else Console(file=file, width=1000)


class _Lasting:
    """A stream that is written to as long as that works."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None
        """The first error in writing."""

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
            os.dup2(nowhere, descriptor)  # the buffer is flushed once more at exit
            os.close(nowhere)
        return 0


@contextmanager
def progress_on(err: Console, cells: int, quiet: bool, verbose: bool) -> Iterator[Observer]:
    """Show the progress of a run: as a bar on a terminal, otherwise in lines."""
    if quiet:
        yield Observer()
    elif err.is_terminal:
        bar = Bar(err)
        with bar.progress:
            yield bar
    else:
        yield Lines(err, cells, verbose=verbose)


class Lines(Observer):
    """Prints one line for each cell, as suits a pipe or a file."""

    def __init__(self, console: Console, cells: int, *, verbose: bool = False) -> None:
        self._console = console
        self._cells = cells
        self._verbose = verbose
        self._done = 0
        self._minutes: int | None = None

    def left(self, seconds: float) -> None:
        minutes = math.ceil(seconds / 60) if seconds >= WORTH_SHOWING else 0
        if minutes and minutes != self._minutes:
            self.relay(f"about {minutes} minute{'' if minutes == 1 else 's'} left")
        self._minutes = minutes

    def cell_done(self, result: CellResult) -> None:
        self._done += 1
        self.relay(f"[{self._done}/{self._cells}] {describe(result)}")

    def note(self, step: str) -> None:
        if self._verbose:
            self.relay(step)

    def relay(self, line: str) -> None:
        print_line(self._console, line)


class Bar(Observer):
    """Shows a bar with the current cells and the time left, as suits a terminal."""

    def __init__(self, console: Console) -> None:
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=25),
            TimeElapsedColumn(),
            TextColumn("left: {task.fields[left]}"),
            console=console,
            transient=True,
        )
        self._task = self.progress.add_task("starting", total=None, left="-")

    def left(self, seconds: float) -> None:
        elapsed = self.progress.tasks[self._task].elapsed or 0.0
        left = f"{timedelta(seconds=round(seconds))}" if seconds else "-"
        self.progress.update(self._task, total=elapsed + seconds, completed=elapsed, left=left)

    def note(self, step: str) -> None:
        self.progress.update(self._task, description=step)

    def cell_done(self, result: CellResult) -> None:
        if result.state is not State.UNSUPPORTED:
            self.relay(describe(result))

    def relay(self, line: str) -> None:
        print_line(self.progress.console, line)


def describe(result: CellResult) -> str:
    """Return a result as one line."""
    name = long_name(result.cell)
    if result.state is not State.MEASURED:
        return f"{name}: {result.state.value}: {result.reason}"
    if result.unit == "byte":
        return f"{name}: {result.benchmark().format_value(result.mean)}"
    within = "" if result.half_width is None else f" ±{result.half_width:3.0%}"
    return f"{name}: {result.objects_per_second:,.0f} a second{within}"
