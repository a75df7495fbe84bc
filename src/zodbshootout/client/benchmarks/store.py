from __future__ import annotations

from pathlib import Path

from ZODB.blob import Blob
from ZODB.Connection import TransactionMetaData
from ZODB.POSException import POSKeyError
from ZODB.utils import z64

from zodbshootout.client.benchmarks.benchmark import WRITING, Benchmark, CheckFailed, Shape
from zodbshootout.client.benchmarks.reading import IterationSample
from zodbshootout.client.data.filler import blob_file
from zodbshootout.client.data.objects import Item, is_same_object, pickled
from zodbshootout.model.specification import Parameters

MAX_RECORDS = 50_000
"""The maximum number of OIDs to allocate in advance."""


class Store(Benchmark):
    """Store pickled records under OIDs allocated in advance."""

    name = "store"
    title = "Store {objects} Raw Records"
    legend = "store new records and commit, by the storage alone"
    topic = WRITING
    dataset = None

    @classmethod
    def shape(cls, parameters: Parameters) -> Shape:
        most = max(1, min(1000, MAX_RECORDS // parameters.objects))
        return super().shape(parameters)._replace(most_at_once=most)

    def set_up(self) -> None:
        parameters = self.client.parameters
        self.contents = self.client.payload.contents(parameters.objects, revision=0)
        self.records = (
            [pickled(Blob())] * parameters.objects
            if parameters.blobs
            else [pickled(Item(content)) for content in self.contents]
        )
        self.stored = IterationSample(self.client)

    def prepare(self) -> None:
        self.client.disconnect()
        self.storage = self.client.connect()._storage
        self.supplies: list[tuple[TransactionMetaData, list[bytes], list[str]]] = []
        self.oids: list[list[bytes]] = []

    def supply(self, iterations: int) -> int:
        self.supplies += [
            (TransactionMetaData(), [self.storage.new_oid() for _ in self.records], self._files())
            for _ in range(iterations)
        ]
        return iterations

    def _files(self) -> list[str]:
        if not self.client.parameters.blobs:
            return []
        return [blob_file(self.storage, content) for content in self.contents]

    def run(self) -> None:
        storage = self.storage
        transaction, oids, files = self.supplies.pop()
        storage.tpc_begin(transaction)
        if self.client.parameters.blobs:
            for oid, record, file in zip(oids, self.records, files):
                storage.storeBlob(oid, z64, record, file, "", transaction)
        else:
            for oid, record in zip(oids, self.records):
                storage.store(oid, z64, record, "", transaction)
        storage.tpc_vote(transaction)
        storage.tpc_finish(transaction)
        self.oids.append(oids)

    def check(self, done: int) -> None:
        self.count(stores=done * len(self.records))
        self.stored.note(self.oids)

    def verify(self) -> None:
        with self.client.fresh_connection() as connection:
            for oids in self.stored.chosen:
                connection.prefetch(oids)
                for oid, record, content in zip(oids, self.records, self.contents):
                    try:
                        stored, serial = connection._storage.load(oid)
                    except POSKeyError:
                        if self.client.parameters.may_lose_garbage:
                            continue  # nothing refers to it
                        raise
                    if not is_same_object(stored, record):
                        raise CheckFailed(
                            f"object {oid.hex()} has a different record from the one stored"
                        )
                    if self.client.parameters.blobs:
                        self.client.database.forget_blobs([(oid, serial)])
                        path = connection._storage.loadBlob(oid, serial)
                        if Path(path).read_bytes() != content:
                            raise CheckFailed(
                                f"the blob of object {oid.hex()} differs from what was stored"
                            )


BENCHMARKS = (Store,)
