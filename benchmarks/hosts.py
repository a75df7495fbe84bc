"""Clients on several hosts: their figures against clients here, and the coordinator's cost.

The hosts are workers of a Dask cluster on this machine.

Four and eight processes add, read cold and read hot on ZEO: on this host, and equally many on two
others.  Both crews exist at the same time and take slices in turn, in several runs.  They are
compared as by ``zodbshootout compare --ignore hosts``.  With four clients there should be no
difference; with eight, the geometric mean of the ratios should be near 1.

The cost is the coordinator's processor time, memory and messages for a slice of empty commits, with
16 clients on each of 1, 2, 4, ... 64 hosts.  Messages are counted by their pickled size.  The
exponent is the slope of the logarithm of processor time over that of the number of clients; if it
is 1, time is proportional to clients.  A case with as many clients on 8 hosts as otherwise on 64
separates the cost of a host from that of a client.
"""

from __future__ import annotations

import gc
import itertools
import math
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pyperf

from benchmarks.contenders import zeo
from benchmarks.line import Line, at_least, at_most, info
from zodbshootout.client.benchmarks import benchmarks, words_of
from zodbshootout.client.preparation import Preparation, prepare
from zodbshootout.client.protocol import Call, SystemClock
from zodbshootout.client.throughput import most_points
from zodbshootout.crews.cluster import Cluster
from zodbshootout.crews.crew import Crew
from zodbshootout.crews.hosts import ClientGroup, HostsCrew
from zodbshootout.crews.logs import LogSettings
from zodbshootout.guardian import Guardian
from zodbshootout.model.outcome import State
from zodbshootout.model.specification import (
    ClientKind,
    CrewShape,
    Parameters,
    Specification,
    Storage,
)
from zodbshootout.results.cell import Cell
from zodbshootout.results.changes import Change, mean_ratio
from zodbshootout.results.ratios import Verdict
from zodbshootout.results.result import CellResult
from zodbshootout.results.sides import Comparison, compare
from zodbshootout.servers.address import HOST, reserved_port
from zodbshootout.servers.dask import cluster_for
from zodbshootout.workers.agent import UNLIMITED, hosts_crew
from zodbshootout.workers.coordinator import Launcher, Worker

PLACES = (0, 2)
"""Numbers of hosts; 0 stands for clients here."""
BENCHMARKS = ("add", "cold", "hot")
OBJECTS = 100
RUNS = 10
VALUES = 8
SLICE = 0.1
"""The minimum time of a slice, in seconds."""
SHARE = 0.95
HOSTS = (1, 2, 4, 8, 16, 32, 64)
CLIENTS_OF_A_HOST = 16
FEW_HOSTS = 8
"""The number of hosts that share the clients otherwise spread over all hosts."""
SLICES = 5
ITERATIONS_OF_A_POINT = 8
"""Iterations of each client in a slice per point of its progress that it keeps."""
SECTION = "<zodb nothing>\n<mappingstorage>\n</mappingstorage>\n</zodb>\n"


def measure(*, quick: bool) -> Iterator[Line]:
    """Yield the ratios of figures on two hosts to those here, and the costs by number of hosts."""
    for change in in_turn(4, quick=quick).changes:
        yield from _ratio(change)
        label = f"hosts: {change.base.cell.benchmark} of 4, compare says"
        same = change.verdict is Verdict.NO_DIFFERENCE
        yield Line(label, change.verdict.value, "no difference seen", same)
    of_eight = in_turn(8, quick=quick)
    for change in of_eight.changes:
        yield from _ratio(change)
    mean = mean_ratio(of_eight.changes)
    assert mean is not None
    label = "hosts: throughput of 8, on two against here"
    yield at_least(label, mean.value, SHARE, "{:.3f}")
    yield from scale(quick=quick)


def _ratio(change: Change) -> Iterator[Line]:
    cell, (low, high) = change.base.cell, change.ratio.interval
    label = f"hosts: {cell.benchmark} of {cell.parameters.crew.size}, on two against here"
    yield info(label, change.ratio.value, "{:.3f}")
    yield info(f"{label}, from", low, "{:.3f}")
    yield info(f"{label}, to", high, "{:.3f}")


