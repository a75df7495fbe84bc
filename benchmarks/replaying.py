"""The storage's times in a replay, against those in a recording of the application.

An application with one connection, which waits for some milliseconds between transactions, is
recorded twice on the same type of storage.  The first recording is replayed at the recorded speed,
and the replay is recorded as well.  The figures are ratios of medians of single calls: the
replay's to the second recording's.  An application that computes instead of waiting is recorded
for information: its processor does not become idle, and the processor's caches contain other data.

Then a workload is replayed on two FileStorages, one of which spins after each load, for a fifth of
the load's time, or after each vote, for about a fifth of a transaction.  It should be called
slower.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping
from relstorage.adapters.sqlite.adapter import Sqlite3Adapter
from relstorage.options import Options
from relstorage.storage import RelStorage
from transaction import TransactionManager
from ZODB import DB
from ZODB.FileStorage import FileStorage

from benchmarks.command import shoot_out
from benchmarks.line import Line, at_least, between, info
from benchmarks.verdicts import compared
from zodbshootout.recording import record
from zodbshootout.recording.chunks import Kind
from zodbshootout.recording.mixture import Mixture, distribution_of, make
from zodbshootout.recording.recorded import Workload
from zodbshootout.recording.recorder import SUFFIX
from zodbshootout.results.ratios import Verdict

TRANSACTIONS = 1500
PAUSE = 0.004
"""Seconds between transactions."""
PAGES = 2000
WRITING = 0.3
"""The fraction of transactions that change a page."""
TOLERANCE = 0.15
WARMED_UP = 500
"""The number of transactions before the compared ones."""
READING = Mixture(transactions=2000, objects=2000, writes=0.0)
WRITING_MUCH = Mixture(
    transactions=2000, objects=2000, writes=1.0, loads=distribution_of("10"),
    stores=distribution_of("10"),
)  # fmt: skip
CALLS = {"load": Kind.LOAD, "store": Kind.STORE, "vote": Kind.VOTE, "finish": Kind.FINISH}
SECTIONS = {
    "filestorage": "<filestorage>\npath $scratch/replayed.fs\n</filestorage>\n",
    "sqlite": "<relstorage>\n<sqlite3>\ndata-dir $scratch/replayed\n</sqlite3>\n</relstorage>\n",
}


def measure(*, quick: bool) -> Iterator[Line]:
    """Yield the ratios of medians for each storage."""
    number = 60 if quick else TRANSACTIONS
    skipped = 0 if quick else WARMED_UP
    for storage in SECTIONS:
        with tempfile.TemporaryDirectory(prefix="benchmarks-") as name:
            place = Path(name)
            first = run(storage, place / "first", number, time.sleep)
            second = run(storage, place / "second", number, time.sleep)
            computing = run(storage, place / "computing", number, compute)
            replayed = replay(storage, first, place / "replayed", number)
            paths = (second, replayed, computing)
            medians = [medians_of(path, number - skipped) for path in paths]
        for call in CALLS:
            before, after, of_computing = (of_calls[call] for of_calls in medians)
            name = f"replaying: {call}, {storage}"
            yield between(name, after / before, 1 - TOLERANCE, 1 + TOLERANCE, "{:.2f}")
            yield info("  of the application", 1e6 * before, "{:.1f} us")
            yield info("  of one that computes", 1e6 * of_computing, "{:.1f} us")
    yield from slower("loadBefore", 0.2, READING, quick=quick)
    yield from slower("tpc_vote", 3.0, WRITING_MUCH, quick=quick)


def slower(calls: str, more: float, mixture: Mixture, *, quick: bool) -> Iterator[Line]:
    """Yield the verdict on a storage whose *calls* take 1 + *more* times as long."""
    contenders = "".join(
        f"<zodb {name}>\n<spinningstorage>\nmore {factor}\ncalls {calls}\n<filestorage>\n"
        f"path $scratch/{name}.fs\n</filestorage>\n</spinningstorage>\n</zodb>\n"
        for name, factor in (("plain", 0.0), ("slower", more))
    )
    effort = ["-p", "3", "-n", "3"] if quick else ["-p", "6", "-n", "12"]
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as name:
        path = Path(name) / "made.workload"
        make(mixture, path)
        words = ("replay", "--workload", str(path), "-c", "1", *effort)
        done = shoot_out(f"%import benchmarks.spinning\n{contenders}", *words)
    (change,) = compared(done, ("plain", "slower"))
    yield info(f"replaying: {calls} longer, ratio", change.ratio.value, "{:.3f}")
    is_slower = change.verdict is Verdict.SLOWER
    yield at_least(f"replaying: {calls} longer, called slower", is_slower, 1, "{:.0f}")


def run(storage: str, place: Path, number: int, pause: Callable[[float], None]) -> Path:
    """Run the application; return its recording."""
    place.mkdir()
    db = DB(opened(storage, place))
    with db.transaction() as connection:
        connection.root()["pages"] = OOBTree(
            {page: PersistentMapping(text="x" * (100 + page % 700)) for page in range(PAGES)}
        )
    db.close()
    db = DB(record(opened(storage, place), place / "recorded"), cache_size=200)
    transactions = TransactionManager(explicit=True)
    chance = random.Random(0)  # noqa: S311
    for _ in range(number):
        connection = db.open(transactions)
        transactions.begin()
        root = connection.root()
        pages = [root["pages"][int(PAGES * chance.random() ** 2)] for _ in range(10)]
        for page in pages:
            page["text"]
        if chance.random() < WRITING:
            pages[0]["text"] = "y" * chance.randrange(100, 800)
        transactions.commit()
        connection.close()
        pause(PAUSE)
    db.close()
    return place / "recorded"


def opened(storage: str, place: Path) -> FileStorage | RelStorage:
    """Open the storage of the application."""
    if storage == "filestorage":
        return FileStorage(str(place / "Data.fs"))
    options = Options()
    return RelStorage(
        Sqlite3Adapter(str(place / "data"), pragmas={}, options=options), options=options
    )


def compute(seconds: float) -> None:
    """Use the processor and its caches for some seconds, like an application."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        sorted(range(2000), key=lambda number: -number)


def replay(storage: str, workload: Path, path: Path, number: int) -> Path:
    """Replay a recording, and record the replay."""
    configuration = (
        "%import relstorage\n%import zodbshootout.recording\n"
        f"<zodb {storage}>\n<recording>\npath {path}\n{SECTIONS[storage]}</recording>\n</zodb>\n"
    )
    words = ("-c", "1", "-p", "1", "-n", "1", "-l", str(number))
    shoot_out(configuration, "replay", "--workload", str(workload), "--speed", "1", *words)
    return path


def medians_of(path: Path, last: int) -> dict[str, float]:
    """Return the median seconds of each call in the last transactions of the longest file."""
    longest = max(path.glob(f"*{SUFFIX}"), key=lambda file: file.stat().st_size)
    transactions = list(Workload(longest).transactions())
    busiest = statistics.mode(transaction.connection for transaction in transactions)
    ours = [done for done in transactions if done.connection == busiest][-last:]
    return {
        call: statistics.median(
            (end - start) / 1e9
            for done in ours
            for kind, _, _, _, start, end in done.events
            if kind == wanted
        )
        for call, wanted in CALLS.items()
    }
