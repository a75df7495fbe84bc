"""What the user sees while it works.  It observes, and never decides anything."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from zodbshootout.model import Cell
from zodbshootout.results import CellResult, State, long_name


class Silence:
    """Shows nothing."""

    def __enter__(self) -> Silence:
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

    def expect(self, workers: int) -> None:
        """Learn how many workers there will be."""

    def working_on(self, cell: Cell, stage: str) -> None:
        """Note that a worker starts."""

    def worker_done(self, result: CellResult) -> None:
        """Note that a worker has ended."""

    def cell_done(self, result: CellResult, workers_spared: int) -> None:
        """Note that a cell is settled."""

    def relay(self, line: str) -> None:
        """Show a line that a worker printed."""


class Lines(Silence):
    """Prints one line for each cell, as suits a pipe or a file."""

    def __init__(self, console: Console, cells: int) -> None:
        self._console = console
        self._cells = cells
        self._done = 0

    def cell_done(self, result: CellResult, workers_spared: int) -> None:  # noqa: ARG002
        """Print what became of a cell."""
        self._done += 1
        self._print(f"[{self._done}/{self._cells}] {describe(result)}")

    def relay(self, line: str) -> None:
        """Print a line of a worker."""
        self._print(line)

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class Bar(Silence):
    """Shows a bar with the cell at work and the time left, as suits a terminal."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=25),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left:"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("starting", total=None)

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

    def expect(self, workers: int) -> None:
        """Know where the bar ends."""
        self._progress.update(self._task, total=workers)

    def note(self, what: str) -> None:
        """Show what is done before anything is measured."""
        self._progress.update(self._task, description=what)

    def working_on(self, cell: Cell, stage: str) -> None:
        """Show which cell is at work."""
        description = f"{cell.contender}: {cell.benchmark} ({stage})"
        self._progress.update(self._task, description=description)

    def worker_done(self, result: CellResult) -> None:  # noqa: ARG002
        """Move the bar on."""
        self._progress.advance(self._task)

    def cell_done(self, result: CellResult, workers_spared: int) -> None:
        """Move the bar over what will not be needed; say at once what failed."""
        self._progress.advance(self._task, workers_spared)
        if result.state is State.FAILED:
            self.relay(describe(result))

    def relay(self, line: str) -> None:
        """Print a line above the bar."""
        self._progress.console.print(line, markup=False, highlight=False, soft_wrap=True)


def describe(result: CellResult) -> str:
    """Return a result as one line."""
    name = long_name(result.cell)
    if result.measured:
        return f"{name}: {result.benchmark().format_value(result.mean)}"
    return f"{name}: {result.state.value}: {result.reason}"
