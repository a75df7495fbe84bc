"""What has become of every cell so far, and who is told of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from zodbshootout.client.masking import Mask
from zodbshootout.client.outcome import Failure, State
from zodbshootout.results.cell import Cell
from zodbshootout.results.result import CellResult
from zodbshootout.scheduling.plan import Plan

if TYPE_CHECKING:
    import pyperf

REST = 20.0
"""How many times as long as the last one took nothing is written, unless a cell is done."""
SHORT = 0.2
"""Seconds that writing may take each time a run is added."""


class Observer(Protocol):
    """Is told of the progress of a run, and decides nothing."""

    def left(self, seconds: float) -> None:
        """Note about how long it will still take."""

    def working_on(self, cells: Sequence[Cell], stage: str) -> None:
        """Note what is done, with which cells."""

    def cell_done(self, result: CellResult) -> None:
        """Note that nothing more will be done about a cell."""


class GaveUp(Exception):  # noqa: N818
    """A cell failed and nothing was to be measured after that (``--fail-fast``)."""


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
    """What a run had measured that is resumed; what failed in it is tried again."""
    now: Callable[[], float] = time.monotonic
    _results: dict[Cell, CellResult] = field(init=False)
    _rested: float = field(init=False, default=-math.inf)
    """When it may be written again although no cell is done."""
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
        """Return what is known of every cell, in the order of the plan."""
        effort = self.plan.effort
        # Where a precision was to be reached, the figure itself says that it was missed.
        due = 0 if effort.precision else effort.processes
        return [result.remarked(due) for result in self._results.values()]

    def unsettled(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return those of *cells* that can still have a figure."""
        without = (State.FAILED, State.UNSUPPORTED)
        return [cell for cell in cells if self._results[cell].state not in without]

    def open(self, failures: Sequence[tuple[Cell, Failure]]) -> None:
        """Begin with the cells of which it is known that there will be no figure.

        :raises GaveUp: when one of them failed, where that ends the run
        """
        for cell, failure in failures:
            self._settle(cell, failure)
        self.keep()
        if any(failure.state is State.FAILED for _, failure in failures):
            self._may_give_up()

    def add_run(self, cell: Cell, run: pyperf.Benchmark) -> None:
        """Add a run of a cell."""
        self._results[cell] = self._results[cell].with_run(run)
        self._unwritten = True
        if self.now() >= self._rested:
            self.keep()

    def keep(self) -> None:
        """Write everything that is known.

        All results are written anew each time, which takes longer and longer.
        """
        began = self.now()
        self.write(self.results)
        self._unwritten = False
        took = self.now() - began
        self._rested = self.now() + (REST * took if took > SHORT else 0.0)

    def note_crash(self, cell: Cell, failure: Failure) -> None:
        """Note that a run of a cell is made again after a crash."""
        self._results[cell] = self._results[cell].crashed(self.mask(failure.cause))

    def close(self, cells: Sequence[Cell]) -> None:
        """Note that there will be no more runs of *cells*."""
        for cell in self.unsettled(cells):
            if self._results[cell].measured:
                self.observer.cell_done(self._results[cell])
        if self._unwritten:
            self.keep()

    def result(self, cell: Cell) -> CellResult:
        """Return what is known of a cell."""
        return self._results[cell]

    def fail(self, cell: Cell, failure: Failure) -> None:
        """Note that there will be no figure of a cell.

        :raises GaveUp: when it failed, where that ends the run
        """
        self._settle(cell, failure)
        self.keep()
        if failure.state is State.FAILED:
            self._may_give_up()

    def _settle(self, cell: Cell, failure: Failure) -> None:
        shown = replace(failure, cause=self.mask(failure.cause), detail=self.mask(failure.detail))
        self._results[cell] = self._results[cell].failed(shown)
        self.observer.cell_done(self._results[cell])

    def _may_give_up(self) -> None:
        if self.fail_fast:
            raise GaveUp