def in_turn(clients: int, *, quick: bool) -> Comparison:
    """Compare a number of clients here with as many on two hosts, slice by slice."""
    results: dict[int, dict[Cell, CellResult]] = {hosts: {} for hosts in PLACES}
    with _cluster(PLACES[-1]) as cluster, _zeo_section() as section:
        for benchmark, run in itertools.product(BENCHMARKS, range(1 if quick else RUNS)):
            parameters = Parameters(CrewShape(clients), OBJECTS)
            cell = Cell(benchmark, "zeo", parameters, words_of(benchmarks()[benchmark]))
            for hosts, values in _run(cluster, section, cell).items():
                name = f"{benchmark}-{run}"
                before = results[hosts].get(cell, CellResult(cell, State.MEASURED))
                after = replace(before, runs=(*before.runs, _run_of(name, values)))
                results[hosts][cell] = after
    here, there = (list(results[hosts].values()) for hosts in PLACES)
    return compare(here, there)


def _run(cluster: Cluster, section: str, cell: Cell) -> dict[int, list[float]]:
    """Return values by the number of hosts; the crews take slices in turn."""
    values: dict[int, list[float]] = {hosts: [] for hosts in PLACES}
    with ExitStack() as stack:
        crews = {
            hosts: stack.enter_context(_crew(cluster, section, cell, hosts)) for hosts in PLACES
        }
        loops = max(map(_loops, crews.values()))
        for number in range(VALUES):
            for hosts in sorted(PLACES, reverse=bool(number % 2)):
                values[hosts].append(crews[hosts].measure(loops).value)
        for crew in crews.values():
            crew.verify()
    return values


@contextmanager
def _crew(cluster: Cluster, section: str, cell: Cell, hosts: int) -> Iterator[Crew]:
    shape = replace(cell.parameters.crew, hosts=hosts)
    parameters = replace(cell.parameters, crew=shape, owner=f"on {hosts}")
    specification = Specification(Storage(section), cell.benchmark, parameters)
    prepare(Preparation(specification))
    with (
        hosts_crew(cluster, specification, LogSettings(), {})
        if hosts
        else _crew_here(specification)
    ) as crew:
        yield crew


@contextmanager
def _crew_here(specification: Specification) -> Iterator[Crew]:
    """Start a crew that a worker on this host leads, in the session of this process."""
    with tempfile.TemporaryDirectory() as place, Guardian() as guardian:
        launcher = Launcher(
            Path(place), guardian, os.environ, UNLIMITED, UNLIMITED, own_sessions=False
        )
        with launcher.fork_server() as fork_server, fork_server.lead() as leader:
            clients = range(specification.parameters.crew.size)
            groups = [ClientGroup("here", _Here(leader), clients)]
            with HostsCrew(SystemClock(), groups, specification).started() as crew:
                yield crew


@dataclass(frozen=True)
class _Here:
    """Takes calls like an agent on another host."""

    leader: Worker

    def ask(self, call: Call) -> _Here:
        self.leader.send(call)
        return self

    def result(self) -> Any:
        return self.leader.wait()

    def now(self) -> Any:
        return SimpleNamespace(result=SystemClock.now)


def _loops(crew: Crew) -> int:
    """Return the number of iterations that makes a slice long enough."""
    loops = 1
    while crew.measure(loops, counts=False).on_clock < SLICE:
        loops *= 2
    return loops


def _run_of(name: str, values: Sequence[float]) -> pyperf.Run:
    """Return a run of the round with this *name*, like the command's runs."""
    metadata = {"round": name, "slices": " ".join(map(str, range(len(values))))}
    return pyperf.Run(values, metadata=metadata, collect_metadata=False)


@contextmanager
def _cluster(workers: int) -> Iterator[Cluster]:
    with (
        tempfile.TemporaryDirectory() as place,
        Guardian() as guardian,
        cluster_for(f"local:{workers}", guardian, Path(place)) as cluster,
    ):
        assert cluster is not None
        yield cluster


