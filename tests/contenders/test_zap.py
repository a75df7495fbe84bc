"""A database that was zapped is empty, whatever it consists of."""

from __future__ import annotations

from pathlib import Path

import pytest
from ZODB.blob import Blob

from zodbshootout.config.configuration import Source, parse
from zodbshootout.contenders.blob_files import remove_blobs
from zodbshootout.contenders.contender import contenders_of
from zodbshootout.contenders.database import Database

FILE = "<filestorage>\npath {place}/x.fs\n{blobs}</filestorage>\n"
IMPORT = "%import relstorage\n"
STORAGES = {
    "filestorage": FILE,
    "filestorage with blobs": FILE.replace("{blobs}", "blob-dir {place}/blobs\n"),
    "blobstorage": f"<blobstorage>\nblob-dir {{place}}/blobs\n{FILE}</blobstorage>\n",
    "relstorage": "<relstorage>\nkeep-history false\nblob-dir {place}/blobs\n"
    "<sqlite3>\ndata-dir {place}/s\n</sqlite3>\n</relstorage>\n",
}


@pytest.mark.parametrize("name", STORAGES)
def test_zapping_leaves_an_empty_database_and_no_file_of_a_blob(name: str, tmp_path: Path) -> None:
    storage = STORAGES[name].format(place=tmp_path, blobs="")
    source = Source(tmp_path / "x.conf", f"{IMPORT}<zodb x>\n{storage}</zodb>\n")
    (contender,) = contenders_of(parse(source, {}))
    with Database(contender) as database:
        with database.db.transaction() as connection:
            connection.root()["theirs"] = "treasure"
            if database.has_blobs:
                connection.root()["blob"] = Blob(b"treasure")
        assert bool(list(tmp_path.rglob("*.blob"))) == database.has_blobs
        database.zap()
        with database.db.transaction() as connection:
            assert dict(connection.root()) == {}
    assert list(tmp_path.rglob("*.blob")) == []


def test_removing_blobs_leaves_what_is_none(tmp_path: Path) -> None:
    for path in ("a/b/1.blob", "a/theirs.txt", "c/2.blob"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    remove_blobs(str(tmp_path))
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == [
        "a",
        "a/theirs.txt",
    ]
