"""Take slices when the coordinator requests them; in a slice, a worker's clients do iterations.

pyperf's Runner, in its worker mode, drives a measurement: it counts warm-ups and values, applies
hooks and traces memory.  Between values a worker waits for its turn.
"""

from __future__ import annotations

import math
import os
import random
import select
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from typing import Any

import pyperf

from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.connections import Socket
from zodbshootout.client.operation import OPERATION_CALLS, Operation
from zodbshootout.client.protocol import Call
from zodbshootout.client.recovery import HUNDRED
from zodbshootout.crews.cluster import Cluster
from zodbshootout.crews.crew import Crew, Sample
from zodbshootout.model.arrivals import KEPT_UP, MIN_ITERATIONS, lead
from zodbshootout.model.latencies import NANOSECONDS
from zodbshootout.model.outcome import Unsupported
from zodbshootout.model.specification import Interpreter, Specification, exactly
from zodbshootout.network.calibration import Calibration
from zodbshootout.workers.baton import Baton
from zodbshootout.workers.connection_count import ConnectionCount
from zodbshootout.workers.disk_growth import DiskGrowth
from zodbshootout.workers.rate_search import MAX_STEPS, RateSearch
from zodbshootout.workers.summary import Metadata, distance_metadata, summarize

Calibrations = Mapping[str, Mapping[float, Calibration]]
"""The calibrations of relays, by host name (empty for this host) and round-trip time in seconds."""
LEAKS_PREFIX = "leaks: "
"""The prefix of lines about leaks that a worker prints for the user."""
SLICE_CALLS = frozenset(
    {
        "attempt", "prepare_lap", "recovered", *OPERATION_CALLS,
    }
)  # fmt: skip
"""The methods of :class:`Measuring` that the coordinator may call between slices."""
MAX_SLICES = 1000
"""If a run has a single value of all its slices: the maximum number of slices with numbers of their
own."""
MAX_SHIFT = 1.03
"""A search begins at most this factor above or below the result of an earlier run."""
COARSE_PART = 0.3
"""The first slices of a search have this fraction of the usual iterations."""
LISTED_CLASSES = 10
"""The maximum number of classes listed after a value, by descending growth."""


@dataclass(frozen=True)
class Measure:
    """The task of measuring a storage with a benchmark."""

    specification: Specification
    metadata: Mapping[str, str | int | float]
    """The metadata that are known before the run."""
    tries_first: bool = False
    """Whether each client does a first iteration as soon as it is set up.  Otherwise, the
    coordinator requests it, to know how long it takes."""
    leaks: bool = False
    """Whether to list, after each value, the classes with more objects than ever before."""
    profile: str | None = None
    """The path of the clients' profile without suffix; ``None`` for no profile."""
    cluster: Cluster | None = None
    """The cluster whose hosts run the clients; ``None`` if they are on this host."""
    variables: Sequence[str] = ()
    """The names of environment variables that clients on other hosts need."""
    calibrations: Calibrations = field(default_factory=dict)

    @property
    def interpreter(self) -> Interpreter | None:
        """The worker's Python; ``None`` for the command's Python.

        If a cluster runs the clients, the worker always has the command's Python.
        """
        return None if self.cluster is not None else self.specification.storage.interpreter


@dataclass(frozen=True)
class Turns:
    """The turns of a worker in a lap: slices that are prepared together, and checked together."""

    plan: Sequence[int] = (0,)
    """For each slice of the lap, in order, the index of the worker that takes it."""
    own: int = 0
    """The index of this worker."""
    directory: str = ""
    """The directory of the :class:`Baton`; empty for a worker that need not wait for others."""


@dataclass(frozen=True)
class Slice:
    """The result of a slice."""

    value: float
    """Seconds per iteration of one client."""
    on_clock: float
    """Seconds from the start until the last client had done its counted iterations."""
    goes_on: bool = False
    """Whether the search for the value goes on in another slice."""
    done: int = 0
    """Iterations of all clients, including uncounted ones."""
    start: float = 0.0
    """The instant at which the slice started, in seconds of the clients' clock."""
    end: float = 0.0
    """The instant at which the last client had done its counted iterations."""
    p99: float = 0.0
    """The 99th percentile of the slice's latencies, in seconds."""


def received(connection: Connection) -> Call:
    """Wait for the next call, and let other greenlets run meanwhile.

    :raises EOFError: if the other end is closed
    """
    select.select([connection], [], [])
    call: Call = connection.recv()
    return call


