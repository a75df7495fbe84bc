"""Contenders on several storages of one ZEO server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ZODB.DB import DB

from tests.integration.command import QUICK, cells, left_behind, metadata_of, run
from zodbshootout.client.data.datasets import TOP

STORAGES = {
    "file": "<filestorage>\npath file.fs\n</filestorage>\n",
    "memory": "<mappingstorage 2>\n</mappingstorage>\n",
    "catalog": "<filestorage catalog>\npath catalog.fs\n</filestorage>\n",
}
"""The sections of the server's storages, by the contenders that use them."""
CLIENT = "<zodb {}>\n<zeoclient>\nserver localhost:$main_port\n{}</zeoclient>\n</zodb>\n"
CONF = (
    f"<zeoserver main>\n{''.join(STORAGES.values())}</zeoserver>\n"
    + CLIENT.format("file", "")
    + CLIENT.format("memory", "storage 2\n")
    + CLIENT.format("catalog", "storage catalog\n")
)
FILES = ("file", "catalog")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "x.conf").write_text(CONF)
    return tmp_path


@contextmanager
def root_of(place: Path, contender: str) -> Iterator[Any]:
    db = DB(str(place / f"{contender}.fs"))
    try:
        with db.transaction() as connection:
            yield connection.root()
    finally:
        db.close()


def stored_in(place: Path, contender: str) -> set[str]:
    """Return the names in the root of a contender's file, and those of the datasets."""
    with root_of(place, contender) as root:
        datasets = ("/".join(key.split("/")[:2]) for key in root.get(TOP, ()) if "/" in key)
        return {*(name for name in root if name != TOP), *datasets}


def test_contenders_are_measured_on_the_storages_that_they_name(place: Path) -> None:
    done = run(place, "x.conf", "add", "update", "-c", "2", *QUICK, "-o", "a.json")
    assert done.status == 0, done.out + done.err
    assert set(cells(place / "a.cells.jsonl").values()) == {("measured", "")}
    durability = {
        name: metadata_of(place / "a.d" / f"{name}.json", "add")["durability"] for name in STORAGES
    }
    assert durability == {"file": "synced", "memory": "in memory", "catalog": "synced"}
    for name in FILES:
        assert stored_in(place, name) == {f"add/{name}", f"update/{name}"}
    assert left_behind(place) == []


def test_zap_empties_the_storage_of_the_named_contender_alone(place: Path) -> None:
    for name in FILES:
        with root_of(place, name) as root:
            root["treasure"] = name
    words = ("add", "--zap", "catalog", "--only", "catalog")
    done = run(place, "x.conf", *words, "-c", "1", *QUICK)
    assert done.status == 0, done.out + done.err
    assert stored_in(place, "file") == {"treasure"}
    assert stored_in(place, "catalog") == {"add/catalog"}
