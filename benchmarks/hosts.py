"""What clients on several hosts cost: the throughput of eight, and the coordinator's time by hosts.

The hosts are workers of a Dask cluster on this machine.

Eight processes add, read cold and read hot on ZEO, in turn on this host and on two others, in
several pairs of runs of the command.  What is told is the geometric mean of the ratios.

A slice of a benchmark that does nothing, an empty commit, is measured with 16 clients on each of 1,
2, 4, ... 64 hosts, and with 1,000 on 64.  On the coordinator that takes so much processor time,
memory and so many bytes that are sent and received, pickled.  The exponent is the slope of the time
over the number of clients, both logarithmic: at 1 it would grow as they do.
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
from zodbshootout.crews.hosts import Cluster, HostsCrew, hosts_crew
from zodbshootout.crews.interpreters import Hello
from zodbshootout.crews.remote import Lead
from zodbshootout.guardian import Guardian

SHARE = 0.95
PAIRS = 5
WORDS = ("add", "cold", "hot", "-c", "8", "--object-counts", "100", "-p", "2", "-n", "4")
HOSTS = (1, 2, 4, 8, 16, 32, 64)
CLIENTS_OF_A_HOST = 16
MOST_CLIENTS = 1000
SLICES = 5
ITERATIONS = 2_000
"""Of each client in a slice: far more than the points that are kept of its progress."""
SECTION = "<zodb nothing>\n<mappingstorage>\n</mappingstorage>\n</zodb>\n"


def measure(*, quick: bool) -> Iterator[Figure]:
    """Yield the ratio, and the costs by hosts."""
    yield from throughput(quick=quick)
    yield from scale(quick=quick)


def throughput(*, quick: bool) -> Iterator[Figure]:
    """Yield how the throughput on two hosts compares with that on one."""
    configuration = zeo_server("main") + zeo("zeo", "main")
    effort = ("-n", "1", "--min-time", "0.01") if quick else ()
    ratios: dict[str, list[float]] = {}
    for _ in range(1 if quick else PAIRS):
        here = shoot_out(configuration, *WORDS, *effort)
        there = shoot_out(configuration, *WORDS, *effort, "--hosts", "local:2")
        for cell in here.cells:
            other = there.cell(cell.contender, cell.benchmark)
            ratio = other.objects_per_second / cell.objects_per_second
            ratios.setdefault(cell.benchmark, []).append(math.log(ratio))
    for benchmark, found in ratios.items():
        yield told(f"hosts: {benchmark}, on two against here", _mean(found), "{:.3f}")
    every = [ratio for found in ratios.values() for ratio in found]
    yield at_least("hosts: throughput on two against here", _mean(every), SHARE, "{:.3f}")


def _mean(logarithms: Sequence[float]) -> float:
    return math.exp(statistics.mean(logarithms))


@dataclass(frozen=True)
class Cost:
    """What a slice costs the coordinator."""

    clients: int
    cpu: float
    """Seconds of the processor, the median of several slices."""
    wall: float
    """Seconds that pass beside those on the clock."""
    sent: int
    """Bytes."""
    received: int
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
        costs = {
            number: _cost(cluster, number, number * (2 if quick else CLIENTS_OF_A_HOST))
            for number in hosts
        }
        most = _cost(cluster, hosts[-1], 8 if quick else MOST_CLIENTS)
    for number, cost in [*costs.items(), (hosts[-1], most)]:
        label = f"hosts: {number} with {cost.clients:,} clients"
        yield told(f"{label}, processor", cost.cpu * 1e3, "{:.1f} ms")
        yield told(f"{label}, beside", cost.wall * 1e3, "{:.1f} ms")
        yield told(f"{label}, sent", cost.sent / 1000, "{:.1f} KB")
        yield told(f"{label}, received", cost.received / 1000, "{:.1f} KB")
        yield told(f"{label}, memory before", cost.before / 2**20, "{:.1f} MiB")
        yield told(f"{label}, memory after", cost.after / 2**20, "{:.1f} MiB")
    yield at_most("hosts: exponent of processor time", _exponent(costs), 1.0, "{:.2f}")


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
        counted = _Counted(crew)
        crew.measure(ITERATIONS)
        gc.collect()
        before = process.memory_info().rss
        cpu, wall = [], []
        for _ in range(SLICES):
            counted.sent = counted.received = 0
            began, used = time.perf_counter(), time.process_time()
            crew.prepare(ITERATIONS)
            sample = crew.measure(ITERATIONS)
            cpu.append(time.process_time() - used - counted.seconds())
            wall.append(time.perf_counter() - began - sample.on_clock)
        gc.collect()
        after = process.memory_info().rss
    return Cost(
        clients, statistics.median(cpu), statistics.median(wall),
        counted.sent, counted.received, before, after,
    )  # fmt: skip


class _Counted:
    """Counts the bytes that a crew and its hosts send to each other."""

    def __init__(self, crew: HostsCrew) -> None:
        self.sent = self.received = 0
        self._seconds = 0.0
        answers = crew._answers

        def counting(messages: Mapping[str, object]) -> dict[str, Any]:
            found = answers(messages)
            used = time.process_time()
            self.sent += sum(len(pickle.dumps(each)) for each in messages.values())
            self.received += sum(len(pickle.dumps(each)) for each in found.values())
            self._seconds += time.process_time() - used
            return found

        crew._answers = counting  # type: ignore[method-assign]

    def seconds(self) -> float:
        """Return the seconds that the counting has taken since this was asked last."""
        found, self._seconds = self._seconds, 0.0
        return found
