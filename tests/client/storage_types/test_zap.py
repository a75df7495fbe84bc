"""A zapped database is empty, whatever storages it consists of."""

from __future__ import annotations

from pathlib import Path

import pytest
from persistent.mapping import PersistentMapping
from ZODB.blob import Blob

from zodbshootout.client.database import Database, NotZapped
from zodbshootout.client.storage_types import remove_blobs
from zodbshootout.client.storage_types.zodb import FileStorageType
from zodbshootout.model.specification import Storage

FILE = "<filestorage>\npath {place}/x.fs\n{blobs}</filestorage>\n"
IMPORT = "%import relstorage\n%import zc.zlibstorage\n"
RELSTORAGE = (
    "<relstorage>\nkeep-history false\nblob-dir {place}/blobs\n"
    "<sqlite3>\ndata-dir {place}/s\n</sqlite3>\n</relstorage>\n"
)
STORAGES = {
    "filestorage": FILE,
    "filestorage with blobs": FILE.replace("{blobs}", "blob-dir {place}/blobs\n"),
    "blobstorage": f"<blobstorage>\nblob-dir {{place}}/blobs\n{FILE}</blobstorage>\n",
    "zlibstorage": f"<zlibstorage>\n{FILE}</zlibstorage>\n",
    "zlibstorage around blobstorage": "<zlibstorage>\n<blobstorage>\nblob-dir {place}/blobs\n"
    f"{FILE}</blobstorage>\n</zlibstorage>\n",
    "relstorage": RELSTORAGE,
    "zlibstorage around relstorage": f"<zlibstorage>\n{RELSTORAGE}</zlibstorage>\n",
}


def opened(storage: str) -> Database:
    return Database(Storage(f"{IMPORT}<zodb x>\n{storage}</zodb>\n"))


@pytest.mark.parametrize("name", STORAGES)
def test_zapping_leaves_an_empty_database_and_no_blob_file(name: str, tmp_path: Path) -> None:
    storage = STORAGES[name].format(place=tmp_path, blobs="")
    with opened(storage) as database:
        with database.db.transaction() as connection:
            connection.root()["theirs"] = "treasure"
            if database.facts.stores_blobs:
                connection.root()["blob"] = Blob(b"treasure")
        assert bool(list(tmp_path.rglob("*.blob"))) == database.facts.stores_blobs
        database.zap()
        with database.db.transaction() as connection:
            assert dict(connection.root()) == {}
    assert list(tmp_path.rglob("*.blob")) == []


def test_a_read_only_database_is_not_zapped(tmp_path: Path) -> None:
    file = f"<filestorage>\npath {tmp_path}/x.fs\nread-only {{}}\n</filestorage>\n"
    with (
        opened(file.format("false")) as database,
        database.db.transaction() as connection,
    ):
        connection.root()["theirs"] = "treasure"
    before = (tmp_path / "x.fs").read_bytes()
    with (
        opened(file.format("true")) as database,
        pytest.raises(NotZapped, match="configured to be read-only"),
    ):
        database.zap()
    assert (tmp_path / "x.fs").read_bytes() == before


def test_a_zap_that_leaves_objects_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = STORAGES["filestorage"].format(place=tmp_path, blobs="")
    with opened(storage) as database:
        with database.db.transaction() as connection:
            connection.root()["theirs"] = PersistentMapping(what="treasure")
        monkeypatch.setattr(FileStorageType, "zap", lambda *_: False)
        monkeypatch.setattr("ZODB.DB.pack", lambda *_: None)
        with pytest.raises(NotZapped, match="does the server pack without collecting garbage"):
            database.zap()


def test_removing_blobs_leaves_other_files(tmp_path: Path) -> None:
    for path in ("a/b/1.blob", "a/theirs.txt", "c/2.blob"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    remove_blobs(str(tmp_path))
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == [
        "a",
        "a/theirs.txt",
    ]
