"""The files of blobs, in the directories that storages keep them in."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ZODB.blob import BLOB_SUFFIX

BlobRevision = tuple[bytes, bytes]
"""The OID and the serial of a blob."""


def forget(fshelper: Any, blobs: Iterable[BlobRevision]) -> None:
    """Remove the files of these blobs from a directory that is a cache of them."""
    for oid, serial in blobs:
        Path(fshelper.getBlobFilename(oid, serial)).unlink(missing_ok=True)


def remove_blobs(directory: str) -> None:
    """Remove the files of all blobs in *directory*, and the directories that held nothing else."""
    for path in Path(directory).rglob(f"*{BLOB_SUFFIX}"):
        path.unlink()
    for inner, _, _ in os.walk(directory, topdown=False):
        if inner != str(directory):
            with suppress(OSError):  # it is not empty
                Path(inner).rmdir()
