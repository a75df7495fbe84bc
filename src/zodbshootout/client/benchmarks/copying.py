from __future__ import annotations

import filecmp
import itertools
import math
import random
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from ZODB.blob import is_blob_record
from ZODB.interfaces import IMVCCStorage
from ZODB.POSException import POSKeyError
from ZODB.utils import p64, u64

from zodbshootout.client.benchmarks.benchmark import (
    UPKEEP,
    Benchmark,
    CheckFailed,
    Shape,
    Traits,
    Unsupported,
)
from zodbshootout.client.benchmarks.reading import SAMPLED_OBJECTS
from zodbshootout.client.data import sources
from zodbshootout.client.data.objects import is_same_object
from zodbshootout.client.database import open_storage
from zodbshootout.model.parameters import without_objects
from zodbshootout.model.specification import MappingType, Parameters
from zodbshootout.model.storage_facts import Sharing, StorageInfo

BATCH = 1000
"""The maximum number of records to compare at once."""


class Copy(Benchmark):
    """Copy all transactions of a FileStorage into an empty database."""

    name = "copy"
    title = "Copy {objects} Objects with Their Revisions"
    legend = "copy the transactions of a FileStorage into an empty database"
    topic = UPKEEP
    counted = "records"
    dataset = None
    traits = Traits(
        alone="one client at a time can copy into a database",
        empties=True,
        lengthy=True,
        assured=True,
    )

    @classmethod
    def fitted(cls, parameters: Parameters) -> Parameters:
        copied = parameters.copied
        filled = replace(parameters, min_objects=parameters.min_objects or parameters.objects)
        fitted = replace(
            without_objects(filled),
            min_objects=0,
            objects=filled.min_objects,
            mapping=MappingType.PERSISTENT_MAPPING,
            revisions=max(1, parameters.revisions),
            copied=copied,
        )
        if not copied.file:
            return fitted
        defaults = Parameters(parameters.crew)
        return replace(
            fitted,
            objects=copied.objects,
            object_size=defaults.object_size,
            compressibility=defaults.compressibility,
            blobs=copied.has_blobs,
            revisions=0,
        )

    @classmethod
    def refusal(cls, info: StorageInfo, parameters: Parameters) -> str | None:
        if info.sharing is Sharing.VOLATILE:
            return f"{info.storage_name}: closing it loses its data"
        if info.zap_obstacle:
            return f"it cannot be emptied: {info.zap_obstacle}"
        return super().refusal(info, parameters)

    @classmethod
    def shape(cls, parameters: Parameters) -> Shape:
        work = parameters.copied.records or parameters.objects * parameters.revisions
        return super().shape(parameters)._replace(work=work, most_at_once=1)

    def set_up(self) -> None:
        database, parameters = self.client.database, self.client.parameters
        if not hasattr(database.db.storage, "copyTransactionsFrom"):
            raise Unsupported(f"{database.facts.storage_name} has no copyTransactionsFrom")
        if parameters.blobs and not database.facts.copies_blobs:
            raise Unsupported(
                f"{database.facts.storage_name}: copyTransactionsFrom does not copy blobs"
            )
        if others := database.others():
            raise CheckFailed(f"the database is not empty: its root contains {others[0]!r}")
        self.random = random.Random(parameters.seed)  # noqa: S311
        self.directory = ""
        """The path of the client's temporary directory, or an empty string."""
        if parameters.copied.file:
            self.source = sources.open_users(parameters.copied)
        else:
            self.source = sources.open_made(parameters, self._place())
        a_revision = math.ceil(parameters.objects / sources.TRANSACTION_SIZE)
        self.transactions = parameters.copied.transactions or parameters.revisions * a_revision

    def _place(self) -> Path:
        parameters = self.client.parameters
        parent = Path(parameters.copied.directory)
        if not (parameters.copied.directory and parent.is_dir()):
            self.directory = mkdtemp(prefix="zodbshootout-copy-")
            return Path(self.directory)
        kind = "blobs" if parameters.blobs else "objects"
        return parent / (
            f"{parameters.objects}-{kind}-{parameters.object_size}-{parameters.revisions}-"
            f"{parameters.compressibility:g}-{parameters.seed}"
        )

    def prepare(self) -> None:
        self.client.disconnect()
        self.start_files = self.client.database.start_files()
        self.client.database.destroy()
        self._remove_start_files()
        self.destination = open_storage(self.client.database.specification)

    def _remove_start_files(self) -> None:
        # ZEO would refuse the persistent caches of the destroyed database, because they are newer
        # than the copied transactions.
        for path in self.start_files:
            path.unlink(missing_ok=True)

    def run(self) -> None:
        self.destination.copyTransactionsFrom(self.source)

    def check(self, done: int) -> None:  # noqa: ARG002
        self.destination.close()
        self._remove_start_files()
        self.client.database.open()
        work = self.shape(self.client.parameters).work
        self.count(records=work, record_bytes=self.source.getSize())
        number = min(self.transactions, max(1, SAMPLED_OBJECTS * self.transactions // work))
        self._compare(frozenset(self.random.sample(range(self.transactions), number)))

    def verify(self) -> None:
        self._compare(range(self.transactions))
        sources.check_is_as_it_was(self.client.parameters.copied)
        self.client.database.zap()

    def _compare(self, chosen: Collection[int]) -> None:
        """Check the copied records of some transactions, whose numbers are in *chosen*."""
        with self.client.fresh_connection() as connection:
            records = self._records(chosen)
            while batch := list(itertools.islice(records, BATCH)):
                newest = {record.oid: self._newest(record.oid) for record in batch}
                connection.prefetch([oid for oid, tid in newest.items() if tid is not None])
                former = []
                for record in batch:
                    if record.tid == newest[record.oid]:
                        load = connection._storage.load
                        self._check(record, *_loaded(record, load, record.oid))
                    elif record.data:
                        former.append(record)
                    elif newest[record.oid] is None:
                        _check_is_gone(connection._storage, record)
                if self.client.database.facts.keeps_history:
                    self._check_former(former)

    def _records(self, chosen: Collection[int]) -> Iterator[Any]:
        with closing(self.source.iterator()) as transactions:
            for number, transaction in enumerate(transactions):
                if number in chosen:
                    yield from transaction

    def _newest(self, oid: bytes) -> bytes | None:
        """Return an object's newest revision in the source; ``None`` if its creation was undone."""
        try:
            tid: bytes = self.source.getTid(oid)
        except POSKeyError:
            return None
        return tid

    def _check_former(self, records: Sequence[Any]) -> None:
        storage = self.client.database.db.storage
        if not hasattr(storage, "prefetch") or IMVCCStorage.providedBy(storage):
            for record in records:
                data = _loaded(record, storage.loadSerial, record.oid, record.tid)
                self._check(record, data, record.tid)
            return
        for tid, together in itertools.groupby(records, attrgetter("tid")):
            alike, after = list(together), p64(u64(tid) + 1)
            storage.prefetch([record.oid for record in alike], after)
            for record in alike:
                self._check(record, *_loaded(record, storage.loadBefore, record.oid, after)[:2])

    def _check(self, record: Any, data: bytes, tid: bytes) -> None:
        """Compare a loaded copy with a *record* of the source."""
        if tid != record.tid or not is_same_object(data, record.data):
            raise CheckFailed(f"{_name(record)} was copied with different data")
        if is_blob_record(record.data):
            self._check_blob(record)

    def _check_blob(self, record: Any) -> None:
        revision = record.oid, record.tid
        self.client.database.forget_blobs([revision])
        try:
            copied = self.client.database.db.storage.loadBlob(*revision)
        except POSKeyError:
            raise CheckFailed(f"the blob of {_name(record)} was not copied") from None
        if not filecmp.cmp(copied, self.source.loadBlob(*revision), shallow=False):
            raise CheckFailed(f"the blob of {_name(record)} was copied with different data")

    def tear_down(self) -> None:
        super().tear_down()
        self.source.close()
        if self.directory:
            shutil.rmtree(self.directory)


def _name(record: Any) -> str:
    return f"revision {record.tid.hex()} of object {record.oid.hex()}"


def _loaded(record: Any, load: Callable[..., Any], *revision: bytes) -> Any:
    try:
        loaded = load(*revision)
    except POSKeyError:
        loaded = None
    if loaded is None:
        raise CheckFailed(f"{_name(record)} was not copied")
    return loaded


def _check_is_gone(storage: Any, record: Any) -> None:
    with suppress(POSKeyError):
        storage.load(record.oid)
        raise CheckFailed(f"object {record.oid.hex()} was copied although its creation was undone")


BENCHMARKS = (Copy,)