class Measuring(Operation):
    """Takes slices with a crew, whenever the coordinator requests one.

    If the clients share a DB that no other process can open, this process also carries out the
    operation of ``--during``, such as a pack.
    """

    def __init__(self, task: Measure, crew: Crew, connection: Connection) -> None:
        super().__init__(lambda: crew.database)
        self.task = task
        self._crew = crew
        self._connection = connection
        self._growth = Growth() if task.leaks else None
        parameters = task.specification.parameters
        self._rate, self._limit = parameters.rate, parameters.limit
        self._continues = parameters.continues
        """Whether a run has a single value, which is that of all its slices."""
        self._steps = 0
        """The number of slices so far that belong to the current value."""
        self._put_back: Call | None = None
        """A call that was received, but not for whoever received it."""
        self._clients = parameters.crew.size
        self._search: RateSearch | None = None
        self._slices: list[Slice] = []
        """The slices of the current lap that have a value."""
        self._held: Sample | None = None
        """The search's latest slice that has kept the limit."""
        self.expected = 0.0
        """The latest value of an earlier run, around which a search begins; 0 if there is none."""
        self._writes = benchmarks()[task.specification.benchmark].traits.writes
        self.disk_growth = DiskGrowth(crew, writes=self._writes)
        self.connections = ConnectionCount(crew)
        self.loops = 0
        """Iterations of each client in a slice; the first slices of a search have fewer."""
        self._lap: list[int] = []
        """The numbers of the slices of the current lap that have no value yet."""
        self._taken: list[Sample] = []
        """The samples of the current lap that have no value yet."""
        self.samples: list[Sample] = []
        """The samples of this run; those of warm-ups are removed at its end."""
        self.numbers: list[int] = []
        """The slice number of each value; 0 for the value of all slices of a run."""

    def run(self, runner: pyperf.Runner, options: Sequence[str]) -> pyperf.Benchmark:
        """Have pyperf take all values of the next run; return the run.

        :raises Unsupported: if a hook is not installed, or clients cannot begin at the rate
        """
        loops, values, warmups, self.expected = self.until("begin")
        self.samples, self.numbers = [], []
        self.disk_growth = DiskGrowth(self._crew, writes=self._writes)
        self.connections = ConnectionCount(self._crew)
        self.loops = loops
        if runner.args is None:
            self._parse(runner, options)
            self.check_rate()
        else:
            runner.args.worker_task += 1
        runner.args.loops, runner.args.values, runner.args.warmups = loops, values, warmups
        self._connection.send(None)
        specification = self.task.specification
        benchmark = benchmarks()[specification.benchmark]
        batch = benchmark.shape(specification.parameters).batch
        metadata = {**self.task.metadata, "iterations_timed_together": min(batch, loops)}
        # A Runner accepts each name only once.
        name = f"{specification.benchmark} {runner.args.worker_task}"
        run = runner.bench_time_func(name, self.value, metadata=metadata)
        run.update_metadata({**self.disk_growth.metadata(), **self.connections.metadata()})
        if "for_s" in self.task.metadata:
            run.update_metadata(self._sizes())
        del self.samples[:warmups], self.numbers[:warmups]
        return run

    def _sizes(self) -> dict[str, int]:
        """Return the memory of the largest client and, if it is known, the size of the database."""
        size = self.disk_growth.size().data
        sizes = {"client_memory_now_bytes": max(self._crew.call("memory"))}
        return sizes if size is None else {**sizes, "database_bytes": size}

    def _parse(self, runner: pyperf.Runner, options: Sequence[str]) -> None:
        if not hasattr(os, "sched_setaffinity"):  # PyPy inherits the affinity
            options = [option for option in options if not option.startswith("--affinity")]
        try:
            # run() replaces these numbers.
            numbers = ["--worker-task=0", "--loops=1", "--warmups=0"]
            runner.parse_args(["--worker", *numbers, *options])
        except SystemExit:  # the command has checked the options in its own Python
            raise Unsupported("its environment does not have the hook of --hook") from None

    def is_last(self) -> bool:
        """Wait for ``finish``, and return whether the run was the last one."""
        (is_last,) = self.until("finish")
        return bool(is_last)

    def summary(self) -> Metadata:
        crew = self._crew
        summary = summarize(self.samples, self.numbers, crew.hosts, crew.clock_uncertainty)
        return {**summary, **distance_metadata(crew.delivered())}

    def until(self, name: str) -> tuple[Any, ...]:
        """Answer calls until *name* is called; leave this call unanswered; return its arguments."""
        return self._next(name).args

    def _next(self, *names: str) -> Call:
        while True:
            call = self._put_back or received(self._connection)
            self._put_back = None
            if call.name in names:
                return call
            self._connection.send(call.on(self, SLICE_CALLS))

    def check_rate(self) -> None:
        """Check that clients can begin iterations at the requested rate.

        :raises Unsupported: if empty iterations cannot keep up with the rate
        """
        if not self._rate:
            return
        sendable = self._crew.sendable_rate()
        if self._rate > sendable:
            raise Unsupported(
                f"clients cannot begin {exactly(self._rate)} iterations a second on this machine, "
                f"even empty ones: the maximum is about {float(f'{sendable:.1g}'):,.0f}; "
                "choose a lower --rate"
            )

    def value(self, loops: int) -> float:
        """Take laps on request until there is a value; return the value times *loops*."""
        if self._continues:
            return self._value_of_all() * loops
        while not self._taken:
            self._take_lap(*self.until("take_lap"))
            if not self._limit.percentile or self._ends_search(self._taken[0]):
                break
            self._connection.send([_slice(self._taken.pop(), goes_on=True)])
        sample, number = self._taken.pop(0), self._lap.pop(0)
        self.samples.append(self._held or sample)
        self.numbers.append(number)
        if self._growth is not None:
            cell = f"{self.task.metadata['contender']}: {self.task.specification.benchmark}"
            lines = self._growth.lines(cell, self.samples)
            print(*lines, sep="\n", flush=True)  # noqa: T201
        value = self._clients / self._search.highest if self._search else sample.value
        self._search = self._held = None
        self._slices.append(replace(_slice(sample), value=value))
        if not self._taken:
            self._connection.send(self._slices)
            self._slices = []
        return value * loops

    def _take_lap(self, turns: Turns) -> None:
        """Take the slices that ``prepare_lap`` has prepared; wait for ``end_lap``; check them."""
        with self._waiting(turns) as waits:
            if len(self._lap) > 1:
                self._crew.take(waits)
            else:
                with next(waits):
                    arguments = self._slice(*self._lap)
                    self._taken = [self._crew.measure(*arguments, continues=self._continues)]
        self._connection.send(None)
        self.until("end_lap")
        size = self.disk_growth.after()
        self.connections.after(is_whole=self.loops <= self._crew.most_at_once)
        self._taken = self._taken or self._crew.samples()
        self.disk_growth.add(size, self._taken)

    @contextmanager
    def _waiting(self, turns: Turns) -> Iterator[Iterator[Any]]:
        """Provide a context for each slice; to enter it is to wait for the worker's turn."""
        if not turns.directory:
            yield iter([nullcontext()] * len(turns.plan))
            return
        with closing(Baton(turns.directory)) as baton:
            yield baton.turns(turns.plan, turns.own, self._connection)

    def _value_of_all(self) -> float:
        """Take laps until the run is to finish; return the value of all of them together."""
        seconds = done = 0.0
        self._steps = 0
        while (call := self._next("take_lap", "finish")).name == "take_lap":
            self._take_lap(*call.args)
            sample = self._taken.pop()
            self.samples.append(sample)
            seconds += sample.seconds
            done += sample.done
            self._steps += 1
            self._connection.send([_slice(sample)])
        self._put_back = call
        self.numbers.append(0)  # such runs of a round are a pair, however long each is
        return self._clients * seconds / done

    def _slice(self, number: int) -> tuple[int, int, float]:
        """Return a slice's number of iterations, the index of its first iteration, and its rate."""
        search, rate = self._search, self._rate
        paced = self.loops if self._continues else self.loops + lead(self.loops)
        if self._continues:
            number = number * MAX_SLICES + self._steps
        if not self._limit.percentile:
            return self.loops, number * (paced if rate else self.loops), rate
        coarse = max(MIN_ITERATIONS, math.ceil(self.loops * COARSE_PART))
        if search is None and self.expected:
            # If all runs tried the same rates, their results would differ too little.
            shift = random.Random(number).uniform(1 / MAX_SHIFT, MAX_SHIFT)  # noqa: S311
            search = self._search = RateSearch(expected=self._clients / self.expected * shift)
        if search is None:
            return coarse, number * MAX_STEPS * paced, 0.0
        first = (number * MAX_STEPS + search.steps) * paced
        return coarse if search.is_coarse else self.loops, first, search.rate

    def _ends_search(self, sample: Sample) -> bool:
        """Record the outcome of a slice; return whether the search for the highest rate is over."""
        limit = self._limit
        latency = sample.latencies.at_percentile(limit.percentile)
        if self._search is None:
            rate = self._clients / sample.value
            search = self._search = RateSearch(rate)
        else:
            search, rate = self._search, self._search.rate
            within = latency <= limit.seconds * NANOSECONDS
            holds = within and sample.part_of_schedule >= KEPT_UP
            self._held = sample if holds else self._held
            search.note(rate, holds=holds)
        # Calculate a lower bound of service times.  A service time is a latency minus a lag.
        longest_lag = sample.lags.longest if sample.lags else 0.0
        service = min(sample.latencies.counts) / NANOSECONDS - longest_lag
        if service > limit.seconds or not (search.rate or search.highest):
            raise Unsupported(
                f"no rate keeps {limit.sentence}; at {rate:.2g} iterations a second it was "
                f"{1000 * latency / NANOSECONDS:.2g} ms"
            )
        return not search.rate

    def attempt(self, loops: int) -> Slice:
        """Have each client do *loops* iterations that are not part of a value."""
        return _slice(self._crew.measure(loops, counts=False))

    def prepare_lap(self, numbers: Sequence[int]) -> None:
        """Prepare the slices with these *numbers*, which are taken next."""
        self._lap = list(numbers)
        first = self._slice(numbers[0])
        self._crew.prepare(*first, continues=self._continues, stretches=len(numbers))
        self.disk_growth.before()
        self.connections.before()

    def recovered(self, began: float, gone: float) -> dict[str, float]:
        """Return the metadata about a restart.

        On the clients' clock, the restart began at *began* and the server had ended at *gone*.
        """
        clients = self._crew.call("recovered", gone)
        ends = sorted(end for client in clients for end in client.ends)
        connected: dict[Socket, float] = {}  # clients of one process share sockets
        for client in clients:
            for one, seen in client.connected.items():
                connected[one] = min(seen, connected.get(one, seen))
        metadata: dict[str, float] = {
            "failed_iterations": sum(client.failed for client in clients),
            "acknowledged_commits": sum(client.acknowledged for client in clients),
            "lost_commits": sum(client.lost for client in clients),
            "reconnections": sum(seen > gone for seen in connected.values()),
        }
        if ends:
            metadata["first_transaction_s"] = ends[0] - began
        if len(ends) >= HUNDRED:
            metadata["hundredth_transaction_s"] = ends[HUNDRED - 1] - began
        return metadata


