from __future__ import annotations

import base64
import itertools
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from transaction import TransactionManager
from ZODB.Connection import TransactionMetaData

from zodbshootout.client.benchmarks.benchmark import (
    FROM_DATABASE,
    WRITING,
    Benchmark,
    CheckFailed,
    Shape,
    Traits,
)
from zodbshootout.client.benchmarks.cold import check_cold, emptied
from zodbshootout.client.benchmarks.reading import CacheReading, blob_revisions, check_contents
from zodbshootout.client.data import datasets
from zodbshootout.client.data.datasets import Dataset
from zodbshootout.client.data.objects import holder, rewrite
from zodbshootout.model.specification import Parameters
from zodbshootout.model.storage_facts import StorageInfo

MAX_CALLS = 10_000
"""The maximum number of calls whose results are kept for a check."""

_OPENING = threading.Lock()
"""A lock for opening historical connections.  To open one, ZODB calls ``lastTransaction`` of
a storage that all threads share, and RelStorage supports only one such call at a time."""


class Revised(Benchmark):
    """Work on several revisions of the client's own objects."""

    dataset = Dataset.UPDATE

    @classmethod
    def fitted(cls, parameters: Parameters) -> Parameters:
        return replace(super().fitted(parameters), revisions=max(2, parameters.revisions))

    @classmethod
    def refusal(cls, info: StorageInfo, parameters: Parameters) -> str | None:
        if info.keeps_history is False:
            return f"{info.storage_name} keeps no old revisions as configured here"
        return super().refusal(info, parameters)

    def set_up(self) -> None:
        parameters, index = self.client.parameters, self.client.index
        root = self.client.connect().root()
        mapping: Any = datasets.find_objects(root, self.dataset, parameters, index)
        self.mapping_oid = mapping._p_oid
        items = list(mapping.values())
        self.serials = [self._write(items, number) for number in range(self.revisions)]
        """The IDs of the transactions that wrote revisions 0, 1 and so on of all objects."""
        self.oids = [holder(item)._p_oid for item in items]
        self.client.disconnect()

    @property
    def revisions(self) -> int:
        """The number of revisions to write."""
        return self.client.parameters.revisions

    def contents(self, revision: int) -> list[bytes]:
        """Return the contents of *revision*, which this client wrote; the first revision is 0."""
        # The payload's revision 0 is the content with which the objects were created.
        return self.client.payload.contents(self.client.parameters.objects, revision + 1)

    def _write(self, items: Sequence[Any], revision: int) -> bytes:
        """Commit a revision of *items*; return the ID of the transaction."""
        self.client.abort()
        with self.client.transactions:
            for item, content in zip(items, self.contents(revision)):
                rewrite(item, content)
        self.client.catch_up()
        first = holder(items[0])
        first._p_activate()
        serial: bytes = first._p_serial
        return serial


class History(Revised):
    """Ask for the history of objects, timing each call separately."""

    name = "history"
    title = "History of {objects} Objects, One by One"
    legend = "ask for the latest revisions of an object"
    topic = FROM_DATABASE

    @classmethod
    def shape(cls, parameters: Parameters) -> Shape:
        return super().shape(parameters)._replace(work=1, most_at_once=MAX_CALLS)

    def prepare(self) -> None:
        self.client.disconnect()
        self.history = self.client.connect()._storage.history
        # In its first call, a storage may also connect to its database.
        self.history(self.oids[0], size=self.revisions)
        self.next_oid = itertools.cycle(self.oids)
        self.listed: list[Any] = []

    def run(self) -> None:
        self.listed.append(self.history(next(self.next_oid), size=self.revisions))

    def check(self, done: int) -> None:
        self.count(histories=done)
        for place, entries in zip(itertools.cycle(range(len(self.oids))), self.listed):
            if [entry["tid"] for entry in entries] != self.serials[::-1]:
                raise CheckFailed(
                    f"the history of object {place} has {len(entries)} revisions, but not the "
                    f"{self.revisions} that were committed last"
                )


