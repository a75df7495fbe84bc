"""The measurement of a plan: contenders take turns, and each cell has processes of its own."""

from __future__ import annotations

import random
import secrets
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.model.grouping import grouped
from zodbshootout.model.outcome import Failed, Failure, State
from zodbshootout.model.specification import (
    RESTARTS,
    Interpreter,
    Specification,
)
from zodbshootout.model.storage_facts import Place, Sharing, clients_together
from zodbshootout.results.cell import Cell
from zodbshootout.results.estimate import MIN_RUNS
from zodbshootout.results.trend import FALSE_TRENDS
from zodbshootout.scheduling.calibration import RowCalibration, loops_at_rate, slices_at_rate
from zodbshootout.scheduling.distances import calibrations_for
from zodbshootout.scheduling.failures import Failures
from zodbshootout.scheduling.fork_servers import ForkServers
from zodbshootout.scheduling.interleaved_run import InterleavedRun
from zodbshootout.scheduling.laps import carry_out
from zodbshootout.scheduling.machine_load import MachineLoad, load_now
from zodbshootout.scheduling.operations import (
    Operator,
    Phases,
    Restart,
    is_elsewhere,
    loops_of_phase,
)
from zodbshootout.scheduling.orders import Tasks
from zodbshootout.scheduling.plan import Row
from zodbshootout.scheduling.result_store import ResultStore
from zodbshootout.scheduling.rounds import Rounds
from zodbshootout.scheduling.server_meter import ServerMeter
from zodbshootout.scheduling.setting_up import SettingUp
from zodbshootout.scheduling.stop_rules import Fixed, Lasting, Precise, StopRule, Succession
from zodbshootout.scheduling.traffic_counts import TrafficCounts
from zodbshootout.servers.running import RunningServers
from zodbshootout.workers.coordinator import ForkServer, Worker

MAX_CLIENTS = 128
"""The maximum number of clients that are set up at the same time: each client takes a process of
some 15 MiB, and connections to a server.  A row that needs more is measured in groups of
contenders."""
MAX_OVERLAPPING = 32
"""The maximum number of clients of two rows together, if one is set up before the other has ended.
More might need more connections than a server accepts."""
OVERHEAD = 0.45
"""Seconds that each contender adds to a run besides its slices; assumed until a round is made."""


