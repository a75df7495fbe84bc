"""What a worker does: look at a contender, prepare its database, or measure a cell.

pyperf's Runner drives what is measured, in its worker mode: it counts warm-ups and values, applies
hooks and traces memory.  Between values a worker waits for its turn.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial, singledispatch
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyperf

from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.masking import Mask
from zodbshootout.client.outcome import failure_of
from zodbshootout.client.tasks import carry_out
from zodbshootout.crews.crew import Crew
from zodbshootout.crews.hosts import hosts_crew
from zodbshootout.crews.interpreters import LogSettings, carried_out
from zodbshootout.crews.logs import configure_logging
from zodbshootout.crews.profiling import Profiler, profiler_for
from zodbshootout.crews.remote import Recording, StartCrew, remote_crew
from zodbshootout.crews.sample import Sample
from zodbshootout.crews.starting import plan_of
from zodbshootout.workers.environment import for_storages
from zodbshootout.workers.leaks import Growth
from zodbshootout.workers.profiles import PREFIX, collect
from zodbshootout.workers.summary import storable, summarize
from zodbshootout.workers.task import (
    Assignment,
    Begin,
    CloseDatabases,
    Done,
    Finish,
    Measure,
    PrepareSlice,
    ReopenDatabases,
    Slice,
    TakeSlice,
    Try,
)


def work(connection: Connection, runner: pyperf.Runner) -> int:
    """Do what comes over *connection*, with a *runner* that nothing has run yet.

    Return an exit status.

    What goes wrong is answered with a :class:`~zodbshootout.client.outcome.Failure`.
    """
    # A client with a copy of it would keep the other end from seeing that this process has ended.
    os.register_at_fork(after_in_child=connection.close)
    try:
        assignment: Assignment = connection.recv()
        hello = LogSettings(assignment.log, assignment.secrets)
        configure_logging(hello.log, Mask(hello.secrets))
        runner_with = partial(_started, runner, assignment.options)
        _carry_out(assignment.task, Orders(connection), hello, runner_with)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is this cell's failure
        connection.send(failure_of(error))
    else:
        return 0
    return 1


class Orders:
    """The worker's end of the connection to who started it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def answer(self, answer: object) -> None:
        """Answer what was ordered last."""
        self._connection.send(answer)

    def next(self) -> Any:
        """Wait for the next order; meanwhile greenlets have their turn."""
        select.select([self._connection], [], [])
        return self._connection.recv()


RunnerWith = Callable[[Begin], pyperf.Runner]
"""Returns pyperf's Runner in its worker mode, set to so many values and loops."""


def _started(runner: pyperf.Runner, options: Sequence[str], begin: Begin) -> pyperf.Runner:
    numbers = (f"--{name}={getattr(begin, name)}" for name in ("values", "warmups", "loops"))
    runner.parse_args(["--worker", "--worker-task=0", *numbers, *options])
    return runner


@singledispatch
def _carry_out(task: Any, orders: Orders, hello: LogSettings, runner_with: RunnerWith) -> None:  # noqa: ARG001
    interpreter = task.storage.interpreter
    found = carry_out(task) if interpreter is None else carried_out(interpreter, task, hello)
    orders.answer(found)


@_carry_out.register
def _measure(task: Measure, orders: Orders, hello: LogSettings, runner_with: RunnerWith) -> None:
    parts = task.run_file.with_name("profiles")
    profiler = _profiler(task, parts)
    with _crew(task, hello, profiler, parts) as crew:
        measuring = Measuring(task, crew, orders, profiler)
        orders.answer(Done())
        begin = measuring.until_begun()
        runner = runner_with(begin)
        orders.answer(Done())
        specification = task.specification
        together = benchmarks()[specification.benchmark].batch(specification.parameters)
        metadata = {**task.metadata, "iterations_timed_together": min(together, begin.loops)}
        run = runner.bench_time_func(specification.benchmark, measuring.value, metadata=metadata)
        measuring.until_finished()
        crew.verify()
    counted = measuring.samples[begin.warmups :]
    numbers = measuring.numbers[begin.warmups :]
    run.update_metadata(storable(summarize(counted, numbers, crew.hosts, crew.clock_uncertainty)))
    run.dump(str(task.run_file), replace=True)
    _collect_profiles(task, parts)
    orders.answer(Done())