class LoadBefore(CacheReading, Revised):
    """Load old revisions through historical connections, timing each call separately."""

    name = "load_before"
    title = "Load Old Revisions of {objects} Objects One by One"
    legend = "load an object as it was at a time, the client's caches empty"
    topic = FROM_DATABASE
    traits = Traits(cold=True)

    @classmethod
    def shape(cls, parameters: Parameters) -> Shape:
        shape = super().shape(parameters)
        old = parameters.objects * (parameters.revisions - 1)
        # If there are several clients, leave a quarter of the loads for uncounted iterations.
        most = old if parameters.crew.size == 1 else max(1, old * 3 // 4)
        return shape._replace(work=1, most_at_once=most, fewest=min(shape.fewest, most))

    def prepare(self) -> None:
        client = self.client
        client.disconnect()
        self.cleared = client.neighbours.together(lambda: emptied(client.database))
        with _OPENING:
            self.past = [
                client.database.db.open(TransactionManager(explicit=True), before=serial)
                for serial in self.serials[1:]
            ]
        loads = [connection._storage.load for connection in self.past]
        for load in loads:
            # In its first load, a storage may also connect to its database.
            load(self.mapping_oid)
        self.note_use()
        self.calls = iter([(load, oid) for load in loads for oid in self.oids])
        self.unsupplied = len(loads) * len(self.oids)
        self.loaded: list[bytes] = []

    def supply(self, iterations: int) -> int:  # noqa: ARG002
        # Repeated loads would come from a cache, so a client waits when it has done all its loads.
        supplied, self.unsupplied = self.unsupplied, 0
        return supplied

    def run(self) -> None:
        load, oid = next(self.calls)
        self.loaded.append(load(oid)[0])

    def check(self, done: int) -> None:
        hits = self.count_use()
        for connection in self.past:
            connection.close()
        self.client.transfers()
        self.count(loads=done)
        if not self.client.parameters.blobs:
            self._compare_contents()
        check_cold(hits or 0)

    def _compare_contents(self) -> None:
        expected = itertools.chain.from_iterable(map(self.contents, itertools.count()))
        for at, (record, content) in enumerate(zip(self.loaded, expected)):
            if content not in record:
                revision, place = divmod(at, len(self.oids))
                raise CheckFailed(
                    f"object {place} was not loaded as it was in revision {revision + 1} of "
                    f"{self.revisions}"
                )


class Undo(Revised):
    """Undo the change of every object, then undo the undo, and so on."""

    name = "undo"
    title = "Undo Changes of {objects} Objects"
    legend = "undo the client's latest transaction"
    topic = WRITING
    revisions = 2

    @classmethod
    def fitted(cls, parameters: Parameters) -> Parameters:
        return replace(super().fitted(parameters), revisions=0)

    @classmethod
    def refusal(cls, info: StorageInfo, parameters: Parameters) -> str | None:
        if info.undoes is False:
            return f"{info.storage_name} has no undo as configured here"
        if info.undo_flaw and parameters.crew.size > 1:
            return f"{info.undo_flaw}; use -c 1"
        return super().refusal(info, parameters)

    def set_up(self) -> None:
        super().set_up()
        self.latest = self.serials[-1]
        """The ID of the latest transaction that changed the objects."""
        self.undone = 0

    def prepare(self) -> None:
        self.client.disconnect()
        # Open a storage as ZODB's DB.undo() does.
        storage = self.client.database.db._mvcc_storage
        self.storage = getattr(storage, "undo_instance", storage.new_instance)()

    def run(self) -> None:
        storage, transaction = self.storage, TransactionMetaData()
        storage.tpc_begin(transaction)
        storage.undo(base64.encodebytes(self.latest).rstrip(b"\n"), transaction)
        storage.tpc_vote(transaction)
        storage.tpc_finish(transaction, self._note)

    def _note(self, tid: bytes) -> None:
        self.latest = tid
        self.undone += 1

    def check(self, done: int) -> None:
        self.storage.release()
        self.count(stores=done * len(self.oids))

    def verify(self) -> None:
        expected = self.contents(1 - self.undone % 2)
        with self.client.fresh_connection() as connection:
            connection.prefetch(self.oids)
            mapping: Any = connection.get(self.mapping_oid)
            items = list(mapping.values())
            self.client.database.forget_blobs(blob_revisions(items))
            check_contents([item.content for item in items], expected)
            if {holder(item)._p_serial for item in items} != {self.latest}:
                raise CheckFailed("the undo did not write the objects")


BENCHMARKS = (Undo, History, LoadBefore)
