from __future__ import annotations

import random
import shutil
from collections.abc import Container
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from ZODB.blob import is_blob_record
from ZODB.FileStorage import FileStorage
from ZODB.POSException import POSKeyError
from ZODB.utils import z64

from zodbshootout.client.benchmarks.benchmark import UPKEEP, Benchmark, CheckFailed, Unsupported
from zodbshootout.client.benchmarks.reading import SAMPLED_OBJECTS
from zodbshootout.client.data import filler
from zodbshootout.client.data.objects import is_same_object
from zodbshootout.client.database import open_storage
from zodbshootout.model.parameters import without_objects
from zodbshootout.model.specification import MappingType, Parameters
from zodbshootout.model.storage_facts import Sharing, StorageInfo

TRANSACTION_SIZE = 50
"""The number of records in a transaction: about as many as a Plone request that writes stores."""


class Copy(Benchmark):
    """Copy all transactions of a FileStorage into an empty database."""

    name = "copy"
    title = "Copy {objects} Objects with Their Revisions"
    legend = "copy the transactions of a FileStorage into an empty database"
    topic = UPKEEP
    counted = "records"
    dataset = None
    alone = "one client at a time can copy into a database"
    empties = True

    @classmethod
    def fitted(cls, parameters: Parameters) -> Parameters:
        filled = replace(parameters, min_objects=parameters.min_objects or parameters.objects)
        return replace(
            without_objects(filled),
            min_objects=0,
            objects=filled.min_objects,
            mapping=MappingType.PERSISTENT_MAPPING,
            revisions=max(1, parameters.revisions),
        )

    @classmethod
    def refusal(cls, info: StorageInfo, parameters: Parameters) -> str | None:
        if info.sharing is Sharing.VOLATILE:
            return f"{info.storage_name}: closing it loses its data"
        if info.zap_obstacle:
            return f"it cannot be emptied: {info.zap_obstacle}"
        return super().refusal(info, parameters)

    @classmethod
    def work(cls, parameters: Parameters) -> int:
        return parameters.objects * parameters.revisions

    @classmethod
    def most_at_once(cls, parameters: Parameters) -> int:  # noqa: ARG003
        return 1

    def set_up(self) -> None:
        database, parameters = self.client.database, self.client.parameters
        if not hasattr(database.db.storage, "copyTransactionsFrom"):
            raise Unsupported(f"{database.storage_name} has no copyTransactionsFrom")
        if parameters.blobs and not database.copies_blobs:
            raise Unsupported(f"{database.storage_name}: copyTransactionsFrom copies no blobs")
        if others := database.others():
            raise CheckFailed(f"the database is not empty: its root contains {others[0]!r}")
        self.random = random.Random(parameters.seed)  # noqa: S311
        self.directory = place = Path(mkdtemp(prefix="zodbshootout-copy-"))
        blobs = str(place / "blobs") if parameters.blobs else None
        self.source = FileStorage(str(place / "Data.fs"), blob_dir=blobs)
        oids = [self.source.new_oid() for _ in range(parameters.objects)]
        self.newest = 0
        """The number of the first transaction with newest revisions."""
        self.transactions = 0
        for revision in range(parameters.revisions):
            self.newest = self.transactions
            self._store_revision(oids, revision)

    def _store_revision(self, oids: list[bytes], revision: int) -> None:
        content = filler.content_of(self.client.parameters)
        for first in range(0, len(oids), TRANSACTION_SIZE):
            chosen = oids[first : first + TRANSACTION_SIZE]
            former = self.source.load(chosen[0])[1] if revision else z64
            new = filler.records(
                chosen,
                content.contents(len(chosen), revision, first),
                blobs=self.client.parameters.blobs,
                revision=former,
            )
            filler.store_records(self.source, new)
            self.transactions += 1

    def prepare(self) -> None:
        self.client.disconnect()
        self.start_files = self.client.database.start_files()
        self.client.database.destroy()
        self._remove_start_files()
        self.destination = open_storage(self.client.database.specification)

    def _remove_start_files(self) -> None:
        # What is copied is older than what was destroyed, and ZEO refuses a client whose persistent
        # cache is newer than its server.
        for path in self.start_files:
            path.unlink(missing_ok=True)

    def run(self) -> None:
        self.destination.copyTransactionsFrom(self.source)

    def check(self, done: int) -> None:  # noqa: ARG002
        self.destination.close()
        self._remove_start_files()
        self.client.database.open()
        self.count(records=self.work(self.client.parameters), record_bytes=self.source.getSize())
        number = min(self.transactions, max(1, SAMPLED_OBJECTS // TRANSACTION_SIZE))
        self._compare(self.random.sample(range(self.transactions), number))

    def verify(self) -> None:
        self._compare(range(self.transactions))
        self.client.database.zap()

    def _compare(self, chosen: Container[int]) -> None:
        """Compare the records of transactions with these numbers.

        :raises CheckFailed: if a record is missing or another one
        """
        with (
            self.client.fresh_connection() as connection,
            closing(self.source.iterator()) as transactions,
        ):
            for number, transaction in enumerate(transactions):
                is_newest = number >= self.newest
                if number in chosen and (is_newest or self.client.database.keeps_history):
                    copied = list(transaction)
                    if is_newest:
                        connection.prefetch([record.oid for record in copied])
                    for record in copied:
                        self._check(connection._storage, record, is_newest=is_newest)

    def _check(self, storage: Any, record: Any, *, is_newest: bool) -> None:
        oid, tid = record.oid, record.tid
        what = f"revision {tid.hex()} of object {oid.hex()}"
        try:
            loaded = storage.load(oid) if is_newest else (storage.loadSerial(oid, tid), tid)
            if loaded[1] != tid or not is_same_object(loaded[0], record.data):
                raise CheckFailed(f"{what} was copied as another one")
            if is_blob_record(record.data):
                self.client.database.forget_blobs([(oid, tid)])
                paths = (storage.loadBlob(oid, tid), self.source.loadBlob(oid, tid))
                if len({Path(path).read_bytes() for path in paths}) > 1:
                    raise CheckFailed(f"the file of {what} was copied as another one")
        except POSKeyError:
            raise CheckFailed(f"{what} was not copied") from None

    def tear_down(self) -> None:
        super().tear_down()
        self.source.close()
        shutil.rmtree(self.directory)


BENCHMARKS = (Copy,)
