"""Pack, open and copy with real servers, and protect databases that hold data of others."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import ZODB
from ZODB.blob import Blob
from ZODB.FileStorage import FileStorage

from tests.integration.command import QUICK, cells, left_behind, metadata_of, names_in, run
from tests.integration.sections import (
    RELSTORAGE,
    SQLITE,
    ZEO_SERVER,
    contender,
    filestorage,
    with_blobs,
    zeo,
)

CONF = (
    f"{RELSTORAGE}{ZEO_SERVER}{contender('zeo', zeo())}{contender('sqlite', SQLITE)}"
    f"{contender('fs', filestorage('$scratch/fs.fs'))}"
)
NEEDING_HISTORY = {("sqlite", "undo"), ("sqlite", "history"), ("sqlite", "load_before")}
WITHOUT_START_FILES = {("sqlite", "open_cold"), ("zeo", "open_cold")}


def test_all_upkeep_of_real_storages_is_measured_and_verified(place: Path) -> None:
    (place / "x.conf").write_text(CONF)
    names = ("undo", "history", "load_before", "open", "open_cold", "pack", "copy")
    # So many objects change that a history-free RelStorage would fail to pack twice.
    done = run(place, "x.conf", *names, *QUICK, "--min-objects", "1200", "-o", "a.json")
    assert done.status == 0, done.out + done.err
    outcomes = cells(place / "a.cells.jsonl")
    assert {cell for cell, (state, _) in outcomes.items() if state == "not supported"} == (
        NEEDING_HISTORY | WITHOUT_START_FILES
    )
    assert {state for state, _ in outcomes.values()} == {"measured", "not supported"}
    path = place / "a.d" / "fs.json"
    (pack,) = (name for name in names_in(path) if name.startswith("pack "))
    freed = metadata_of(path, pack)
    assert freed["freed_objects"] == 2 * round(1200 * 0.3 / 0.7)
    assert left_behind(place) == []


def test_a_zeo_client_with_a_persistent_cache_is_measured(place: Path) -> None:
    persistent = contender("zeo", zeo("client cache", "var $scratch"))
    (place / "x.conf").write_text(f"{ZEO_SERVER}{persistent}")
    done = run(place, "x.conf", "copy", "cold", "open_stale", *QUICK, "-c", "1", "-o", "a.json")
    assert done.status == 0, done.out + done.err
    metadata = metadata_of(place / "a.d" / "zeo.json", "open_stale")
    loads, changed = metadata["cacheable_loads"], metadata["changed_loads"]
    assert 3 * changed >= loads > 2 * changed
    assert 0 < metadata["storage_cache_hits"] <= loads - changed
    assert "open_stale: the persistent cache (client) served " in done.out


KEEPING = contender("keeping", filestorage("$scratch/k.fs\npack-gc false"))
WAYS = {
    "free": ("false", "pack-gc true"),
    "history": ("true", "pack-gc true"),
    "garbage": ("true", "pack-gc false"),
    "found": ("false", "pack-prepack-only true"),
    "found_history": ("true", "pack-prepack-only true"),
    "later": ("true", "pack-skip-prepack true"),
}


def packed(name: str, history: str, option: str) -> str:
    """Return a contender on SQLite with options for its history and for packing it."""
    storage = SQLITE.replace("$scratch/sqlite", f"$scratch/{name}")
    return contender(name, storage.replace("false", f"{history}\n{option}"))


def test_each_way_of_packing_removes_what_it_should(place: Path) -> None:
    sections = "".join(packed(name, *way) for name, way in WAYS.items())
    (place / "x.conf").write_text(f"{RELSTORAGE}{sections}{KEEPING}")
    done = run(place, "x.conf", "pack", *QUICK, "--min-objects", "1200", "-o", "a.json")
    assert done.status == 0, done.out + done.err
    outcomes = cells(place / "a.cells.jsonl")
    assert {name for (name, _), (state, _) in outcomes.items() if state == "not supported"} == {
        "later"
    }
    assert {state for state, _ in outcomes.values()} == {"measured", "not supported"}
    freed = {}
    for path in sorted((place / "a.d").glob("*.json")):
        (name,) = names_in(path)
        freed[path.stem] = metadata_of(path, name).get("freed_objects")
    garbage = 2 * round(1200 * 0.3 / 0.7)
    kept = dict.fromkeys(["keeping", "garbage", "found", "found_history"])
    assert freed == {**kept, "free": garbage, "history": garbage}


def test_copy_copies_a_database_of_an_application_with_its_blobs(place: Path) -> None:
    storage = FileStorage(str(place / "App.fs"), blob_dir=str(place / "files"))
    database: Any = ZODB.DB(storage)
    for number in range(30):
        with database.transaction() as connection:
            connection.root()["file"] = Blob(b"content %d" % number)
    records = sum(len(list(transaction)) for transaction in storage.iterator())
    database.close()
    before = hashlib.sha256((place / "App.fs").read_bytes()).hexdigest()
    words = ("copy", "-p", "1", "--data", "App.fs,files", "-o", "a.json")
    (place / "x.conf").write_text(with_blobs(CONF))
    done = run(place, "x.conf", *words)
    assert done.status == 0, done.out + done.err
    metadata = metadata_of(place / "a.d" / "fs.json", "copy")
    assert (metadata["copied_file"], metadata["copied_records"]) == ("App.fs", records)
    outcomes = cells(place / "a.cells.jsonl")
    assert outcomes["sqlite", "copy"][0] == outcomes["fs", "copy"][0] == "measured"
    assert outcomes["zeo", "copy"] == (
        "not supported", "ClientStorage: copyTransactionsFrom does not copy blobs",
    )  # fmt: skip
    assert hashlib.sha256((place / "App.fs").read_bytes()).hexdigest() == before
    assert not (place / "files" / "tmp").exists() or not any((place / "files" / "tmp").iterdir())
    refused = run(place, "x.conf", "copy", "--data", "App.fs", "-o", "b.json")
    assert refused.status == 2
    assert "it contains blobs; name the directory of their files: App.fs,DIRECTORY" in (
        refused.complaint
    )


WRITE = "to let it write to this database nevertheless, add --may-write app"
DESTROY = "to let it DESTROY ALL DATA of this database, add --zap app"


@pytest.mark.parametrize(
    ("words", "advice"),
    [(["pack", "copy"], [WRITE, DESTROY]), (["copy", "--may-write", "app"], [DESTROY])],
)
def test_a_database_of_others_is_packed_or_emptied_only_if_that_is_allowed(
    words: list[str], advice: list[str], tmp_path: Path
) -> None:
    (tmp_path / "x.conf").write_text(contender("app", filestorage("Data.fs")))
    database: Any = ZODB.DB(str(tmp_path / "Data.fs"))
    with database.transaction() as connection:
        connection.root()["books"] = 1
    database.close()
    before = hashlib.sha256((tmp_path / "Data.fs").read_bytes()).hexdigest()
    done = run(tmp_path, "x.conf", *words, "-c", "1", *QUICK, "-o", "a.json")
    assert done.status == 3
    for option in advice:
        assert option in done.out
    assert hashlib.sha256((tmp_path / "Data.fs").read_bytes()).hexdigest() == before