def _slice(sample: Sample, *, goes_on: bool = False) -> Slice:
    return Slice(
        sample.value,
        sample.on_clock,
        goes_on,
        sample.iterations + sample.uncounted,
        sample.start,
        sample.end,
        sample.latencies.at_percentile(99) / NANOSECONDS,
    )


class Growth:
    """Finds the classes of which this process has more objects than ever before."""

    def __init__(self) -> None:
        self._peaks: dict[str, int] = {}
        self._grown(())

    def _grown(self, kept: Sequence[Sample]) -> list[tuple[str, int, int]]:
        import objgraph

        ours = {id(part) for sample in kept for part in _parts(sample)}
        grown: list[tuple[str, int, int]] = objgraph.growth(
            limit=None,
            peak_stats=self._peaks,
            shortnames=False,
            filter=lambda thing: id(thing) not in ours,
        )
        return grown

    def lines(self, cell: str, kept: Sequence[Sample]) -> list[str]:
        """Return lines about the classes that grew most, ignoring objects of the *kept* samples."""
        head = f"{LEAKS_PREFIX}{cell}, value {len(kept)}: "
        grown = self._grown(kept)[:LISTED_CLASSES]
        lines = [f"{head}{name} +{more}, now {count}" for name, count, more in grown]
        return lines or [f"{head}no class has more objects than ever before"]


def _parts(sample: Sample) -> list[object]:
    latencies = sample.latencies
    parts: list[object] = [sample, sample.__dict__, sample.shares, sample.counts, sample.cleared]
    return [*parts, latencies, latencies.__dict__, latencies.counts]
