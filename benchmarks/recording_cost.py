"""The cost of recording an application: processor time and bytes.

The same transactions run on a storage in memory with and without recording, in turn.  The processor
time is that of the process, so it includes the thread that writes.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ZODB.Connection import TransactionMetaData
from ZODB.MappingStorage import MappingStorage
from ZODB.mvccadapter import MVCCAdapter
from ZODB.utils import p64, z64

from benchmarks.line import Line, at_most, info
from zodbshootout.recording import record
from zodbshootout.recording.recorder import SUFFIX

OBJECTS = 9_000
LOADS = 100
"""Loads per transaction, about as many as for a page of Plone."""
TRIES = 15
EVENTS = 6
"""The events of a transaction without loads: begin, tpc_begin, store, vote, finish, end."""
SHORT = 7
"""Transactions without loads per transaction with loads, because they take less time."""
DATA = b"\x80\x03cmodule\nClass\n." + b"x" * 200
A_LOAD, A_TRANSACTION, AN_EVENT = 2.0, 10.0, 10.0
"""The limits: microseconds, microseconds and bytes."""


def measure(*, quick: bool) -> Iterator[Line]:
    """Yield the cost of a load, of a transaction, and of an event on disk."""
    number = 300 if quick else 3_000
    with tempfile.TemporaryDirectory() as name:
        costs = [_costs(Path(name) / str(n), number) for n in range(3 if quick else TRIES)]
    loads, transactions, events = zip(*costs, strict=True)
    transaction = statistics.median(transactions)
    yield at_most("recording_cost: a load", statistics.median(loads), A_LOAD, "{:.2f} us")
    yield at_most("recording_cost: a transaction", transaction, A_TRANSACTION, "{:.2f} us")
    yield info("  highest of a load", max(loads), "{:.2f} us")
    yield at_most("recording_cost: an event", statistics.median(events), AN_EVENT, "{:.1f} B")


def _costs(path: Path, number: int) -> tuple[float, float, float]:
    """Return the microseconds per load and per transaction, and the bytes per event."""
    reading, writing = path / "reading", path / "writing"
    loads = _seconds(number, LOADS, reading) - _seconds(number, LOADS)
    short = SHORT * number
    commits = _seconds(short, 0, writing) - _seconds(short, 0)
    size = sum(file.stat().st_size for file in reading.glob(f"*{SUFFIX}"))
    a_transaction = commits / short * 1e6
    a_load = (loads / number * 1e6 - a_transaction) / LOADS
    return a_load, a_transaction, size / (number * (LOADS + EVENTS))


def _seconds(number: int, loads: int, recorded: Path | None = None) -> float:
    """Return the processor time of transactions, including the writing of their records."""
    storage = MVCCAdapter(MappingStorage())
    sizes = random.Random(2)  # noqa: S311
    records = {p64(n): b"x" * int(sizes.lognormvariate(5.5, 1)) for n in range(OBJECTS + 1)}
    _commit(storage.new_instance(), records)
    if recorded is not None:
        storage = record(storage._storage, recorded)
    connection = storage.new_instance()
    choose = random.Random(1)  # noqa: S311
    # A hundredth of the objects gets half of the loads.
    oids = [p64(int(OBJECTS ** choose.random())) for _ in range(number * loads)]
    begin = time.process_time()
    for n in range(number):
        connection.sync(False)
        connection.poll_invalidations()
        for k in range(loads):
            connection.load(oids[n * loads + k])
        _commit(connection, {p64(OBJECTS + n + 1): DATA})
    storage.close()
    return time.process_time() - begin


def _commit(connection: Any, records: Mapping[bytes, bytes]) -> None:
    metadata = TransactionMetaData()
    connection.tpc_begin(metadata)
    for oid, data in records.items():
        connection.store(oid, z64, data, "", metadata)
    connection.tpc_vote(metadata)
    connection.tpc_finish(metadata)