@contextmanager
def _zeo_section() -> Iterator[str]:
    """Start a ZEO server as the command does; yield the section of a contender on it."""
    with ExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory())
        address = f"{HOST}:{stack.enter_context(reserved_port())}"
        program = [sys.executable, "-m", "ZEO.runzeo", "-a", address, "-f", f"{place}/zeo.fs"]
        server = subprocess.Popen(
            [*program, "--pid-file", f"{place}/zeo.pid"],
            start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        stack.callback(server.wait)
        stack.callback(server.terminate)
        yield zeo("zeo", "main").replace("$main", address)


@dataclass
class _Traffic:
    """The messages between the coordinator and the hosts."""

    questions: int = 0
    """The number of questions, all of which are answered."""
    sent: int = 0
    """Bytes."""
    received: int = 0
    seconds: float = 0.0
    """Processor time of counting."""

    def clear(self) -> None:
        self.questions = self.sent = self.received = 0
        self.seconds = 0.0

    def ask(self, message: object) -> None:
        self.questions += 1
        self.sent += self._bytes(message)

    def answer(self, message: object) -> None:
        self.received += self._bytes(message)

    def _bytes(self, message: object) -> int:
        began = time.process_time()
        size = len(pickle.dumps(message))
        self.seconds += time.process_time() - began
        return size


class _Counted:
    """An agent on a host, or its future answer, with counted messages."""

    def __init__(self, counted: Any, traffic: _Traffic) -> None:
        self._counted = counted
        self._traffic = traffic

    def ask(self, message: object) -> _Counted:
        self._traffic.ask(message)
        return _Counted(self._counted.ask(message), self._traffic)

    def now(self) -> _Counted:
        self._traffic.ask(None)
        return _Counted(self._counted.now(), self._traffic)

    def result(self, timeout: float | None = None) -> Any:
        answer = self._counted.result(timeout)
        self._traffic.answer(answer)
        return answer


@dataclass(frozen=True)
class Cost:
    """The cost of a slice to the coordinator."""

    hosts: int
    clients: int
    cpu: float
    """Processor seconds, the median of several slices."""
    wall: float
    """Seconds spent off the clock."""
    traffic: _Traffic
    """The messages of one slice."""
    before: int
    """Bytes of memory before the slices."""
    after: int


def scale(*, quick: bool) -> Iterator[Line]:
    """Yield the costs of slices by number of hosts."""
    hosts = HOSTS[:2] if quick else HOSTS
    most = hosts[-1] * CLIENTS_OF_A_HOST
    costs = []
    with _cluster(hosts[-1]) as cluster:
        for number in hosts:
            costs.append(_cost(cluster, number, number * CLIENTS_OF_A_HOST))
            yield from _lines(costs[-1])
        few = _cost(cluster, hosts[0] if quick else FEW_HOSTS, most)
        yield from _lines(few)
    yield at_most("hosts: exponent of processor time", _exponent(costs), 1.0, "{:.2f}")
    of_a_host, of_a_client = _parts(few, costs[-1])
    yield info("hosts: processor time of a host", of_a_host * 1e3, "{:.2f} ms")
    yield info("hosts: processor time of a client", of_a_client * 1e3, "{:.3f} ms")


def _lines(cost: Cost) -> Iterator[Line]:
    label = f"hosts: {cost.hosts} with {cost.clients:,} clients"
    yield info(f"{label}, processor", cost.cpu * 1e3, "{:.1f} ms")
    yield info(f"{label}, beside", cost.wall * 1e3, "{:.1f} ms")
    yield info(f"{label}, questions", cost.traffic.questions, "{:,}")
    yield info(f"{label}, sent", cost.traffic.sent / 1000, "{:.1f} KB")
    yield info(f"{label}, received", cost.traffic.received / 1000, "{:.1f} KB")
    yield info(f"{label}, memory before", cost.before / 2**20, "{:.1f} MiB")
    yield info(f"{label}, memory after", cost.after / 2**20, "{:.1f} MiB")


def _exponent(costs: Sequence[Cost]) -> float:
    clients = [math.log(cost.clients) for cost in costs]
    seconds = [math.log(cost.cpu) for cost in costs]
    return statistics.linear_regression(clients, seconds).slope


def _parts(few: Cost, many: Cost) -> tuple[float, float]:
    """Return the seconds of a host and of a client, from cases with different numbers of hosts."""
    of_a_host = (many.cpu - few.cpu) / (many.hosts - few.hosts)
    return of_a_host, (few.cpu - few.hosts * of_a_host) / few.clients


def _cost(cluster: Cluster, hosts: int, clients: int) -> Cost:
    chosen = replace(cluster, workers=cluster.workers[:hosts])
    shape = CrewShape(clients, ClientKind.THREAD, shared=True, hosts=hosts)
    specification = Specification(Storage(SECTION), "ex_commit", Parameters(shape))
    iterations = ITERATIONS_OF_A_POINT * most_points(clients)
    process = psutil.Process()
    with hosts_crew(chosen, specification, LogSettings(), {}) as crew:
        assert isinstance(crew, HostsCrew)
        traffic = _Traffic()
        for group in crew._groups:
            group.actor = _Counted(group.actor, traffic)
        crew.measure(iterations)
        gc.collect()
        before = process.memory_info().rss
        cpu, wall = [], []
        for _ in range(SLICES):
            traffic.clear()
            began, used = time.perf_counter(), time.process_time()
            crew.prepare(iterations)
            sample = crew.measure(iterations)
            cpu.append(time.process_time() - used - traffic.seconds)
            wall.append(time.perf_counter() - began - sample.on_clock)
        gc.collect()
        after = process.memory_info().rss
    return Cost(
        hosts, clients, statistics.median(cpu), statistics.median(wall), traffic, before, after
    )  # fmt: skip
