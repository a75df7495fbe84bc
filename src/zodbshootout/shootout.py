"""Measuring a plan: contenders in turn, every cell by itself, results kept as they come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import pyperf

from zodbshootout.benchmarks.registry import benchmarks
from zodbshootout.contenders.layer import Sharing
from zodbshootout.data.tree import Purpose
from zodbshootout.model import Cell, Effort, Parameters
from zodbshootout.perf.calibration import choose_loops
from zodbshootout.perf.launch import WorkerFailed
from zodbshootout.perf.task import Action, Profiling, Report, Subject, Task
from zodbshootout.plan import Plan, Row
from zodbshootout.results import CellResult, State, file_name, varied_parameters


class Observer(Protocol):
    """Who wants to know how it goes.  It observes only."""

    def expect(self, workers: int) -> None:
        """Note how many workers there will be."""

    def working_on(self, cell: Cell, stage: str) -> None:
        """Note that a worker starts."""

    def worker_done(self, result: CellResult) -> None:
        """Note that a worker has ended."""

    def cell_done(self, result: CellResult, workers_spared: int) -> None:
        """Note that a cell is settled, and how many workers will not be needed for it."""


class Workers(Protocol):
    """Who does what is to be done: :class:`~zodbshootout.perf.launch.Launcher`."""

    def do(self, task: Task) -> Mapping[str, str]:
        """Look or prepare."""

    def measure(self, task: Task, effort: Effort) -> pyperf.Benchmark:
        """Measure."""


class GaveUp(Exception):  # noqa: N818
    """A cell failed and nothing was to be measured after that (``--fail-fast``)."""


ZAPPED_BEFORE = "add"
"""The benchmark before each of whose runs a contender is zapped, if it is to be."""


@dataclass(frozen=True)
class Conduct:
    """How everything is done."""

    collector: str = "mean"
    log: str | None = None
    fail_fast: bool = False
    zapped: Collection[str] = ()
    """The names of the contenders whose data is destroyed."""
    pack: bool = False
    """Whether each contender is packed before it is first measured."""
    restart: bool = False
    """Whether private servers are restarted before each value of a cold benchmark."""
    leaks: bool = False
    profiles: Path | None = None
    """The directory that profiles of the clients go to, if they do."""
    profiler: str = "cprofile"


@dataclass
class Shootout:
    """One pass through a plan.

    ``results`` is complete at any moment: cells that were not reached are ``NOT_RUN``.
    """

    plan: Plan
    subject: Subject
    launcher: Workers
    observer: Observer
    keep: Callable[[Sequence[CellResult]], None]
    """Called with all results whenever one has changed."""
    facts: Mapping[str, Mapping[str, str]]
    """What is known of each contender that could be opened."""
    absent: Mapping[str, str] = field(default_factory=dict)
    """Why the other contenders could not."""
    conduct: Conduct = field(default_factory=Conduct)
    served: Collection[str] = ()
    """The names of the contenders that need private servers."""
    obituary: Callable[[str], str | None] = lambda _: None
    """Says how a private server has ended that a contender needs, if one has."""

    def __post_init__(self) -> None:
        self._results = {cell: CellResult(cell) for cell in self.plan.cells}
        self._workers_done: Counter[Cell] = Counter()
        self._prepared: set[tuple[str, Purpose | None, Parameters]] = set()
        self._packed: set[str] = set()
        self._varied = varied_parameters(self.plan.cells)

    @property
    def results(self) -> list[CellResult]:
        """Return what is known of every cell, in the order of the plan."""
        due = self.plan.effort.processes
        return [
            replace(result, reason=f"{len(result.runs)} of {due} runs")
            if result.measured and len(result.runs) < due
            else result
            for result in self._results.values()
        ]

    def run(self) -> None:
        """Measure everything that can be measured.

        :raises GaveUp: after the first failure, where that is asked for
        """
        for cell in self.plan.cells:
            self._settle_unopened(cell)
        self.observer.expect(self.plan.total_workers)
        self.keep(self.results)
        if self.conduct.fail_fast and any(each.state is State.FAILED for each in self.results):
            raise GaveUp
        for row in self.plan.rows:
            self._measure_row(row)

    def _settle_unopened(self, cell: Cell) -> None:
        refusal = self.plan.refusal(cell)
        if refusal is not None:
            self._settle(cell, State.UNSUPPORTED, refusal)
        elif cell.contender in self.absent:
            self._settle(cell, State.FAILED, self.absent[cell.contender])

    def _measure_row(self, row: Row) -> None:
        loops = self._calibrate(row)
        for number in range(self.plan.effort.processes):
            for cell in _rotated(self._unsettled(row), number):
                effort = self._effort(loops[cell])
                stage = f"run {number + 1} of {effort.processes}"
                self._launch(cell, effort, stage, counts=True)

    def _prepare(self, cell: Cell) -> bool:
        """Have the database brought into the state that the cell expects; say whether it is.

        Data that lives in the memory of one process has to be made by the process that measures.
        A contender that is zapped is so before each run of ``add``: where several contenders are
        one and the same database, each of their runs finds it empty.
        """
        if self.plan.contender(cell).sharing is Sharing.VOLATILE:
            return True
        zap = cell.benchmark == ZAPPED_BEFORE and cell.contender in self.conduct.zapped
        purpose = benchmarks()[cell.benchmark].purpose
        key = cell.contender, purpose, cell.parameters
        pack = self.conduct.pack and cell.contender not in self._packed
        idle = purpose is None and not cell.parameters.min_objects
        if not zap and not pack and (key in self._prepared or idle):
            return True
        if zap:
            # Other contenders may be the same database.
            self._prepared.clear()
        self.observer.working_on(cell, "preparing the database")
        try:
            self.launcher.do(replace(self._task(Action.PREPARE, cell), zap=zap, pack=pack))
        except WorkerFailed as error:
            self._settle_failed(cell, error.report)
            return False
        self._prepared.add(key)
        self._packed.add(cell.contender)
        return True

    def _task(self, action: Action, cell: Cell) -> Task:
        return Task(
            action,
            self.subject,
            cell.contender,
            cell,
            collector=self.conduct.collector,
            log=self.conduct.log,
            facts={**self.facts.get(cell.contender, {}), **self._treatment(cell.contender)},
            leaks=self.conduct.leaks,
        )

    def _treatment(self, contender: str) -> dict[str, str]:
        """Return what was done to the database, for the metadata."""
        return {
            "packed": "yes" if self.conduct.pack else "no",
            "zapped": "yes" if contender in self.conduct.zapped else "no",
        }

    def _measuring_task(self, cell: Cell, *, counts: bool) -> Task:
        restart = self._restarts(cell.benchmark) and cell.contender in self.served
        task = replace(self._task(Action.MEASURE, cell), restart=restart)
        if self.conduct.profiles is None or not counts:
            return task
        name = file_name(cell, self._varied)
        profiling = Profiling(str(self.conduct.profiles), name, self.conduct.profiler)
        return replace(task, profiling=profiling)

    def _calibrate(self, row: Row) -> dict[Cell, int]:
        cells = self._unsettled(row)
        batch = benchmarks()[row.benchmark].batch(row.parameters)
        if self._restarts(row.benchmark):
            # What is read a second time is in the caches of the server.
            return dict.fromkeys(cells, batch)
        if not self.plan.calibrates:
            return dict.fromkeys(cells, self.plan.effort.loops)
        once = Effort(processes=1, values=1, warmups=0, loops=batch, min_time=0.0)
        seconds: dict[Cell, float] = {}
        for cell in cells:
            took = self._launch(cell, once, "calibration", counts=False)
            if took is not None:
                seconds[cell] = took
        return choose_loops(seconds, self.plan.effort.min_time) if seconds else {}

    def _restarts(self, benchmark: str) -> bool:
        return self.conduct.restart and benchmarks()[benchmark].cold

    def _effort(self, loops: int) -> Effort:
        effort = self.plan.effort
        return Effort(effort.processes, effort.values, effort.warmups, loops, effort.min_time)

    def _unsettled(self, row: Row) -> list[Cell]:
        done = (State.FAILED, State.UNSUPPORTED)
        return [cell for cell in row.cells if self._results[cell].state not in done]

    def _launch(self, cell: Cell, effort: Effort, stage: str, *, counts: bool) -> float | None:
        """Have one worker measure a cell; return the mean of its values, or ``None``."""
        if self._lost_server(cell) or not self._prepare(cell):
            return None
        self.observer.working_on(cell, stage)
        try:
            benchmark = self.launcher.measure(self._measuring_task(cell, counts=counts), effort)
        except WorkerFailed as error:
            self._settle_failed(cell, error.report)
            return None
        if self._lost_server(cell):
            return None
        self._workers_done[cell] += 1
        if counts:
            self._results[cell] = self._results[cell].with_run(benchmark)
            self.keep(self.results)
        self.observer.worker_done(self._results[cell])
        if counts and len(self._results[cell].runs) == self.plan.effort.processes:
            self.observer.cell_done(self._results[cell], self._spared(cell))
        return float(benchmark.mean())

    def _settle_failed(self, cell: Cell, report: Report) -> None:
        if report.state == "unsupported":
            self._settle(cell, State.UNSUPPORTED, report.cause, report.detail)
        else:
            cause = self._with_end_of_server(cell, report.cause)
            self._settle(cell, State.FAILED, cause, report.detail)
        self.keep(self.results)
        if report.state != "unsupported" and self.conduct.fail_fast:
            raise GaveUp

    def _lost_server(self, cell: Cell) -> bool:
        """Say whether a server has ended that a cell needs; that fails the cell.

        Not every client would: RelStorage goes on without memcached, and others wait for long.
        """
        ended = self.obituary(cell.contender)
        if ended is not None:
            self._settle_failed(cell, Report("failed", ended))
        return ended is not None

    def _with_end_of_server(self, cell: Cell, cause: str) -> str:
        """Return *cause*, and what became of a server, unless its last words are in it already."""
        ended = self.obituary(cell.contender)
        if ended is None:
            return cause
        _, _, last_words = ended.partition(": ")
        told = " ".join(last_words.split()) in " ".join(cause.split())
        return cause if last_words and told else f"{cause}; {ended}"

    def _settle(self, cell: Cell, state: State, reason: str, detail: str = "") -> None:
        self._results[cell] = self._results[cell].without_number(state, reason, detail)
        self.observer.cell_done(self._results[cell], self._spared(cell))

    def _spared(self, cell: Cell) -> int:
        """Return how many of the workers that were expected a settled cell did not need."""
        return self.plan.workers(cell) - self._workers_done[cell]


def _rotated(cells: Sequence[Cell], number: int) -> list[Cell]:
    """Return *cells* with another one first in each round: none always follows the same one."""
    if not cells:
        return []
    start = number % len(cells)
    return [*cells[start:], *cells[:start]]
