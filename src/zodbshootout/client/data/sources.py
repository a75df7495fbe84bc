"""The FileStorages whose transactions are copied: the user's own, or generated ones."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from ZODB.blob import FilesystemHelper, is_blob_record
from ZODB.FileStorage import FileStorage
from ZODB.POSException import POSKeyError
from ZODB.utils import p64, z64

from zodbshootout.client.data import filler
from zodbshootout.model.outcome import CheckFailed
from zodbshootout.model.specification import CopiedData, Parameters

TRANSACTION_SIZE = 50
"""Records per transaction: changing a page in Plone stores about as many."""


class Source(FileStorage):  # type: ignore[misc]
    """A FileStorage whose files are only read."""

    def __init__(self, path: Path, blob_dir: str = "") -> None:
        super().__init__(str(path), read_only=True)
        # Given the blob directory, FileStorage would create a directory inside it.
        self._blobs = FilesystemHelper(blob_dir) if blob_dir else None

    def loadBlob(self, oid: bytes, serial: bytes) -> str:  # noqa: N802
        path = "" if self._blobs is None else self._blobs.getBlobFilename(oid, serial)
        if not os.path.exists(path):  # noqa: PTH110
            raise POSKeyError(oid, serial)
        return path

    def openCommittedBlobFile(  # noqa: N802
        self,
        oid: bytes,
        serial: bytes,
        blob: Any = None,  # noqa: ARG002
    ) -> BinaryIO:
        return open(self.loadBlob(oid, serial), "rb")  # noqa: PTH123


def facts_of(path: Path, blob_dir: Path | None) -> CopiedData:
    """Describe the user's FileStorage; exceptions of FileStorage propagate.

    :raises CheckFailed: if the FileStorage is empty, or has blobs but no directory of their files
    """
    transactions = records = 0
    has_blobs = False
    with closing(Source(path)) as source, closing(source.iterator()) as iterator:
        for transaction in iterator:
            transactions += 1
            for record in transaction:
                records += 1
                has_blobs = has_blobs or is_blob_record(record.data)
        objects = len(source)
    if not records:
        raise CheckFailed("it contains no transactions")
    if has_blobs and (blob_dir is None or not blob_dir.is_dir()):
        missing = "" if blob_dir is None else f"; {blob_dir} is not a directory"
        raise CheckFailed(
            f"it contains blobs{missing}; name the directory of their files: {path},DIRECTORY"
        )
    return CopiedData(
        path.name, objects, transactions, records, has_blobs, path.stat().st_size,
        str(path.absolute()), str(blob_dir.absolute()) if has_blobs and blob_dir else "",
    )  # fmt: skip


def open_users(data: CopiedData) -> Source:
    """Open the FileStorage of ``--data``.

    :raises CheckFailed: if the file has changed since the run began
    """
    check_is_as_it_was(data)
    return Source(Path(data.path), data.blob_dir)


def open_made(parameters: Parameters, directory: Path) -> Source:
    """Open the FileStorage generated for *parameters*; the first process creates it."""
    directory.mkdir(exist_ok=True)
    path = directory / "Data.fs"
    blob_dir = str(directory / "blobs") if parameters.blobs else ""
    with _locked(directory):
        if not path.exists():
            made = directory / "made.fs"
            with _unsynced():
                _make(FileStorage(str(made), create=True, blob_dir=blob_dir or None), parameters)
            made.with_name("made.fs.index").rename(directory / "Data.fs.index")
            made.rename(path)
    return Source(path, blob_dir)


def check_is_as_it_was(data: CopiedData) -> None:
    """Raise :class:`CheckFailed` if the user's file has changed since the run began."""
    if data.file and Path(data.path).stat().st_size != data.size:
        raise CheckFailed(f"{data.file} has changed since the run began; use a copy of it")


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    with (directory / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _unsynced() -> Iterator[None]:
    """Keep FileStorages from syncing: a file destroyed by a power cut can be made again."""
    module: Any = sys.modules[FileStorage.__module__]
    fsync, module.fsync = module.fsync, None
    try:
        yield
    finally:
        module.fsync = fsync


def _make(storage: Any, parameters: Parameters) -> None:
    """Store all revisions of the objects, and close the *storage*."""
    content = filler.content_of(parameters)
    with closing(storage):
        for revision in range(parameters.revisions):
            for first in range(0, parameters.objects, TRANSACTION_SIZE):
                oids = [p64(1 + first + place) for place in range(TRANSACTION_SIZE)]
                del oids[parameters.objects - first :]
                contents = content.contents(len(oids), revision, first)
                former = storage.getTid(oids[0]) if revision else z64
                new = filler.records(oids, contents, blobs=parameters.blobs, revision=former)
                filler.store_records(storage, new)
