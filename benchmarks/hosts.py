"""Clients on several hosts: whether figures agree, and what hosts cost the coordinator.

The hosts are workers of a Dask cluster on this machine.

Four and eight processes add, read cold and read hot on ZEO, in turn on this host and on two others,
in several pairs of runs of the command.  What is told is what ``zodbshootout compare --ignore
hosts`` says of both: with four clients it is to see no difference, with eight the geometric mean of
the ratios is to be near 1.

A slice of a benchmark that does nothing, an empty commit, is measured with 16 clients on each of 1,
2, 4, ... 64 hosts, and with 1,000 on 64.  On the coordinator that takes so much processor time and
memory, and so many messages, whose bytes are counted as they are pickled.  The exponent is the
slope of the time over the number of clients, both logarithmic: at 1 it would grow as they do.
"""

from __future__ import annotations

import gc
import math
import pickle
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from benchmarks.command import shoot_out
from benchmarks.contenders import zeo, zeo_server
from benchmarks.figure import Figure, at_least, at_most, told
from zodbshootout.client.parameters import CrewShape, Parameters, Unit
from zodbshootout.client.specification import Specification, Storage
from zodbshootout.clusters import cluster_for
from zodbshootout.compare.comparison import Comparison, Verdict, compare
from zodbshootout.crews.cluster import Cluster
from zodbshootout.crews.hosts import HostsCrew, hosts_crew
from zodbshootout.crews.interpreters import Hello
from zodbshootout.crews.remote import Lead
from zodbshootout.guardian import Guardian
from zodbshootout.results import CellResult

SHARE = 0.95
PAIRS = 6
WORDS = ("add", "cold", "hot", "--object-counts", "100", "-p", "2", "-n", "4")
HOSTS = (1, 2, 4, 8, 16, 32, 64)
CLIENTS_OF_A_HOST = 16
MOST_CLIENTS = 1000
SLICES = 5
ITERATIONS = 2_000
"""Of each client in a slice: far more than the points that are kept of its progress."""
SECTION = "<zodb nothing>\n<mappingstorage>\n</mappingstorage>\n</zodb>\n"


def measure(*, quick: bool) -> Iterator[Figure]:
    """Yield how figures on two hosts compare with those here, and the costs by hosts."""
    for pair in compared(4, quick=quick).pairs:
        label = f"hosts: {pair.base.cell.benchmark} of 4"
        yield told(f"{label}, on two against here", pair.speed.value, "{:.3f}")
        same = pair.verdict is Verdict.NO_DIFFERENCE
        yield Figure(f"{label}, compare says", pair.verdict.value, "no difference seen", same)
    of_eight = compared(8, quick=quick)
    for pair in of_eight.pairs:
        label = f"hosts: {pair.base.cell.benchmark} of 8, on two against here"
        yield told(label, pair.speed.value, "{:.3f}")
    assert of_eight.mean is not None
    label = "hosts: throughput of 8, on two against here"
    yield at_least(label, of_eight.mean.value, SHARE, "{:.3f}")
    yield from scale(quick=quick)


def compared(clients: int, *, quick: bool) -> Comparison:
    """Return how so many clients on two hosts compare with as many here."""
    configuration = zeo_server("main") + zeo("zeo", "main")
    words = [*WORDS, "-c", str(clients), *(("-n", "1", "--min-time", "0.01") if quick else ())]
    here, there = [], []
    for _ in range(1 if quick else PAIRS):
        here.append(shoot_out(configuration, *words).results)
        there.append(shoot_out(configuration, *words, "--hosts", "local:2").results)
    return compare(_together(here), _together(there), ["hosts"])


def _together(commands: Sequence[Sequence[CellResult]]) -> list[CellResult]:
    """Return the cells of several commands that measured the same, each with all of its runs."""
    return [
        replace(cells[0], runs=tuple(run for cell in cells for run in cell.runs))
        for cells in zip(*commands, strict=True)
    ]


