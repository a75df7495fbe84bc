from __future__ import annotations

from ZODB.blob import Blob
from ZODB.Connection import TransactionMetaData
from ZODB.utils import z64

from zodbshootout.benchmarks.benchmark import Benchmark, CheckFailed
from zodbshootout.data.records import Item, pickled
from zodbshootout.data.stock import blob_file


class Store(Benchmark):
    """Store records that are pickled already, under OIDs that are allocated already."""

    name = "store"
    title = "Store {objects} Raw Records"
    purpose = None

    def set_up(self) -> None:
        parameters = self.client.parameters
        self.contents = self.client.payload.contents(parameters.objects, revision=0)
        self.records = (
            [pickled(Blob())] * parameters.objects
            if parameters.blobs
            else [pickled(Item(content)) for content in self.contents]
        )
        self.stored: list[list[bytes]] = []

    def begin(self) -> None:
        self.client.disconnect()
        self.storage = self.client.connect()._storage
        self.stored.clear()

    def prepare(self) -> None:
        self.transaction = TransactionMetaData()
        self.oids = [self.storage.new_oid() for _ in self.records]
        if self.client.parameters.blobs:
            self.files = [blob_file(self.storage, content) for content in self.contents]

    def run(self) -> None:
        storage, transaction = self.storage, self.transaction
        storage.tpc_begin(transaction)
        if self.client.parameters.blobs:
            for oid, record, file in zip(self.oids, self.records, self.files, strict=True):
                storage.storeBlob(oid, z64, record, file, "", transaction)
        else:
            for oid, record in zip(self.oids, self.records, strict=True):
                storage.store(oid, z64, record, "", transaction)
        storage.tpc_vote(transaction)
        storage.tpc_finish(transaction)

    def check(self) -> None:
        self.count(stores=len(self.oids))
        self.stored.append(self.oids)

    def verify(self) -> None:
        with self.client.fresh_connection() as connection:
            for oids in self.stored:
                connection.prefetch(oids)
                for oid, record, content in zip(oids, self.records, self.contents, strict=True):
                    found, serial = connection._storage.load(oid)
                    if found != record:
                        raise CheckFailed(
                            f"object {oid.hex()} holds another record than was stored"
                        )
                    if self.client.parameters.blobs:
                        self.client.database.forget_blobs([(oid, serial)])
                        _check_blob(connection._storage.loadBlob(oid, serial), oid, content)


def _check_blob(path: str, oid: bytes, content: bytes) -> None:
    with open(path, "rb") as file:  # noqa: PTH123 - a path as ZODB has it
        if file.read() != content:
            raise CheckFailed(f"the blob of object {oid.hex()} holds other data than was stored")


BENCHMARKS = (Store,)