@dataclass
class Shootout:
    """The measurement of a plan."""

    tasks: Tasks
    store: ResultStore
    fork_servers: ForkServers
    servers: RunningServers
    clock: Callable[[], float] = time.monotonic
    load: Callable[[], MachineLoad] = load_now
    carry_out: Callable[..., None] = carry_out
    """See :attr:`InterleavedRun.carry_out`."""

    def __post_init__(self) -> None:
        self.plan, self.options = self.tasks.plan, self.tasks.options
        self._id = secrets.token_hex(4)
        retries = 0 if self.plan.effort.duration else self.options.retries
        self._traffic = TrafficCounts(self.tasks, self.store.observer)
        self._failures = Failures(
            self.plan, self.store, self.servers, retries, self._traffic.connections
        )
        self._stage = ""
        """The number of this round, as the observer shows it."""
        self._left = 0.0
        """The seconds to the end of the block, as estimated when this round began."""
        self._rounds: Rounds[Row]
        """The rounds of the rows of the current block; see :meth:`_blocks`."""
        self._ahead = SettingUp()
        """The workers of the next round, if they were started during the current one."""
        self._calibrations: dict[Row, RowCalibration[Cell]] = {}
        self._generation = 0
        """The number of the fork servers' generation; see :class:`ForkServers`."""
        self._used: dict[Row, int] = {}
        """The latest generation that each row has used."""

    def run(self) -> None:
        """Measure everything that can be measured.

        :raises UserError: after the first failure, with ``--fail-fast``, or if a relay cannot be
            calibrated
        """
        known = ((cell, self.plan.failure(cell)) for cell in self.plan.cells)
        self.store.fail_cells([(cell, failure) for cell, failure in known if failure is not None])
        self.tasks.calibrations = calibrations_for(
            self.plan, self.tasks.cluster, self.store.observer
        )
        for rows in self._blocks():
            self._measure_rows(rows, self.plan.limit * len(rows) / len(self.plan.rows))

    def expected_metadata(self) -> dict[Cell, Mapping[str, str | int | float]]:
        """Return the metadata that runs of the measurable cells will have."""
        return {
            cell: self.tasks.metadata(cell)
            for cell in self.plan.cells
            if self.plan.failure(cell) is None
        }

    def _blocks(self) -> list[list[Row]]:
        """Return the rows in blocks, which are measured in order; rows of a block may take turns.

        Rows with more objects in the database come later, because the database only grows.
        Among rows with equally many objects, rows that zap contenders come first, because they
        destroy the data of other rows.
        """
        blocks = grouped(
            ((row[0].parameters.min_objects, not any(map(self.tasks.zaps, row))), row)
            for row in self.plan.rows
        )
        return [blocks[key] for key in sorted(blocks)]

    def _measure_rows(self, rows: Sequence[Row], limit: float) -> None:
        """Make the rounds that each row needs, as far as *limit* seconds allow."""
        self._calibrations = {row: self._calibration(row) for row in rows}
        made = {row: self._rounds_made(row) for row in rows}
        effort = self.plan.effort
        self._rounds = Rounds(
            rows, effort, limit, self._rounds_needed, self._close, self.clock, made,
            assured=self.plan.assured_runs,
        )  # fmt: skip
        try:
            for row, number in self._rounds:
                self._left = self._rounds.seconds_left
                self.store.observer.left(self._left)
                self._stage = f"run {number + 1} of {self._rounds.expected(row)}"
                self._measure_round(row, number)
        finally:
            with self._ahead:
                self._ahead = SettingUp()

    def _rounds_made(self, cells: Sequence[Cell]) -> int:
        """Return the number of runs that every cell of a row already has, after ``--resume``."""
        results = map(self.store.result, self.store.unsettled(cells))
        return min((len(result.runs) for result in results), default=0)

    def _rounds_needed(self, cells: Sequence[Cell]) -> int:
        """Return how many rounds a row needs in all."""
        results = list(map(self.store.result, self.store.unsettled(cells)))
        return self._rule.wanted(results) if results else 0

    @property
    def _rule(self) -> StopRule:
        effort = self.plan.effort
        if not effort.precision:
            return Fixed(effort.processes)
        # Each round tests for trends again; so the test is 20 times as strict as in reports.
        level = FALSE_TRENDS / 20 / len(self.plan.rows)
        return Precise(effort.precision, effort.processes, self.plan.baseline, level)

    def _close(self, cells: Sequence[Cell]) -> None:
        for cell in self.store.unsettled(cells):
            if not self.store.result(cell).measured:
                reason = f"no time was left of the {self.plan.limit / 60:.3g} minutes (--at-most)"
                self.store.fail(cell, Failure(reason, state=State.NOT_RUN))
        self.store.close(cells)

    def _run_time(self, row: Row) -> float:
        """Return how many seconds the slices of one contender may take in a run.

        If time is short, runs become shorter, but not shorter than what they take besides slices;
        then their number becomes smaller.
        """
        effort = self.plan.effort
        if not effort.precision:
            return self._calibrations[row].effort.run_time
        overheads = [
            seconds / len(self._measurable(other)) - self._calibrations[other].effort.run_time
            for other, seconds in self._rounds.took.items()
            if self._calibrations[other].turns_chosen
        ]
        overhead = max(0.0, statistics.fmean(overheads)) if overheads else OVERHEAD
        wanted, longest = (
            self._rounds.affordable(row, fewest) / len(self._measurable(row)) - overhead
            for fewest in (effort.processes, MIN_RUNS)
        )
        return min(effort.run_time, max(wanted, min(overhead, longest), 0.0))

    def _calibration(self, row: Row) -> RowCalibration[Cell]:
        cell = row[0]
        benchmark = benchmarks()[cell.benchmark]
        shape = benchmark.shape(cell.parameters)
        effort = self.plan.effort
        if benchmark.traits.lengthy:
            loops, values = effort.loops or 1, effort.values or 1
            effort = replace(effort, loops=loops, values=values, warmups=0)
            counts = dict.fromkeys(row, loops)
            return RowCalibration(effort, shape.fewest, loops=counts, tries_first=False)
        if cell.parameters.during:
            counts = dict.fromkeys(row, loops_of_phase(cell.parameters))
            effort = replace(effort, values=1, warmups=0)
            return RowCalibration(effort, shape.fewest, loops=counts)
        if effort.duration:
            effort = effort.lasting(len(self._measurable(row)))
        loops, numbered = loops_at_rate(cell.parameters), benchmark.traits.numbered
        if not loops:
            at_once = shape.most_at_once if self._has_laps(row) else 0
            return RowCalibration(effort, shape.fewest, numbered, at_once=at_once)
        usual = slices_at_rate(cell.parameters, effort.run_time) if effort.duration else 1
        effort = replace(effort, values=effort.values or usual)
        return RowCalibration(effort, shape.fewest, numbered, dict.fromkeys(row, loops))

    def _has_laps(self, row: Row) -> bool:
        """Return whether several slices of a contender may be prepared together.

        If contenders share a database, the preparation of one would change what the other reads or
        how much its database grows.  Clients on other hosts get each order from the coordinator.
        """
        places = [self.plan.contender(cell).place for cell in row]
        is_shared = len(set(places)) < len(places)
        listed_after_each = self.tasks.options.leaks
        is_numbered = benchmarks()[row[0].benchmark].traits.numbered
        return not (is_shared or listed_after_each or is_numbered or self.tasks.cluster)

    def _measure_round(self, row: Row, number: int) -> None:
        """Make one run of each cell of a row, and repeat the runs in which a process crashed."""
        self._generation = self._used[row] = self._generation_of(row)
        cells = self._cells_of(row, number)
        first = number * self._calibrations[row].all_turns
        self._failures.begin_round(cells)
        while cells:
            self._failures.again = []
            first = self._make_runs(row, cells, number, first)
            cells = self._failures.again

    def _cells_of(self, row: Row, number: int) -> list[Cell]:
        """Return the cells to measure in a round."""
        # After --resume, a cell may already have its run of this round.
        known = self.store.unsettled(row)
        return [cell for cell in known if len(self.store.result(cell).runs) <= number]

    def _make_runs(self, row: Row, cells: Sequence[Cell], number: int, first: int) -> int:
        """Make a run of each cell, with slices numbered from *first*; return the next number."""
        waiting = self._groups(cells)
        while waiting:
            group = waiting.pop(0)
            later = self._measure_together(
                row, group, number, first, is_whole=len(group) == len(cells)
            )
            waiting += [[cell] for cell in later]
            first += self._calibrations[row].all_turns  # only slices taken in turn share a number
        return first

    def _generation_of(self, row: Row) -> int:
        """Return the generation of the next round of a row, which needs another one each time."""
        return max(self._generation, self._used.get(row, -1) + 1)

    def _fork_server(
        self, interpreter: Interpreter | None, generation: int | None = None
    ) -> ForkServer:
        """Return the fork server of a Python, by default in the generation of this round."""
        modules = self.tasks.modules(interpreter)
        number = self._generation if generation is None else generation
        return self.fork_servers.of_generation(number, interpreter, modules)

    def _measurable(self, row: Row) -> list[Cell]:
        return [cell for cell in row if self.plan.failure(cell) is None] or list(row)

    def _groups(self, cells: Sequence[Cell]) -> list[list[Cell]]:
        """Group the cells whose clients can be set up at the same time.

        No client may have a database open while a preparation destroys the data.  The phases of a
        contender form one group.
        """
        if cells and cells[0].parameters.during:
            return list(grouped((cell.title, cell) for cell in cells).values())
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
        if not (self.tasks.zaps(cell) or benchmarks()[cell.benchmark].traits.alone):
            return True
        place = self.plan.contender(cell).place
        return all(self.plan.contender(other).place != place for other in group)

    def _measure_together(
        self, row: Row, group: Sequence[Cell], number: int, first: int, *, is_whole: bool
    ) -> list[Cell]:
        """Make a run of each cell of a *group*, in turn; slices are numbered from *first* on.

        Return the cells that could not be set up with the others.  Such a cell may succeed alone,
        for instance if two contenders use the same file.  If the group *is_whole*, the next round
        may begin while the crews check their work.
        """
        calibration, parameters = self._calibrations[row], group[0].parameters
        order = random.Random(f"{parameters.seed}/{group[0].benchmark}/{number}")  # noqa: S311
        prepared = self._prepared(row, group[:1] if parameters.during else group)
        with self._set_up(row, prepared, number) as setting_up, ExitStack() as stack:
            self.fork_servers.pause()
            workers = setting_up.workers
            later = self._not_set_up(setting_up.failures, alone=len(prepared) == 1)
            # While servers restart, they have no processes whose use of resources could be read.
            restarts = parameters.during in RESTARTS
            meter = ServerMeter(RunningServers() if restarts else self.servers)
            try:
                runs = self._succession(group, workers, stack)
            except Failed as error:  # what carries out an operation could not be started
                self._failures.add(group[0], error.failure)
                return later
            turns = InterleavedRun(
                workers,
                self._fail_run,
                has_tried=setting_up.tries_first,
                meter=meter,
                carry_out=self.carry_out,
                runs=runs,
                clock=self.clock,
                run_time=partial(self._run_time, row),
            )
            if is_whole and not later:
                turns.while_checked = partial(self._begin_next, row, group, number)
            made: list[tuple[Cell, Any]] = []
            while turns.workers and not runs.has_ended:
                self.store.observer.working_on(list(workers), runs.stage or self._stage)
                if runs.stage:
                    self.store.observer.left(max(0.0, self._left - runs.elapsed))
                taken = {"command_id": self._id, "round": number + runs.rounds + 1}
                load: dict[str, float] = {}
                load_before = self.load()
                for cell, run in turns.run(calibration, order, first):
                    load = load or self.load().since(load_before)
                    if self._failures.has_lost_server(cell):
                        turns.workers.pop(cell).abandon()
                        continue
                    run.update_metadata({**taken, **load})
                    run.update_metadata(meter.metadata(cell, calibration.effort.warmups))
                    run.update_metadata(self._traffic.metadata(cell))
                    made.append((runs.labelled(cell, run), run))
                    self._keep(made, runs)
                first += calibration.all_turns
                if not runs.has_ended:
                    self.store.save_new()
        return later

    def _keep(self, made: list[tuple[Cell, Any]], runs: Succession[Cell]) -> None:
        """Put the runs that were *made* into the results, unless they are of use only together."""
        while made and (runs.has_ended or not runs.is_whole_only):
            self.store.add_run(*made.pop(0))

    def _succession(
        self, group: Sequence[Cell], workers: Mapping[Cell, Worker], stack: ExitStack
    ) -> Succession[Cell]:
        """Return the runs that the *workers* of a *group* make in a round."""
        if self.plan.effort.duration:
            return Lasting(self.plan.effort.duration, self.clock)
        if not group[0].parameters.during or not workers:
            return Succession()
        ((cell, worker),) = workers.items()
        operation = None if cell.parameters.during in RESTARTS else self.tasks.operation(cell)
        return Phases(group, worker, self._operator(cell, operation, worker, stack), operation)

    def _not_set_up(self, failures: Mapping[Cell, Failure], *, alone: bool) -> list[Cell]:
        """Return the cells to set up again without others; record the failures of the rest."""
        later = []
        for cell, failure in failures.items():
            if alone or failure.state is State.UNSUPPORTED:
                self._failures.add(cell, failure)
            else:
                later.append(cell)
        return later

    def _begin_next(self, row: Row, group: Sequence[Cell], number: int) -> None:
        """Begin the next round while the crews of *group*, which are in use, check their work."""
        following = self._rounds.following(row)
        if following is not None:
            cells = self._cells_of(*following)
            if early := self._early(group, cells):
                self._start(*following, cells, self._generation_of(following[0]), early)
        if self._rounds.expected(row) > number + 1:
            self.fork_servers.start_next(self._generation + 1)

    def _early(self, group: Sequence[Cell], later: Sequence[Cell]) -> list[Cell]:
        """Return those *later* cells whose crews may be set up before those of *group* end."""
        if self.tasks.cluster or self.plan.effort.duration or len(self._groups(later)) != 1:
            return []
        in_the_way = {
            self.plan.contender(cell).place
            for cell in [*group, *later]
            if self.plan.contender(cell).info.sharing is Sharing.EXCLUSIVE
            or self.plan.contender(cell).info.server_place not in (None, Place.PRIVATE)
            or benchmarks()[cell.benchmark].traits.alone
            or self.tasks.zaps(cell)
            or cell.parameters.during
        }
        early = [
            cell
            for cell in later
            if self.plan.contender(cell).place not in in_the_way
            and self.tasks.preparation(cell) is None
            and self._traffic.is_counted(cell)
        ]
        clients = sum(cell.parameters.crew.size for cell in [*group, *early])
        return early if clients <= MAX_OVERLAPPING else []

    def _prepared(self, row: Row, group: Sequence[Cell]) -> list[Cell]:
        """Prepare databases and count traffic if necessary; return the cells without failures."""
        began = self.clock()
        prepared = [cell for cell in group if self._prepare(cell) and self._count_traffic(cell)]
        if not any(map(self.tasks.zaps, group)):
            self._rounds.spend_once(row, self.clock() - began)
        return prepared

    def _operator(
        self,
        cell: Cell,
        operation: Specification | None,
        worker: Worker,
        stack: ExitStack,
    ) -> Operator:
        """Return the operator for the *operation* of a cell; ``None`` stands for a restart."""
        if operation is None:
            by_force = cell.parameters.during == RESTARTS[0]
            restart = Restart(self.servers, cell.title, worker, by_force=by_force)
            return stack.enter_context(restart)
        contender = self.plan.contender(cell)
        if not is_elsewhere(contender, cell.parameters):
            return worker
        fork_server = self._fork_server(contender.storage.interpreter)
        return stack.enter_context(fork_server.operate(operation, self.tasks.calibrations))

    def _set_up(self, row: Row, cells: Sequence[Cell], number: int) -> SettingUp:
        """Set up the workers of the cells of a round, unless they were started already.

        If any that were started early cannot be set up, all are set up again: they may have lacked
        what the round before still used, such as a connection.
        """
        self.store.observer.working_on(cells, "setting up")
        is_ready = (self._ahead.cells, self._ahead.number) == (cells, number)
        if is_ready:
            self._ahead.start(self.tasks, self._fork_server, cells)
            self.store.save_new()
            self._ahead.wait()
        if not is_ready or self._ahead.failures:
            self._start(row, number, cells, self._generation, cells)
            self.store.save_new()
            self._ahead.wait()
        setting_up, self._ahead = self._ahead, SettingUp()
        return setting_up

    def _start(
        self, row: Row, number: int, cells: Sequence[Cell], generation: int, first: Sequence[Cell]
    ) -> None:
        """Start the workers of the *first* cells of a round, in place of others already started."""
        calibration = self._calibrations[row]
        is_timed = not calibration.decided(cells)
        with self._ahead:
            self._ahead = SettingUp(cells, number, calibration.tries_first and not is_timed)
        self._ahead.start(self.tasks, partial(self._fork_server, generation=generation), first)

    def _prepare(self, cell: Cell) -> bool:
        """Bring the database into the state that the cell expects; return false after a failure."""
        if self._failures.has_lost_server(cell):
            return False
        task = self.tasks.preparation(cell)
        if task is None:
            return True
        self.store.observer.working_on([cell], "preparing the database")
        try:
            interpreter = task.specification.storage.interpreter
            self._fork_server(interpreter).prepare(task)
        except Failed as error:
            self._failures.add(cell, error.failure)
            return False
        self.tasks.prepared(cell, task)
        return True

    def _count_traffic(self, cell: Cell) -> bool:
        """Count one client's traffic if necessary; return whether all servers still run."""
        self._traffic.count(cell, self._fork_server)
        return not self._failures.has_lost_server(cell)

    def _fail_run(self, cell: Cell, failure: Failure) -> None:
        """Fail a cell whose clients have ended.

        If its benchmark needs an empty database, empty the database again.  If the clients'
        objects were left there, the next run with ``--data`` would take them for the user's data,
        and refuse to write.
        """
        empties = benchmarks()[cell.benchmark].traits.empties
        if empties and self.servers.how_ended(cell.title) is None:
            task = self.tasks.preparation(cell)
            assert task is not None
            interpreter = task.specification.storage.interpreter
            with suppress(Failed):
                self._fork_server(interpreter).prepare(replace(task, may_write=True))
        self._failures.add(cell, failure)
