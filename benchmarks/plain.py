"""Benchmarks on SQLite, against plain clients that do the same without the harness.

The command measures ``add``, ``update``, ``hot`` and ``steamin`` on RelStorage in an SQLite
database, with 1, 4 and 16 clients, in processes and in threads.  Then as many plain clients do the
same in a new database of the same configuration.  Each opens a connection, makes or reads its
objects, waits for an agreed instant, and then does one iteration after another for as long as the
slices of the command took, or for 3 seconds if that is longer.  It times each iteration by itself.
What an iteration needs (new objects, an empty pickle cache) it makes before, or between iterations.

The throughput of plain clients is the sum, over all clients, of iterations divided by the seconds
that they took.  The ratio is the table's throughput divided by theirs.  The machine changes its
speed within seconds, and the two are measured one after the other.  So the line of a combination is
the median of many tries.
"""

from __future__ import annotations

import gc
import itertools
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.command import Run, environment, runs_of, shoot_out
from benchmarks.contenders import IMPORTS, sqlite
from benchmarks.line import Line, NotMeasured, between, info
from zodbshootout.client.data.objects import Item, content_size

OBJECTS = 100
CACHE = 200_000
"""The size of the pickle cache, in objects, large enough to keep all that were prepared."""
BENCHMARKS = ("add", "update", "hot", "steamin")
CLIENTS = (1, 4, 16)
TRIES = 10
LOWEST, HIGHEST = 0.97, 1.03
RECORD = 300
"""Bytes of an object's record: the command's default."""
MAPPINGS_AT_ONCE = 128
"""Mappings that a plain client makes per commit, so that one commit in about a hundred does."""
REVISIONS = 16
"""The number of different contents that a plain client writes in turn."""
SHORTEST = 3.0
"""Seconds that plain clients work at least.  If these were few, threads that wait for the
interpreter's lock at the end would have done too much."""
SPARE = 2.0
"""Prepared transactions per expected one."""
READS_AT_ONCE = 5
"""Reads of steamin that are timed together, as the command does with 100 objects."""


def measure(*, quick: bool) -> Iterator[Line]:
    """Yield the median ratio for each benchmark, kind and number of clients, and of all tries."""
    everything = []
    for clients, kind in itertools.product(CLIENTS, ("processes", "threads")):
        tries = [_ratios(clients, kind, quick=quick) for _ in range(1 if quick else TRIES)]
        for benchmark in BENCHMARKS:
            ratios = [ratio[benchmark] for ratio in tries]
            everything += ratios
            label = f"plain: {benchmark}, {clients} {kind}, ours / plain"
            yield between(label, statistics.median(ratios), LOWEST, HIGHEST, "{:.3f}")
            yield info("  lowest try", min(ratios), "{:.3f}")
            yield info("  highest try", max(ratios), "{:.3f}")
    yield info("plain: median of all tries", statistics.median(everything), "{:.3f}")


def _ratios(clients: int, kind: str, *, quick: bool) -> dict[str, float]:
    """Return the ratio of each benchmark."""
    effort = ("-n", "4") if quick else ()
    threads = ("--threads",) if kind == "threads" else ()
    done = shoot_out(
        IMPORTS + sqlite("sqlite", cache_size=CACHE), *BENCHMARKS, *threads,
        "-c", str(clients), "--object-counts", str(OBJECTS), "-p", "1", *effort,
    )  # fmt: skip
    ratios = {}
    for result in done.results:
        (run,) = runs_of(result)
        plain = _plain(result.cell.benchmark, clients, kind, run)
        ratios[result.cell.benchmark] = clients / statistics.mean(run.values) / plain
    return ratios


def _plain(benchmark: str, clients: int, kind: str, run: Run) -> float:
    """Return the iterations a second of plain clients, which work as long as a *run*."""
    seconds = max(SHORTEST, run.on_clock)
    supply = int(SPARE * seconds / statistics.mean(run.values)) + 20
    processes, threads = (clients, 1) if kind == "processes" else (1, clients)
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as name, ExitStack() as ending:
        file = Path(name) / "plain.conf"
        file.write_text(IMPORTS + sqlite("sqlite", name, CACHE), encoding="utf-8")
        words = [str(file), benchmark, str(threads), str(supply), str(seconds)]
        _create(file)
        started = []
        for _ in range(processes):
            command = [sys.executable, "-m", "benchmarks.plain", *words]
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
            )
            ending.enter_context(process)
            ending.callback(process.kill)
            started.append(process)
        return _together(started)


def _together(processes: list[subprocess.Popen[str]]) -> float:
    """Have all clients start at the same instant; return their iterations a second."""
    _next_lines(processes)  # all are ready
    instant = time.perf_counter() + 0.05
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(f"{instant!r}\n")
        process.stdin.flush()
    return sum(map(float, _next_lines(processes)))


