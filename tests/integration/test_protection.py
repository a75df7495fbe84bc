"""Leave the database of another application unchanged."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import transaction
import ZODB
from persistent.mapping import PersistentMapping

from tests.integration.command import QUICK, run

CONF = "<zodb app>\n<filestorage>\npath Data.fs\n</filestorage>\n</zodb>\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with the database of a small application."""
    (tmp_path / "x.conf").write_text(CONF)
    database: Any = ZODB.DB(str(tmp_path / "Data.fs"))
    with database.transaction() as connection:
        connection.root()["books"] = PersistentMapping({"moby dick": PersistentMapping(pages=635)})
        connection.root()["count"] = 1
    with database.transaction() as connection:
        connection.root()["count"] = 2
    database.close()
    return tmp_path


def digest(place: Path) -> str:
    return hashlib.sha256((place / "Data.fs").read_bytes()).hexdigest()


def states(place: Path, name: str) -> dict[str, str]:
    lines = (place / f"{name}.cells.jsonl").read_text().splitlines()
    return {cell["benchmark"]: cell["state"] for cell in map(json.loads, lines)}


def test_a_refused_run_changes_no_byte_of_the_database(place: Path) -> None:
    before = digest(place)
    done = run(place, "x.conf", "all", "--threads", "-c", "2", *QUICK, "-o", "a.json")
    assert done.status == 3
    assert digest(place) == before
    assert "the root of the database contains 'books' and 1 more" in done.out
    assert "add --may-write app" in done.out
    state_of = states(place, "a")
    assert {name for name, state in state_of.items() if state == "measured"} == {
        "ex_commit", "im_commit",
    }  # fmt: skip
    assert state_of["cold"] == state_of["add"] == state_of["new_oid"] == "failed"


def test_benchmarks_that_read_need_no_permission_if_their_objects_exist(place: Path) -> None:
    reading = ("warm", "cold", "hot", "steamin", "load", "ex_commit", "--threads", "-c", "2")
    done = run(place, "x.conf", *reading, *QUICK, "--may-write", "app", "-o", "a.json")
    assert done.status == 0, done.out + done.err
    before = digest(place)
    done = run(place, "x.conf", *reading, "readCurrent", *QUICK, "-o", "b.json")
    assert done.status == 3, done.out + done.err
    state_of = states(place, "b")
    assert state_of.pop("readCurrent") == "failed"
    assert set(state_of.values()) == {"measured"}
    assert digest(place) == before
    database: Any = ZODB.DB(str(place / "Data.fs"), read_only=True)
    root = database.open(transaction.TransactionManager()).root()
    assert root["books"]["moby dick"]["pages"] == 635
    database.close()


def test_a_database_written_only_by_zodbshootout_needs_no_permission(place: Path) -> None:
    (place / "Data.fs").unlink()
    for name in ("a.json", "b.json"):
        done = run(place, "x.conf", "add", "cold", "-c", "1", *QUICK, "-o", name)
        assert done.status == 0, done.out + done.err


def test_a_tree_of_the_same_name_from_another_application_is_left_alone(place: Path) -> None:
    (place / "Data.fs").unlink()
    database: Any = ZODB.DB(str(place / "Data.fs"))
    with database.transaction() as connection:
        connection.root()["zodbshootout"] = PersistentMapping(precious=1)
    database.close()
    before = digest(place)
    done = run(place, "x.conf", "add", "-c", "1", *QUICK, "-o", "a.json")
    assert done.status == 3
    assert "the root of the database contains 'zodbshootout'" in done.out
    assert digest(place) == before


def test_list_reports_two_contenders_that_share_a_database(
    place: Path,
) -> None:
    (place / "x.conf").write_text(CONF + CONF.replace("<zodb app>", "<zodb again>"))
    done = run(place, "x.conf", "add", "-c", "1", "--list")
    assert done.status == 0
    assert done.err == f"zodbshootout: app and again use the same database: {place / 'Data.fs'}\n"
