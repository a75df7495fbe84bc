"""What the user sees while it works.  It observes, and never decides anything."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from zodbshootout.client.outcome import State
from zodbshootout.results.cell import Cell
from zodbshootout.results.result import CellResult, long_name

WORTH_TELLING = 30.0
"""Seconds from which on it is told how long it will still take."""


class NoProgress:
    """Shows nothing."""

    def __enter__(self) -> NoProgress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass

    def note(self, what: str) -> None:
        """Show what is done before anything is measured."""

    def left(self, seconds: float) -> None:
        """Note about how long it will still take."""

    def working_on(self, cells: Sequence[Cell], stage: str) -> None:
        """Note what is done, with which cells."""

    def cell_done(self, result: CellResult) -> None:
        """Note that nothing more will be done about a cell."""

    def relay(self, line: str) -> None:
        """Show a line that a worker printed."""


class Lines(NoProgress):
    """Prints one line for each cell, as suits a pipe or a file."""

    def __init__(self, console: Console, cells: int, *, verbose: bool = False) -> None:
        self._console = console
        self._cells = cells
        self._verbose = verbose
        """Whether there is a line for each step, too."""
        self._done = 0
        self._minutes: int | None = None

    def left(self, seconds: float) -> None:
        """Print about how long it will still take, once a minute."""
        minutes = math.ceil(seconds / 60) if seconds >= WORTH_TELLING else 0
        if minutes and minutes != self._minutes:
            self._print(f"about {minutes} minute{'' if minutes == 1 else 's'} left")
        self._minutes = minutes

    def cell_done(self, result: CellResult) -> None:
        """Print what became of a cell."""
        self._done += 1
        self._print(f"[{self._done}/{self._cells}] {describe(result)}")

    def note(self, what: str) -> None:
        """Print what is done before anything is measured, where every step is to be told."""
        if self._verbose:
            self._print(what)

    def working_on(self, cells: Sequence[Cell], stage: str) -> None:
        """Print which cells are at work, where every step is to be told."""
        if self._verbose:
            self._print(_at_work(cells, stage))

    def relay(self, line: str) -> None:
        """Print a line of a worker."""
        self._print(line)

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class Bar(NoProgress):
    """Shows a bar with the cell at work and the time left, as suits a terminal."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=25),
            TimeElapsedColumn(),
            TextColumn("left: {task.fields[left]}"),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("starting", total=None, left="-")

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def left(self, seconds: float) -> None:
        """Show about how long it will still take."""
        elapsed = self._progress.tasks[self._task].elapsed or 0.0
        left = f"{timedelta(seconds=round(seconds))}" if seconds else "-"
        self._progress.update(self._task, total=elapsed + seconds, completed=elapsed, left=left)

    def note(self, what: str) -> None:
        """Show what is done before anything is measured."""
        self._progress.update(self._task, description=what)

    def working_on(self, cells: Sequence[Cell], stage: str) -> None:
        """Show which cells are at work."""
        self._progress.update(self._task, description=_at_work(cells, stage))

    def cell_done(self, result: CellResult) -> None:
        """Show above the bar what became of a cell."""
        if result.state is not State.UNSUPPORTED:
            self.relay(describe(result))

    def relay(self, line: str) -> None:
        """Print a line above the bar."""
        self._progress.console.print(line, markup=False, highlight=False, soft_wrap=True)


def _at_work(cells: Sequence[Cell], stage: str) -> str:
    names = ", ".join(cell.contender for cell in cells)
    return f"{cells[0].benchmark if cells else ''}: {names} ({stage})"


def describe(result: CellResult) -> str:
    """Return a result as one line."""
    name = long_name(result.cell)
    if result.state is not State.MEASURED:
        return f"{name}: {result.state.value}: {result.reason}"
    if result.unit == "byte":
        return f"{name}: {result.benchmark().format_value(result.mean)}"
    within = "" if result.half_width is None else f" ±{result.half_width:3.0%}"
    return f"{name}: {result.objects_per_second:,.0f} a second{within}"