def _next_lines(processes: list[subprocess.Popen[str]]) -> list[str]:
    """Wait for the next line of each process; return them."""
    lines = [process.stdout.readline() for process in processes if process.stdout]
    if not all(lines):
        raise NotMeasured("a plain process has failed; see standard error")
    return lines


def _create(file: Path) -> None:
    """Create the database; RelStorage fails if several processes ask for the very first OID."""
    database = _open(file)
    database.storage.new_oid()
    database.close()


def _open(file: Path) -> Any:
    import ZODB.config

    return ZODB.config.databaseFromURL(str(file))


class PlainClient(threading.Thread):
    """A client that does a benchmark's iterations without the harness."""

    def __init__(self, file: Path, supply: int) -> None:
        """Open the database that *file* configures, and prepare about *supply* iterations."""
        import transaction

        super().__init__()
        self.manager = transaction.TransactionManager(explicit=True)
        self.connection = _open(file).open(self.manager)
        size = content_size(RECORD) // 2
        numbers = random.Random(id(self))  # noqa: S311 - nothing secret
        # Half of the content is blanks, like the command's.
        self.contents = [
            [numbers.randbytes(size) + b" " * size for _ in range(OBJECTS)]
            for _ in range(REVISIONS)
        ]
        self.instant = self.seconds = 0.0
        self.throughput = 0.0
        """Iterations divided by their seconds, once the client has ended."""
        self.iterations_at_once = 1
        self.prepare(supply)

    def prepare(self, supply: int) -> None:
        """Prepare about *supply* iterations."""
        raise NotImplementedError

    def before(self) -> None:
        """Do what is not timed before an iteration."""

    def iterate(self) -> None:
        """Do an iteration, or several that are timed together."""
        raise NotImplementedError

    def run(self) -> None:
        end = self.instant + self.seconds
        time.sleep(max(0.0, self.instant - time.perf_counter()))
        times = []
        while time.perf_counter() < end:
            self.before()
            began = time.perf_counter()
            self.iterate()
            times.append(time.perf_counter() - began)
        self.throughput = len(times) * self.iterations_at_once / sum(times)


class Adding(PlainClient):
    """Puts new objects into a new mapping."""

    def prepare(self, supply: int) -> None:
        contents = self.contents[0]
        self.supplies = [[Item(content) for content in contents] for _ in range(supply)]
        self.mappings: list[Any] = []

    def before(self) -> None:
        from persistent.mapping import PersistentMapping

        if self.mappings:
            return
        self.mappings = [PersistentMapping() for _ in range(MAPPINGS_AT_ONCE)]
        with self.manager:
            for mapping in self.mappings:
                self.connection.add(mapping)

    def iterate(self) -> None:
        mapping, items = self.mappings.pop(), self.supplies.pop()
        self.manager.begin()
        for position, item in enumerate(items):
            mapping[position] = item
        self.manager.commit()


class OwningMapping(PlainClient):
    """Has a mapping of objects that no other client uses."""

    def prepare(self, supply: int) -> None:  # noqa: ARG002
        from persistent.mapping import PersistentMapping

        self.mapping = PersistentMapping()
        with self.manager:
            self.connection.add(self.mapping)
            for position, content in enumerate(self.contents[0]):
                self.mapping[position] = Item(content)
        self.read()

    def read(self) -> None:
        self.seen = [item.content for item in self.mapping.values()]


class Updating(OwningMapping):
    """Changes all objects of its mapping."""

    def prepare(self, supply: int) -> None:
        super().prepare(supply)
        self.following = itertools.cycle(self.contents)

    def iterate(self) -> None:
        contents = next(self.following)
        self.manager.begin()
        for item, content in zip(self.mapping.values(), contents, strict=True):
            item.content = content
        self.manager.commit()


class Hot(OwningMapping):
    """Reads its objects, which are not in the pickle cache."""

    def prepare(self, supply: int) -> None:
        super().prepare(supply)
        self.manager.begin()

    def before(self) -> None:
        self.connection.cacheMinimize()

    def iterate(self) -> None:
        self.read()


class Steamin(OwningMapping):
    """Reads its objects, which are in the pickle cache."""

    def prepare(self, supply: int) -> None:
        super().prepare(supply)
        self.manager.begin()
        self.read()
        self.iterations_at_once = READS_AT_ONCE

    def iterate(self) -> None:
        for _ in range(READS_AT_ONCE):
            self.read()


KINDS = dict(zip(BENCHMARKS, (Adding, Updating, Hot, Steamin), strict=True))


def main(file: Path, benchmark: str, threads: int, supply: int, seconds: float) -> None:
    """Prepare *threads* clients, read an instant, work from then on; print their throughput."""
    clients = [KINDS[benchmark](file, supply) for _ in range(threads)]
    gc.collect()
    gc.freeze()
    print("ready", flush=True)  # noqa: T201
    instant = float(sys.stdin.readline())
    for client in clients:
        client.instant, client.seconds = instant, seconds
        client.start()
    for client in clients:
        client.join()
    print(sum(client.throughput for client in clients), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
