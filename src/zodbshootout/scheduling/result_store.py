"""The results of all cells so far: kept, written to files, and shown to an observer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from zodbshootout.client.masking import Mask
from zodbshootout.client.outcome import Failure, State
from zodbshootout.errors import SOME_FAILED, UserError
from zodbshootout.results.cell import Cell
from zodbshootout.results.result import CellResult
from zodbshootout.scheduling.plan import Plan

if TYPE_CHECKING:
    import pyperf

REST = 20.0
"""The next writing waits this many times as long as the last one took, unless a cell is done."""
SHORT = 0.2
"""A writing that takes at most these seconds does not delay the next one."""


class Observer:
    """The progress of a run as the user sees it; this one shows nothing."""

    def note(self, step: str) -> None:
        """Show the present step of the run."""

    def left(self, seconds: float) -> None:
        """Show an estimate of the seconds that the run still takes."""

    def working_on(self, cells: Sequence[Cell], stage: str) -> None:
        """Show the present stage of some cells."""
        names = ", ".join(cell.contender for cell in cells)
        if cells:  # all of them may have failed
            self.note(f"{cells[0].benchmark}: {stage}: {names}")

    def results_changed(self, results: Sequence[CellResult]) -> None:
        """Show all results, of which some have changed."""

    def cell_failed(self, result: CellResult) -> None:
        """Show that a cell has failed."""

    def row_done(self, results: Sequence[CellResult]) -> None:
        """Show the final results of a row."""

    def relay(self, line: str) -> None:
        """Show a line that a worker has printed."""


@dataclass
class ResultStore:
    """The results, complete at any moment: cells that were not reached are ``NOT_RUN``."""

    plan: Plan
    observer: Observer
    write: Callable[[Sequence[CellResult]], None]
    """Called with all results when one has changed, but not so often that it takes much time."""
    fail_fast: bool = False
    mask: Mask = field(default_factory=Mask)
    """Hides secrets in the reasons of failures."""
    begun: Sequence[CellResult] = ()
    """The results of the run that is resumed; its failed cells are tried again."""
    now: Callable[[], float] = time.monotonic
    _results: dict[Cell, CellResult] = field(init=False)
    _rested: float = field(init=False, default=-math.inf)
    """The time from which on results may be written although no cell is done."""
    _unwritten: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        runs = {result.cell: result for result in self.begun if result.measured}
        self._results = {
            cell: CellResult(cell, State.MEASURED, runs=runs[cell].runs, crashes=runs[cell].crashes)
            if cell in runs
            else CellResult(cell)
            for cell in self.plan.cells
        }

    @property
    def results(self) -> list[CellResult]:
        effort = self.plan.effort
        # If a precision was to be reached, the figure itself says that it was missed.
        expected = 0 if effort.precision else effort.processes
        return [result.with_warnings(expected) for result in self._results.values()]

    def unsettled(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return those of *cells* that can still get a figure."""
        without = (State.FAILED, State.UNSUPPORTED)
        return [cell for cell in cells if self._results[cell].state not in without]

    def open(self, failures: Sequence[tuple[Cell, Failure]]) -> None:
        """Note that cells get no figure, or no more runs, and write the results.

        :raises UserError: if one of the cells failed and that ends the run
        """
        for cell, failure in failures:
            cause, detail = self.mask(failure.cause), self.mask(failure.detail)
            shown = replace(failure, cause=cause, detail=detail)
            self._results[cell] = self._results[cell].failed(shown)
            if failure.state is State.FAILED:
                self.observer.cell_failed(self._results[cell])
        self.observer.results_changed(self.results)
        self.keep()
        if self.fail_fast and any(failure.state is State.FAILED for _, failure in failures):
            raise UserError("stopped at the first failure (--fail-fast)", SOME_FAILED)

    def add_run(self, cell: Cell, run: pyperf.Benchmark) -> None:
        self._results[cell] = self._results[cell].with_run(run)
        self.observer.results_changed(self.results)
        self._unwritten = True
        if self.now() >= self._rested:
            self.keep()

    def keep(self) -> None:
        """Write all results."""
        began = self.now()
        self.write(self.results)
        self._unwritten = False
        took = self.now() - began
        self._rested = self.now() + (REST * took if took > SHORT else 0.0)

    def note_crash(self, cell: Cell, failure: Failure) -> None:
        self._results[cell] = self._results[cell].crashed(self.mask(failure.cause))

    def close(self, cells: Sequence[Cell]) -> None:
        """Note that there will be no more runs of *cells*."""
        self.observer.row_done([self._results[cell] for cell in cells])
        if self._unwritten:
            self.keep()

    def result(self, cell: Cell) -> CellResult:
        return self._results[cell]

    def fail(self, cell: Cell, failure: Failure) -> None:
        """Note the failure of one cell, as :meth:`open` does."""
        self.open([(cell, failure)])
