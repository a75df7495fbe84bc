"""``add`` on SQLite, against plain processes that do the same.

The command measures add of 50 objects on RelStorage in an SQLite database, with 4 and with 16
processes.  Then as many plain processes do the same in a new database of the same configuration,
without the harness.  Each opens a connection, creates the objects that it will add, waits for an
agreed instant, and then commits one transaction after another for as long as all slices of the
command took together.  Now and then it commits an additional one that makes the mappings of the
next transactions, as the command does before each slice.  If all mappings were made at the start,
each transaction would write one more page of the database: that of its mapping, far from the new
objects.  The throughput of the plain processes is the number of transactions that added objects
within that time, divided by that time.  The last transaction of each process does not count: it
ends later, when the load is gone.  The ratio is the table's throughput divided by theirs.
"""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.command import environment, shoot_out
from benchmarks.contenders import IMPORTS, sqlite
from benchmarks.line import Line, NotMeasured, between, info
from zodbshootout.model.quantities import THROUGHPUT
from zodbshootout.results.figures import Figure

OBJECTS = 50
CACHE = 200_000
"""The size of the pickle cache, in objects, large enough to keep all that were prepared."""
PROCESSES = (4, 16)
TRIES = 10
LOWEST, HIGHEST = 0.95, 1.05
RECORD = 300
"""Bytes of an object's record: the command's default."""
MAPPINGS_AT_ONCE = 128
"""Mappings that a plain process makes per commit, so that one commit in about a hundred does."""
SPARE = 3.0
"""Prepared transactions per expected one."""


def measure(*, quick: bool) -> Iterator[Line]:
    """Yield the mean ratio for each number of processes, and of all tries."""
    everything = []
    for processes in PROCESSES:
        ratios = [_ratio(processes, quick=quick) for _ in range(1 if quick else TRIES)]
        everything += ratios
        label = f"plain: add, {processes} processes, ours / plain"
        yield between(label, statistics.mean(ratios), LOWEST, HIGHEST, "{:.3f}")
        yield info("  lowest try", min(ratios), "{:.3f}")
        yield info("  highest try", max(ratios), "{:.3f}")
    yield info("plain: mean of all tries", statistics.mean(everything), "{:.3f}")


def _ratio(processes: int, *, quick: bool) -> float:
    effort = ("-n", "4") if quick else ()
    done = shoot_out(
        IMPORTS + sqlite("sqlite", cache_size=CACHE),
        "add", "-c", str(processes), "--object-counts", str(OBJECTS), "-p", "1", *effort,
    )  # fmt: skip
    (result,) = done.results
    ours = Figure(result, THROUGHPUT).value / OBJECTS
    return ours / _plain(processes, done.on_clock, transactions=ours / processes * done.on_clock)


def _plain(processes: int, seconds: float, transactions: float) -> float:
    """Return the commits a second of plain processes."""
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as name:
        file = Path(name) / "plain.conf"
        file.write_text(IMPORTS + sqlite("sqlite", name, CACHE), encoding="utf-8")
        supply = int(transactions * SPARE) + 20
        command = [sys.executable, "-m", "benchmarks.plain", str(file), str(supply), str(seconds)]
        _create(file)
        clients = [
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
            )
            for _ in range(processes)
        ]
        try:
            return _together(clients, seconds)
        finally:
            for client in clients:
                with client:
                    client.kill()


def _together(clients: list[subprocess.Popen[str]], seconds: float) -> float:
    """Start all at the same instant; return their commits a second, over *seconds*."""
    _next_lines(clients)  # all are ready
    instant = time.perf_counter() + 0.05
    for client in clients:
        assert client.stdin is not None
        client.stdin.write(f"{instant!r}\n")
        client.stdin.flush()
    return sum(map(int, _next_lines(clients))) / seconds


def _next_lines(clients: list[subprocess.Popen[str]]) -> list[str]:
    """Wait for the next line of each process; return them."""
    lines = [client.stdout.readline() for client in clients if client.stdout]
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


def client(file: Path, supply: int, seconds: float) -> None:
    """Be a plain process: report ready, read an instant, commit from then on; print the number."""
    import random

    import transaction
    from persistent.mapping import PersistentMapping

    from zodbshootout.client.data.objects import Item, content_size

    manager = transaction.TransactionManager(explicit=True)
    database = _open(file)
    connection = database.open(manager)
    size = content_size(RECORD) // 2
    numbers = random.Random(0)  # noqa: S311 - nothing secret
    # Half of the content is blanks, like the command's.
    contents = [numbers.randbytes(size) + b" " * size for _ in range(OBJECTS)]
    supplies = [[Item(content) for content in contents] for _ in range(supply)]
    mappings: list[Any] = []
    gc.freeze()
    print("ready", flush=True)  # noqa: T201
    instant = float(sys.stdin.readline())
    time.sleep(max(0.0, instant - time.perf_counter()))
    commits = -1  # excluding the last one, which ends too late
    while time.perf_counter() < instant + seconds:
        if not mappings:
            mappings = [PersistentMapping() for _ in range(MAPPINGS_AT_ONCE)]
            with manager:
                for mapping in mappings:
                    connection.add(mapping)
        mapping = mappings.pop()
        manager.begin()
        for position, item in enumerate(supplies.pop()):
            mapping[position] = item
        manager.commit()
        commits += 1
    print(commits, flush=True)  # noqa: T201


if __name__ == "__main__":
    client(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
