"""The results of all cells so far, in memory and in files, and the observer that shows results."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodbshootout.errors import SOME_FAILED, UserError
from zodbshootout.model.outcome import Failure, State
from zodbshootout.results.cell import Cell
from zodbshootout.results.result import CellResult
from zodbshootout.scheduling.plan import Plan

if TYPE_CHECKING:
    import pyperf

PAUSE_RATIO = 20.0
"""The pause after writing results, as a multiple of the time that writing took.  Failures and
finished rows are written even during the pause."""
NO_PAUSE = 0.2
"""No pause follows if writing took at most this many seconds."""


class Observer:
    """Shows the progress of a run to the user; this base class shows nothing."""

    def note(self, step: str) -> None:
        """Show the current step of the run."""

    def left(self, seconds: float) -> None:
        """Show an estimate of the remaining seconds of the run."""

    def working_on(self, cells: Sequence[Cell], stage: str) -> None:
        """Show the current stage of some cells."""
        names = ", ".join(cell.title for cell in cells)
        if cells:  # all cells may have failed
            self.note(f"{cells[0].benchmark}: {stage}: {names}")

    def results_changed(self, results: Sequence[CellResult]) -> None:
        """Show all results after some have changed."""

    def cell_failed(self, result: CellResult) -> None:
        """Show that a cell has failed."""

    def row_done(self, results: Sequence[CellResult]) -> None:
        """Show the final results of a row."""

    def relay(self, line: str) -> None:
        """Show a line, for instance one that a worker has printed."""

    def paused(self) -> AbstractContextManager[None]:
        """Leave the screen to a question as long as the context lasts."""
        return nullcontext()


@dataclass
class ResultStore:
    """The current results of all cells; cells that were not reached are ``NOT_RUN``."""

    plan: Plan
    observer: Observer
    write: Callable[[Sequence[CellResult]], None]
    """A function that writes all results; called after changes, less often if it is slow."""
    fail_fast: bool = False
    begun: Sequence[CellResult] = ()
    """The results of the run to resume; cells that failed in that run are tried again."""
    now: Callable[[], float] = time.monotonic
    _results: dict[Cell, CellResult] = field(init=False)
    _pause_ends: float = field(init=False, default=-math.inf)
    """The time at which the pause ends; until then, new runs wait to be written."""
    _unwritten: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        runs = {result.cell: result for result in self.begun if result.measured}
        self._results = {
            cell: self._with_warnings(
                CellResult(cell, State.MEASURED, runs=runs[cell].runs, crashes=runs[cell].crashes)
            )
            if cell in runs
            else CellResult(cell)
            for cell in self.plan.cells
        }

    def _with_warnings(self, result: CellResult) -> CellResult:
        effort = self.plan.effort
        # With a precision, too few runs need no warning: the figure is marked as imprecise.
        return result.with_warnings(0 if effort.precision else effort.processes)

    @property
    def results(self) -> list[CellResult]:
        """All results; an unchanged result stays the same object, with its cached properties."""
        return list(self._results.values())

    def unsettled(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the *cells* that can still get a figure."""
        settled = (State.FAILED, State.UNSUPPORTED)
        return [cell for cell in cells if self._results[cell].state not in settled]

    def fail_cells(self, failures: Sequence[tuple[Cell, Failure]]) -> None:
        """Record that cells get no further runs, and why.  Write all results.

        :raises UserError: if a cell has failed and ``--fail-fast`` is given
        """
        for cell, failure in failures:
            self._results[cell] = self._results[cell].failed(failure)
            if failure.state is State.FAILED:
                self.observer.cell_failed(self._results[cell])
        self.observer.results_changed(self.results)
        self.save()
        if self.fail_fast and any(failure.state is State.FAILED for _, failure in failures):
            raise UserError("stopped at the first failure (--fail-fast)", SOME_FAILED)

    def add_run(self, cell: Cell, run: pyperf.Benchmark) -> None:
        """Add a run to the results of a cell; :meth:`save_new` writes it."""
        self._results[cell] = self._with_warnings(self._results[cell].with_run(run))
        self.observer.results_changed(self.results)
        self._unwritten = True

    def save_new(self) -> None:
        """Write all results if any run is not written yet, unless a pause prevents it."""
        if self._unwritten and self.now() >= self._pause_ends:
            self.save()

    def save(self) -> None:
        """Write all results."""
        began = self.now()
        self.write(self.results)
        self._unwritten = False
        took = self.now() - began
        self._pause_ends = self.now() + (PAUSE_RATIO * took if took > NO_PAUSE else 0.0)

    def note_crash(self, cell: Cell, failure: Failure) -> None:
        crashed = self._results[cell].crashed(failure.cause)
        self._results[cell] = self._with_warnings(crashed)

    def close(self, cells: Sequence[Cell]) -> None:
        """Show that the *cells* of a row had their last run, and write any unwritten results."""
        self.observer.row_done([self._results[cell] for cell in cells])
        if self._unwritten:
            self.save()

    def result(self, cell: Cell) -> CellResult:
        return self._results[cell]

    def fail(self, cell: Cell, failure: Failure) -> None:
        """Record the failure of one cell; see :meth:`fail_cells`."""
        self.fail_cells([(cell, failure)])
