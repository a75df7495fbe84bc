"""``--min-objects`` on FileStorage, against a loop over the storage's own API.

Ours is :func:`zodbshootout.client.preparation.fill` on an empty database; it makes content,
records, OIDs, and mappings through which the objects can be reached.  The loop stores the same
number of ready-made records of the same size under new OIDs, 1000 in each transaction.  Both are
timed in turn, each in its own process and file, from the open storage to the last commit.  The
ratio is that of their throughputs.
"""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.line import Line, at_least, info

OBJECTS = 1_000_000
FEWER = 50_000
"""Objects in a quick try."""
TRANSACTION = 1000
RECORD = 300
TRIES = 3
PART = 0.8


def measure(*, quick: bool) -> Iterator[Line]:
    """Yield the objects a second of both, and the median ratio."""
    objects = FEWER if quick else OBJECTS
    ours, plain = [], []
    for _ in range(TRIES):
        ours.append(objects / _in_own_process(fill, objects))
        plain.append(objects / _in_own_process(store, objects))
    ratios = [one / other for one, other in zip(ours, plain, strict=True)]
    yield info("filling: ours", statistics.median(ours), "{:,.0f} /s")
    yield info("filling: the storage's own API", statistics.median(plain), "{:,.0f} /s")
    yield at_least("filling: ours / its own", statistics.median(ratios), PART, "{:.2f}")


def _in_own_process(action: Callable[[Path, int], float], objects: int) -> float:
    """Return the result of *action* on a new file in a new process."""
    fork = multiprocessing.get_context("fork")
    with (
        tempfile.TemporaryDirectory(prefix="benchmarks-") as name,
        ProcessPoolExecutor(1, mp_context=fork) as processes,
    ):
        return processes.submit(action, Path(name) / "filled.fs", objects).result()


def fill(path: Path, objects: int) -> float:
    """Fill a new FileStorage as ``--min-objects`` does; return the duration in seconds."""
    from zodbshootout.client.database import Database
    from zodbshootout.client.preparation import fill as fill_database
    from zodbshootout.model.specification import CrewShape, Parameters, Storage

    section = f"<zodb>\n<filestorage>\npath {path}\n</filestorage>\n</zodb>\n"
    parameters = Parameters(CrewShape(1), object_size=RECORD, min_objects=objects)
    with Database(Storage(section=section)) as database:
        began = time.perf_counter()
        fill_database(database, parameters)
        return time.perf_counter() - began


def store(path: Path, objects: int) -> float:
    """Store ready-made records in a new FileStorage; return the duration in seconds."""
    from ZODB.Connection import TransactionMetaData
    from ZODB.FileStorage import FileStorage
    from ZODB.utils import z64

    from zodbshootout.client.data.objects import Item, content_size, pickled

    record = pickled(Item(bytes(content_size(RECORD))))
    storage = FileStorage(str(path))
    began = time.perf_counter()
    for first in range(0, objects, TRANSACTION):
        transaction = TransactionMetaData()
        storage.tpc_begin(transaction)
        for _ in range(min(TRANSACTION, objects - first)):
            storage.store(storage.new_oid(), z64, record, "", transaction)
        storage.tpc_vote(transaction)
        storage.tpc_finish(transaction)
    seconds = time.perf_counter() - began
    storage.close()
    return seconds