@dataclass
class _Traffic:
    """What the coordinator and the hosts say to each other."""

    questions: int = 0
    """Each is answered."""
    sent: int = 0
    """Bytes."""
    received: int = 0
    seconds: float = 0.0
    """Of the processor, for the counting itself."""

    def clear(self) -> None:
        """Count from 0 again."""
        self.questions = self.sent = self.received = 0
        self.seconds = 0.0

    def ask(self, message: object) -> None:
        """Count a question."""
        self.questions += 1
        self.sent += self._bytes(message)

    def answer(self, message: object) -> None:
        """Count an answer."""
        self.received += self._bytes(message)

    def _bytes(self, message: object) -> int:
        began = time.process_time()
        found = len(pickle.dumps(message))
        self.seconds += time.process_time() - began
        return found


class _Counted:
    """An agent on a host, or what it will answer, of which the traffic is counted."""

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
        found = self._counted.result(timeout)
        self._traffic.answer(found)
        return found


@dataclass(frozen=True)
class Cost:
    """What a slice costs the coordinator."""

    clients: int
    cpu: float
    """Seconds of the processor, the median of several slices."""
    wall: float
    """Seconds that pass beside those on the clock."""
    traffic: _Traffic
    """Of one slice."""
    before: int
    """Bytes of memory before the slices, and after them."""
    after: int


def scale(*, quick: bool) -> Iterator[Figure]:
    """Yield what slices cost, by the number of hosts."""
    hosts = HOSTS[:2] if quick else HOSTS
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        guardian = stack.enter_context(Guardian())
        cluster = stack.enter_context(cluster_for(f"local:{hosts[-1]}", guardian, place))
        assert cluster is not None
        costs = {}
        for number in hosts:
            clients = number * (2 if quick else CLIENTS_OF_A_HOST)
            costs[number] = _cost(cluster, number, clients)
            yield from _lines(number, costs[number])
        most = _cost(cluster, hosts[-1], 8 if quick else MOST_CLIENTS)
        yield from _lines(hosts[-1], most)
    yield at_most("hosts: exponent of processor time", _exponent(costs), 1.0, "{:.2f}")


def _lines(hosts: int, cost: Cost) -> Iterator[Figure]:
    label = f"hosts: {hosts} with {cost.clients:,} clients"
    yield told(f"{label}, processor", cost.cpu * 1e3, "{:.1f} ms")
    yield told(f"{label}, beside", cost.wall * 1e3, "{:.1f} ms")
    yield told(f"{label}, questions", cost.traffic.questions, "{:,}")
    yield told(f"{label}, sent", cost.traffic.sent / 1000, "{:.1f} KB")
    yield told(f"{label}, received", cost.traffic.received / 1000, "{:.1f} KB")
    yield told(f"{label}, memory before", cost.before / 2**20, "{:.1f} MiB")
    yield told(f"{label}, memory after", cost.after / 2**20, "{:.1f} MiB")


def _exponent(costs: Mapping[int, Cost]) -> float:
    clients = [math.log(cost.clients) for cost in costs.values()]
    seconds = [math.log(cost.cpu) for cost in costs.values()]
    return statistics.linear_regression(clients, seconds).slope


def _cost(cluster: Cluster, hosts: int, clients: int) -> Cost:
    chosen = replace(cluster, workers=cluster.workers[:hosts])
    shape = CrewShape(clients, Unit.THREAD, shared=True, hosts=hosts)
    lead = Lead(Specification(Storage(SECTION), "ex_commit", Parameters(shape)))
    process = psutil.Process()
    with hosts_crew(chosen, lead, Hello(), {}) as crew:
        assert isinstance(crew, HostsCrew)
        traffic = _Traffic()
        for host in crew._hosts:
            host.actor = _Counted(host.actor, traffic)
        crew.measure(ITERATIONS)
        gc.collect()
        before = process.memory_info().rss
        cpu, wall = [], []
        for _ in range(SLICES):
            traffic.clear()
            began, used = time.perf_counter(), time.process_time()
            crew.prepare(ITERATIONS)
            sample = crew.measure(ITERATIONS)
            cpu.append(time.process_time() - used - traffic.seconds)
            wall.append(time.perf_counter() - began - sample.on_clock)
        gc.collect()
        after = process.memory_info().rss
    return Cost(
        clients, statistics.median(cpu), statistics.median(wall), traffic, before, after
    )  # fmt: skip
