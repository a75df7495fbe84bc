"""The files of blobs, in the directories that storages keep them in."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ZODB.blob import BLOB_SUFFIX


def remove_blob_files(directory: str) -> None:
    """Remove the files of all blobs in *directory*, and nothing else that may be there."""
    for path in Path(directory).rglob(f"*{BLOB_SUFFIX}"):
        path.unlink(missing_ok=True)


def remove_blobs(directory: str) -> None:
    """Remove the files of all blobs in *directory*, and the directories that held nothing else."""
    remove_blob_files(directory)
    for path, _, _ in os.walk(directory, topdown=False):
        if path != str(directory):
            with suppress(OSError):  # it is not empty
                Path(path).rmdir()
