"""Copy a contender's database into a FileStorage, as a backup or a migration does."""

from __future__ import annotations

import filecmp
import shutil
from contextlib import closing
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from ZODB.blob import is_blob_record
from ZODB.FileStorage import FileStorage
from ZODB.interfaces import IMVCCStorage
from ZODB.POSException import POSKeyError

from zodbshootout.client.benchmarks.benchmark import Benchmark, CheckFailed, Traits, Unsupported
from zodbshootout.client.data.objects import is_same_object
from zodbshootout.model.specification import Parameters
from zodbshootout.model.storage_facts import Sharing, StorageInfo


class Backup(Benchmark):
    """Copy all transactions of a database into an empty FileStorage."""

    name = "copy"
    dataset = None
    traits = Traits(writes=False)

    @classmethod
    def refusal(cls, info: StorageInfo, parameters: Parameters) -> str | None:
        if info.sharing is Sharing.VOLATILE:
            # Transactions of a MappingStorage lack the extension_bytes that a FileStorage stores.
            return f"{info.storage_name}: ZODB cannot copy transactions that are in memory"
        return super().refusal(info, parameters)

    def set_up(self) -> None:
        storage = self.client.database.db.storage
        self._instance: Any = None
        if IMVCCStorage.providedBy(storage):
            # Connections may see later commits than the DB's storage itself does.
            self._instance = storage.new_instance()
        if not hasattr(storage, "iterator"):
            name = self.client.database.facts.storage_name
            raise Unsupported(f"{name} has no iterator, so its transactions cannot be copied")
        self.source = self._instance if hasattr(self._instance, "iterator") else storage
        self.directory = Path(mkdtemp(prefix="zodbshootout-copy-"))
        blobs = str(self.directory / "blobs") if self.client.database.facts.stores_blobs else None
        self.copy = FileStorage(str(self.directory / "Data.fs"), blob_dir=blobs)

    def prepare(self) -> None:
        self.last: bytes = self.client.database.db.lastTransaction()

    def run(self) -> None:
        self.copy.copyTransactionsFrom(self.source)

    def check(self, done: int) -> None:  # noqa: ARG002
        """Compare the copy with the database as it was before the copying.

        Revisions that clients have committed since then are not compared.
        """
        self.count(record_bytes=self.copy.getSize())
        if self._instance is not None:
            self._instance.poll_invalidations()
        with closing(self.copy.iterator()) as copies:
            copy = next(copies, None)
            for original in self.source.iterator(None, self.last):
                copied = {}
                while copy is not None and copy.tid <= original.tid:
                    if copy.tid == original.tid:
                        copied = {record.oid: record for record in copy}
                    copy = next(copies, None)
                for record in original:
                    self._check(record, copied.get(record.oid))

    def _check(self, record: Any, copied: Any) -> None:
        revision = f"revision {record.tid.hex()} of object {record.oid.hex()}"
        if copied is None:
            raise CheckFailed(f"{revision} was not copied")
        if copied.data != record.data and not is_same_object(copied.data, record.data):
            raise CheckFailed(f"{revision} was copied with different data")
        if self.copy.blob_dir and is_blob_record(record.data):
            try:
                file, copy = (
                    storage.loadBlob(record.oid, record.tid) for storage in (self.source, self.copy)
                )
            except POSKeyError:
                raise CheckFailed(f"the blob of {revision} was not copied") from None
            if not filecmp.cmp(file, copy, shallow=False):
                raise CheckFailed(f"the blob of {revision} was copied with different data")
        self.count(records=1)

    def tear_down(self) -> None:
        if self._instance is not None:
            self._instance.release()
        self.copy.close()
        shutil.rmtree(self.directory)
        super().tear_down()
