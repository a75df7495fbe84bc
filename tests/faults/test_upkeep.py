"""Packs and copies of databases with other data: killed, interrupted, or out of disk."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import ZODB

from tests.faults.disks import small_disk
from tests.faults.runs import GOOD, faulty, outcomes
from tests.integration.command import QUICK, left_behind, run, start, wait_until

DURING = ("--rate", "50", "--object-counts", "5", "--threads", "-c", "1", "-p", "1")
IN_PACK, IN_COPY, IN_ITERATOR = {"during": "pack"}, {"benchmark_commit": 3}, {"during": "iterator"}


def make_library(path: Path, size: int = 1000) -> str:
    """Make the database of an application; return the section of its storage."""
    database: Any = ZODB.DB(str(path))
    with database.transaction() as connection:
        connection.root()["books"] = os.urandom(size)
    database.close()
    return f"<filestorage>\npath {path}\n</filestorage>\n"


def has_books(path: Path) -> bool:
    database: Any = ZODB.DB(str(path))
    with database.transaction() as connection:
        has_it = "books" in connection.root()
    database.close()
    return has_it


@pytest.mark.parametrize(("name", "keys"), [("pack", IN_PACK), ("copy", IN_COPY)])
def test_a_process_that_fails_in_its_upkeep_fails_its_cell_alone(
    name: str, keys: dict[str, Any], tmp_path: Path
) -> None:
    bad = faulty("killed", "kill", **keys) + faulty("burnt", "raise", **keys)
    (tmp_path / "x.conf").write_text(f"%import faulty\n{GOOD}{bad}")
    done = run(tmp_path, "x.conf", name, "-c", "1", *QUICK, "--retries", "0", "-o", "a.json")
    assert done.status == 3, done.out + done.err
    states = outcomes(tmp_path)
    assert states.pop(f"good {name}") == ("measured", "")
    assert {state for state, _ in states.values()} == {"failed"}
    assert "was killed by SIGKILL" in states[f"killed {name}"][1]
    assert "the disk is on fire" in states[f"burnt {name}"][1]
    assert "Traceback" not in done.out + done.err
    assert left_behind(tmp_path) == []


def test_a_copy_that_is_killed_is_repeated_in_the_emptied_database(tmp_path: Path) -> None:
    for _ in range(2):  # so that it is killed after the books were copied
        make_library(tmp_path / "Data.fs")
    bad = faulty("bad", "kill", once=str(tmp_path / "once"), benchmark_commit=3)
    (tmp_path / "x.conf").write_text(f"%import faulty\n{bad}")
    words = ("copy", "--data", "Data.fs", "-c", "1", *QUICK)
    done = run(tmp_path, "x.conf", *words, "-o", "a.json")
    assert (tmp_path / "once").exists()
    assert done.status == 0, done.out + done.err


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (("pack", "-c", "1", *QUICK), IN_PACK),
        (("copy", "-c", "1", *QUICK), IN_COPY),
        (("load", "--during", "copy", *DURING), IN_ITERATOR),
    ],
    ids=["pack", "copy", "during copy"],
)
def test_ctrl_c_leaves_nothing_but_what_was_there_before(
    words: tuple[str, ...], keys: dict[str, Any], tmp_path: Path
) -> None:
    reached, library = tmp_path / "reached", tmp_path / "Data.fs"
    storage = "" if "copy" in words[:1] else make_library(library)
    section = faulty("app", "hang", storage, once=str(reached), **keys)
    (tmp_path / "x.conf").write_text(f"%import faulty\n{section}")
    with start(tmp_path, "x.conf", *words, "--may-write", "app", "-o", "a.json") as process:
        wait_until(reached.exists)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert "Traceback" not in out + err
    assert not storage or has_books(library)
    assert not (tmp_path / "a.json").exists()
    assert left_behind(tmp_path) == []


FULL = "No space left on device"


def failures_of(place: Path, *words: str, **variables: str) -> set[str]:
    """Run what fails, and return the reasons of all cells."""
    done = run(place, "x.conf", *words, "-o", "a.json", **variables)
    assert done.status == 3, done.out + done.err
    assert "Traceback" not in done.out + done.err
    states = outcomes(place)
    assert {state for state, _ in states.values()} == {"failed"}
    return {reason for _, reason in states.values()}


@pytest.mark.servers("root")
@pytest.mark.parametrize(
    "words", [("pack", "-c", "1", *QUICK), ("load", "--during", "pack", *DURING)]
)
def test_a_disk_that_a_pack_fills_loses_no_data(words: tuple[str, ...], tmp_path: Path) -> None:
    with small_disk(tmp_path, "1m") as disk:
        make_library(tmp_path / "Data.fs", 600_000)
        shutil.move(tmp_path / "Data.fs", disk)
        section = f"<filestorage>\npath {disk}/Data.fs\n</filestorage>\n"
        (tmp_path / "x.conf").write_text(f"<zodb app>\n{section}</zodb>\n")
        (reason,) = failures_of(tmp_path, *words, "--may-write", "app")
        assert FULL in reason
        assert has_books(disk / "Data.fs")
        assert not (disk / "Data.fs.pack").exists()
    assert left_behind(tmp_path) == []


@pytest.mark.servers("root")
def test_a_disk_that_a_copy_fills_fails_its_cell(tmp_path: Path) -> None:
    with small_disk(tmp_path, "200k") as disk:
        section = f"<zodb bad>\n<filestorage>\npath {disk}/a.fs\n</filestorage>\n</zodb>\n"
        (tmp_path / "x.conf").write_text(section)
        few = ("--object-counts", "400", "-p", "1", "-n", "1")
        (reason,) = failures_of(tmp_path, "copy", "-c", "1", *few)
        assert FULL in reason
    assert left_behind(tmp_path) == []


@pytest.mark.servers("root")
def test_a_disk_that_the_copy_of_a_live_database_fills_is_left_empty(tmp_path: Path) -> None:
    section = make_library(tmp_path / "Data.fs", 3_000_000)
    (tmp_path / "x.conf").write_text(f"<zodb app>\n{section}</zodb>\n")
    with small_disk(tmp_path, "2m") as disk:
        words = ("load", "--during", "copy", *DURING, "--may-write", "app")
        (reason,) = failures_of(tmp_path, *words, TMPDIR=str(disk))
        assert FULL in reason
        assert list(disk.iterdir()) == []
    assert has_books(tmp_path / "Data.fs")