def _crew(
    task: Measure, hello: LogSettings, profiler: Profiler, parts: Path
) -> AbstractContextManager[Crew]:
    """Return the crew where its clients are to live, every one of them set up."""
    if task.cluster is not None:
        variables = for_storages(os.environ, task.variables)
        return hosts_crew(task.cluster, StartCrew(task.specification), hello, variables)
    interpreter = task.storage.interpreter
    if interpreter is None:
        return plan_of(task.specification, profiler).started()
    profiling = Recording(task.profiling.profiler, str(parts)) if task.profiling else None
    return remote_crew(interpreter, StartCrew(task.specification, profiling), hello)


class Measuring:
    """A crew at the disposal of whoever orders its slices."""

    def __init__(self, task: Measure, crew: Crew, orders: Orders, profiler: Profiler) -> None:
        self._task = task
        self._crew = crew
        self._orders = orders
        self._profiler = profiler
        self._growth = Growth() if task.leaks else None
        self._loops = 0
        self.samples: list[Sample] = []
        self.numbers: list[int] = []
        """The numbers of the slices that :attr:`samples` were taken in."""

    def until_begun(self) -> Begin:
        """Do what is ordered before the slices that count."""
        begin: Begin = self._until(Begin)
        self._loops = begin.loops
        return begin

    def until_finished(self) -> None:
        """Do what is ordered after the slices that count."""
        self._until(Finish)

    def value(self, loops: int) -> float:
        """Wait for the turn of this worker; return the seconds that *loops* iterations take."""
        order: TakeSlice = self._until(TakeSlice)
        with self._profiler.recording():
            sample = self._crew.measure(loops)
        self.samples.append(sample)
        self.numbers.append(order.number)
        if self._growth is not None:
            cell = f"{self._task.metadata['contender']}: {self._task.specification.benchmark}"
            lines = self._growth.lines(cell, self.samples)
            print(*lines, sep="\n", flush=True)  # noqa: T201
        self._orders.answer(Slice(sample.value, sample.on_clock))
        return sample.value * loops

    def _until(self, kind: type) -> Any:
        answers: dict[type, Callable[[Any], object]] = {
            Try: self._try,
            PrepareSlice: self._prepare_slice,
            CloseDatabases: self._close_databases,
            ReopenDatabases: self._reopen_databases,
        }
        while not isinstance(order := self._orders.next(), kind):
            self._orders.answer(answers[type(order)](order))
        return order

    def _prepare_slice(self, _: PrepareSlice) -> Done:
        self._crew.prepare(self._loops)
        return Done()

    def _close_databases(self, _: CloseDatabases) -> Done:
        self._crew.close_databases()
        return Done()

    def _reopen_databases(self, _: ReopenDatabases) -> Done:
        self._crew.reopen_databases()
        return Done()

    def _try(self, order: Try) -> Slice:
        sample = self._crew.measure(order.loops, counts=False)
        return Slice(sample.value, sample.on_clock)


def _profiler(task: Measure, parts: Path) -> Profiler:
    if task.profiling is None:
        return Profiler()
    parts.mkdir()
    if task.storage.interpreter is not None:
        return Profiler()  # the other Python has one
    unit = task.specification.parameters.crew.client_kind
    return profiler_for(task.profiling.profiler, unit, parts)


def _collect_profiles(task: Measure, parts: Path) -> None:
    if task.profiling is None:
        return
    try:
        collect(parts, task.profiling)
    except OSError as error:
        print(f"{PREFIX}{task.profiling.name} could not be written: {error}", flush=True)  # noqa: T201
