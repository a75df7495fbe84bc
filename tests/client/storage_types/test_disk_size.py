"""The bytes that databases take on the disk, as storages in this process know them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from ZODB.blob import Blob

from tests.client.storage_types.sections import FS, MAPPING, blobs, demo, zlib
from zodbshootout.client.database import Database
from zodbshootout.client.storage_types.relstorage_servers import POSTGRESQL, size_of_product
from zodbshootout.config.configuration import parse
from zodbshootout.config.source import Source
from zodbshootout.contenders.contender import contenders_of
from zodbshootout.model.storage_facts import DiskSize

IMPORTS = "%import relstorage\n%import zc.zlibstorage\n"

CONTENT = b"x" * 50_000
SQLITE = (
    "<relstorage>\nblob-dir $scratch/blobs\n{}<sqlite3>\ndata-dir $scratch/s\n"
    "driver sqlite3\n</sqlite3>\n</relstorage>\n"
)
KEEPING_BLOBS = {
    "in a directory": FS.replace("path", "blob-dir $scratch/blobs\npath"),
    "in that of a wrapper": zlib(blobs(FS)),
    "in a table": SQLITE.format(""),
    "in a shared directory": SQLITE.format("shared-blob-dir true\n"),
}


def growth(storage: str, place: Path, *, asked_for_blobs: bool) -> DiskSize:
    """Return by how much a database becomes larger by a blob and 20 kB of records."""
    source = Source(place / "x.conf", f"{IMPORTS}<zodb x>\n{storage}</zodb>\n")
    (contender,) = contenders_of(parse(source, {"scratch": str(place)}))
    with Database(contender.storage) as database:
        before = database.disk_size(blobs=asked_for_blobs)
        with database.db.transaction() as connection:
            connection.root.text = os.urandom(10_000).hex()  # half of it cannot be compressed
            if asked_for_blobs:
                connection.root.blob = Blob(CONTENT)
        return database.disk_size(blobs=asked_for_blobs) - before


@pytest.mark.parametrize("where", KEEPING_BLOBS)
def test_blobs_are_counted_apart_from_records(where: str, tmp_path: Path) -> None:
    grown = growth(KEEPING_BLOBS[where], tmp_path, asked_for_blobs=True)
    assert grown.blobs == len(CONTENT)
    assert grown.records is not None
    assert 10_000 < grown.records < 50_000
    assert grown.log is None


def test_files_of_blobs_are_looked_for_only_if_they_are_wanted(tmp_path: Path) -> None:
    storage = KEEPING_BLOBS["in a directory"]
    grown = growth(storage, tmp_path, asked_for_blobs=False)
    assert grown.blobs is None
    assert grown.records is not None


@pytest.mark.parametrize("storage", [MAPPING, demo(FS)])
def test_what_is_in_memory_has_no_size(storage: str, tmp_path: Path) -> None:
    assert growth(storage, tmp_path, asked_for_blobs=False) == DiskSize()


def answering(*answers: str) -> Callable[..., list[str] | None]:
    return lambda *queries: list(answers) if len(answers) == len(queries) else None


def test_a_server_has_blobs_in_tables_of_its_database_and_a_log() -> None:
    size = size_of_product(POSTGRESQL, answering("9000", "2000", "70000"), blobs=True)
    assert size == DiskSize(7000, 2000, 70000)
    assert size_of_product(POSTGRESQL, answering("9000", "7"), blobs=False) == DiskSize(
        9000, None, 7
    )
    assert size_of_product(POSTGRESQL, answering(), blobs=False) == DiskSize()
    assert size_of_product("MySQL", answering("None", "7"), blobs=False) == DiskSize()
    assert size_of_product("Oracle", answering(), blobs=False) == DiskSize()
