"""Measuring a plan: row by row, the contenders of a row in turn, every cell by itself."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.outcome import Failed, Failure, State
from zodbshootout.client.storage_info import clients_together
from zodbshootout.results.cell import Cell
from zodbshootout.results.comparison import pairs_to_compare
from zodbshootout.results.estimate import runs_needed
from zodbshootout.results.ratio import ratio_of
from zodbshootout.scheduling.cells import CellTasks
from zodbshootout.scheduling.interleaved_run import InterleavedRun, RowCalibration, Worker
from zodbshootout.scheduling.plan import Plan, Row
from zodbshootout.scheduling.preparing import ZAPPED_BEFORE, Preparations
from zodbshootout.scheduling.result_store import ResultStore
from zodbshootout.scheduling.rounds import Rounds
from zodbshootout.servers import ServerFailed

MAX_CLIENTS = 128
"""Clients that wait for their turn at once, at most: each process of them takes some 15 MiB, and
some connections to its server.  A row with more of them is measured a few contenders at a time."""
VALUES_WITH_RESTARTS = 4
"""Slices of a run, before each of which a server is restarted, unless told otherwise."""


class Launcher(Protocol):
    """What starts workers: :class:`~zodbshootout.workers.launch.Launcher`."""

    def fork_server(self, modules: Sequence[str] = ()) -> AbstractContextManager[Any]:
        """Have an interpreter that forks workers."""


class Servers(Protocol):
    """The private servers: :class:`~zodbshootout.servers.running.RunningServers`."""

    @property
    def served(self) -> set[str]:
        """The names of the contenders that need one."""

    def restart_for(self, contender: str) -> None:
        """Restart what a contender needs."""

    def how_ended(self, contender: str) -> str | None:
        """Say how a server has ended that a contender needs, if one has."""


@dataclass(frozen=True)
class RunOptions:
    """What is done beside measuring."""

    log: str | None = None
    fail_fast: bool = False
    retries: int = 0
    """How often a run is made again in which a process has crashed."""
    zapped: Collection[str] = ()
    """The names of the contenders whose data is destroyed."""
    may_write: Collection[str] = ()
    """The names of the contenders that are written to whatever else is in their databases."""
    pack: bool = False
    """Whether each contender is packed before it is first measured."""
    restart: bool = False
    """Whether private servers are restarted before each value of a cold benchmark."""
    leaks: bool = False
    profiles: Path | None = None
    """The directory that profiles of the clients go to, if they do."""
    profiler: str = "cprofile"
    label: str = ""
    """What the user calls this run, for its metadata."""
    baseline: str | None = None
    """The contender that the others are compared with; the first where it is ``None``."""


@dataclass
class Shootout:
    """One pass through a plan."""

    plan: Plan
    store: ResultStore
    launcher: Launcher
    tasks: CellTasks
    servers: Servers
    options: RunOptions = field(default_factory=RunOptions)
    absent: Mapping[str, Failure] = field(default_factory=dict)
    """Why contenders could not be opened."""

    def __post_init__(self) -> None:
        self._name = secrets.token_hex(4)
        may_write = {*self.options.zapped, *self.options.may_write}
        self._preparations = Preparations(self.options.zapped, self.options.pack, may_write)

    def run(self) -> None:
        """Measure everything that can be measured.

        :raises GaveUp: after the first failure, where that is asked for
        """
        self.store.open(list(self._known_failures()))
        for rows in self._blocks():
            self._measure_rows(rows, self.plan.limit * len(rows) / len(self.plan.rows))

    def expected_metadata(self) -> dict[Cell, Mapping[str, str | int | float]]:
        """Return what is known of the runs of each cell that can be measured, before they begin."""
        impossible = {cell for cell, _ in self._known_failures()}
        return {
            cell: self.tasks.metadata(cell, restarted=self._is_restarted(cell))
            for cell in self.plan.cells
            if cell not in impossible
        }

    def _known_failures(self) -> Iterator[tuple[Cell, Failure]]:
        for cell in self.plan.cells:
            refusal = self.plan.refusal(cell)
            if refusal is not None:
                yield cell, Failure(refusal, state=State.UNSUPPORTED)
            elif cell.contender in self.absent:
                yield cell, self.absent[cell.contender]

    def _blocks(self) -> list[list[Row]]:
        """Return the rows, those apart before each of whose rounds the data of others goes."""
        zapping = [row for row in self.plan.rows if self._zaps(row)]
        return [rows for rows in (zapping, [r for r in self.plan.rows if r not in zapping]) if rows]

    def _zaps(self, row: Row) -> bool:
        return row.benchmark == ZAPPED_BEFORE and bool(self.options.zapped)

    def _measure_rows(self, rows: Sequence[Row], limit: float) -> None:
        """Make as many rounds of each row as it takes."""
        calibrations = {row.cells: self._course(row) for row in rows}
        rounds = Rounds(
            [row.cells for row in rows], self.plan.effort, limit, self._rounds_needed, self._close,
            made={row.cells: self._rounds_made(row.cells) for row in rows},
        )  # fmt: skip
        began = time.monotonic()
        for cells, number in rounds:
            self.store.observer.left(rounds.seconds_left(time.monotonic() - began))
            self._measure_round(cells, calibrations[cells], number)

    def _rounds_made(self, cells: Sequence[Cell]) -> int:
        """Return how many runs every cell of a row has already, as where a run is resumed."""
        results = map(self.store.result, self.store.unsettled(cells))
        return min((len(result.runs) for result in results), default=0)

    def _rounds_needed(self, cells: Sequence[Cell]) -> int:
        """Return the number of rounds after which a row is known with the precision asked for.

        That applies to the figure of each contender and to each ratio that the report shows.
        """
        effort = self.plan.effort
        unsettled = self.store.unsettled(cells)
        results = {cell.contender: self.store.result(cell) for cell in unsettled}
        results = {name: result for name, result in results.items() if result.measured}
        if not effort.precision or not results:
            return effort.processes if unsettled else 0
        estimates = [(result.relative, len(result.runs)) for result in results.values()]
        originals = {name: result.variant_of for name, result in results.items()}
        for pair in pairs_to_compare(originals, self.options.baseline):
            base, new = (results[name] for name in pair)
            estimates.append((ratio_of(base, new).log, min(len(base.runs), len(new.runs))))
        return max(runs_needed(estimate, runs, effort.precision) for estimate, runs in estimates)

    def _close(self, cells: Sequence[Cell]) -> None:
        unsettled = self.store.unsettled(cells)
        for cell in unsettled:
            if not self.store.result(cell).measured:
                reason = f"no time was left of the {self.plan.limit / 60:.3g} minutes (--at-most)"
                self.store.fail(cell, Failure(reason, state=State.NOT_RUN))
        self.store.close(unsettled)

    def _course(self, row: Row) -> RowCalibration[Cell]:
        fewest = benchmarks()[row.benchmark].fewest(row.parameters)
        effort = self.plan.effort
        if self._restarts(row.benchmark):
            # What is read a second time is in the caches of the server.
            values = effort.values or VALUES_WITH_RESTARTS
            effort = replace(effort, loops=fewest, values=values)
        return RowCalibration(effort, fewest)

    def _measure_round(
        self, row: Sequence[Cell], calibration: RowCalibration[Cell], number: int
    ) -> None:
        """Make one run of each cell of a row, and again those in which a process has crashed.

        Of cells that had more runs than others in a run that is resumed, it is made already.
        """
        cells, first = self._without_run(self.store.unsettled(row), number), 0
        self._tries = dict.fromkeys(cells, 0)
        while cells:
            self._again: list[Cell] = []
            first = self._make_runs(cells, calibration, number, first)
            cells = self._again

    def _make_runs(
        self, cells: Sequence[Cell], calibration: RowCalibration[Cell], number: int, first: int
    ) -> int:
        """Make a run of each cell; slices are numbered from *first* on.  Return the next number."""
        waiting = self._groups(cells)
        try:
            with self.launcher.fork_server(self.tasks.modules(cells)) as fork_server:
                while waiting:
                    left = self._measure_together(
                        fork_server, calibration, waiting.pop(0), number, first
                    )
                    waiting += [[cell] for cell in left]
                    first += calibration.all_turns  # only slices of one number are taken in turn
        except Failed as error:
            first += calibration.all_turns
            for cell in self._without_run(self.store.unsettled(cells), number):
                if cell not in self._again:
                    self._fail(cell, error.failure)
        return first

    def _without_run(self, cells: Sequence[Cell], number: int) -> list[Cell]:
        """Return the cells of which run *number*, counted from 0 on, is still to be made."""
        return [cell for cell in cells if len(self.store.result(cell).runs) <= number]

    def _groups(self, cells: Sequence[Cell]) -> list[list[Cell]]:
        """Return the cells, those together that can wait for their turn at the same time.

        A server that is restarted for one cell would not be there for the others; and nobody may
        have a database open whose data is destroyed.
        """
        groups: list[list[Cell]] = []
        for cell in cells:
            fitting = (group for group in groups if self._fits(cell, group))
            group = next(fitting, None)
            if group is None:
                groups.append([cell])
            else:
                group.append(cell)
        return groups

    def _fits(self, cell: Cell, group: Sequence[Cell]) -> bool:
        crew = cell.parameters.crew
        together = clients_together(crew, self.plan.contender(cell).hosts_together)
        if (len(group) + 1) * together > MAX_CLIENTS:
            return False
        if self._restarts(cell.benchmark):
            return not any(each.contender in self.servers.served for each in [cell, *group])
        if cell.benchmark != ZAPPED_BEFORE or cell.contender not in self.options.zapped:
            return True
        place = self.plan.contender(cell).place
        return all(self.plan.contender(each).place != place for each in group)

    def _measure_together(
        self,
        fork_server: Any,
        calibration: RowCalibration[Cell],
        group: Sequence[Cell],
        number: int,
        first: int,
    ) -> list[Cell]:
        """Make a run of each cell in turn; return the cells that may do better by themselves.

        Those could not be set up while others were, as where one file is two contenders.  The
        slices are numbered from *first* on.
        """
        parameters = group[0].parameters
        order = random.Random(f"{parameters.seed}/{group[0].benchmark}/{number}")  # noqa: S311
        left: list[Cell] = []
        prepared = [cell for cell in group if self._is_prepared(fork_server, cell)]
        with ExitStack() as stack:
            workers, failures = self._set_up(
                prepared, fork_server, stack, f"{self._name}-{number + 1}"
            )
            for cell, failure in failures.items():
                if len(group) == 1 or failure.state is State.UNSUPPORTED:
                    self._fail(cell, failure)
                else:
                    left.append(cell)
            stage = f"run {number + 1} of {max(number + 1, self._rounds_needed(group))}"
            self.store.observer.working_on(list(workers), stage)
            turns = InterleavedRun(
                workers, self._fail, before_slice=lambda cell: self._before(cell, workers[cell])
            )
            for cell, run in turns.run(calibration, order, first):
                if not self._has_lost_server(cell):
                    self.store.add_run(cell, run)
        return left

    def _set_up(
        self, cells: Sequence[Cell], fork_server: Any, stack: ExitStack, name: str
    ) -> tuple[dict[Cell, Worker], dict[Cell, Failure]]:
        """Have a worker for each cell, all set up at the same time; or why there is none.

        *name* tells this round from those of any other run.
        """
        self.store.observer.working_on(cells, "setting up")
        workers: dict[Cell, Worker] = {}
        failures: dict[Cell, Failure] = {}
        for cell in cells:
            task = self.tasks.measuring(cell, name, restarted=self._is_restarted(cell))
            try:
                workers[cell] = stack.enter_context(fork_server.measure(task))
            except Failed as error:
                failures[cell] = error.failure
        for cell, worker in list(workers.items()):
            try:
                worker.wait()
            except Failed as error:
                workers.pop(cell).abandon()
                failures[cell] = error.failure
        return workers, failures

    def _is_prepared(self, fork_server: Any, cell: Cell) -> bool:
        """Have the database brought into the state that the cell expects; say whether it is."""
        if self._has_lost_server(cell):
            return False
        step = self._preparations.due(cell, self.plan.contender(cell))
        if step is None:
            return True
        self.store.observer.working_on([cell], "preparing the database")
        try:
            fork_server.prepare(self.tasks.preparing(cell, step))
        except Failed as error:
            self._fail(cell, error.failure)
            return False
        self._preparations.done(cell, step)
        return True

    def _restarts(self, benchmark: str) -> bool:
        return self.options.restart and benchmarks()[benchmark].cold

    def _is_restarted(self, cell: Cell) -> bool:
        return self._restarts(cell.benchmark) and cell.contender in self.servers.served

    def _before(self, cell: Cell, worker: Any) -> None:
        """Restart servers before a slice, while no client has its database open."""
        if not self._is_restarted(cell):
            return
        worker.close_databases()
        try:
            self.servers.restart_for(cell.contender)
        except ServerFailed as error:
            raise Failed(Failure(str(error))) from error
        worker.reopen_databases()

    def _fail(self, cell: Cell, failure: Failure) -> None:
        if failure.crashed and self._tries[cell] < self.options.retries:
            self._tries[cell] += 1
            self._again.append(cell)
            self.store.note_crash(cell, failure)
            return
        contender = self.plan.contender(cell)
        if failure.state is State.FAILED:
            failure = replace(failure, cause=self._explained(contender.name, failure.cause))
        advice = contender.advice_on(failure.cause)
        if advice is not None:
            failure = replace(failure, cause=f"{failure.cause}; {advice}")
        self.store.fail(cell, failure)

    def _explained(self, contender: str, cause: str) -> str:
        """Return *cause*, and what became of a server, unless its last lines are in it already."""
        ended = self.servers.how_ended(contender)
        if ended is None:
            return cause
        _, _, logged = ended.partition(": ")
        told = " ".join(logged.split()) in " ".join(cause.split())
        return cause if logged and told else f"{cause}; {ended}"

    def _has_lost_server(self, cell: Cell) -> bool:
        """Say whether a server has ended that a cell needs; that fails the cell.

        Not every client would: RelStorage goes on without memcached, and others wait for long.
        """
        ended = self.servers.how_ended(cell.contender)
        if ended is not None:
            self.store.fail(cell, Failure(ended))
        return ended is not None
