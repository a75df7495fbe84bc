"""A package that raises when it is imported, opened or closed, and a driver that is not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults.runs import GOOD, check_failed, faulty, measure, outcomes
from tests.integration.command import QUICK, SOURCES, left_behind, run

BOTH = ("bad add", "bad cold")


def test_a_package_that_raises_when_its_section_is_imported(tmp_path: Path) -> None:
    package = tmp_path / "raising"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('this is no package')\n")
    (tmp_path / "x.conf").write_text("%import raising\n" + GOOD)
    done = run(
        tmp_path, "x.conf", "add", "-c", "1", *QUICK, PYTHONPATH=f"{tmp_path}{os.pathsep}{SOURCES}"
    )
    assert done.status == 2
    assert done.complaint.startswith("zodbshootout: x.conf: ")
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("fault", ["raise", "kill", "exit"])
def test_a_storage_that_fails_when_it_is_opened(fault: str, tmp_path: Path) -> None:
    done = measure(tmp_path, faulty("bad", fault, during="open"))
    check_failed(done, tmp_path, "cannot be opened: ", failed=BOTH)


def test_a_storage_that_hangs_when_it_is_opened(tmp_path: Path) -> None:
    done = measure(tmp_path, faulty("bad", "hang", during="open"), "--open-timeout", "6")
    check_failed(done, tmp_path, "time limit of 6 s (--open-timeout)", failed=BOTH)


@pytest.mark.parametrize("fault", ["raise", "kill", "hang"])
def test_a_storage_that_fails_when_it_is_closed(fault: str, tmp_path: Path) -> None:
    done = measure(tmp_path, faulty("bad", fault, during="close"), "--open-timeout", "6")
    check_failed(done, tmp_path, failed=BOTH)


DRIVERS = {
    "oracle": "<oracle>\nuser x\npassword y\ndsn z\n</oracle>\n",
    "a driver of PostgreSQL": "<postgresql>\ndriver psycopg2cffi\ndsn host='x'\n</postgresql>\n",
    "a driver of MySQL": "<mysql>\ndriver C MySQL Connector/Python\ndb x\n</mysql>\n",
}


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_driver_that_is_missing(driver: str, tmp_path: Path) -> None:
    text = f"<zodb bad>\n<relstorage>\n{DRIVERS[driver]}</relstorage>\n</zodb>\n"
    done = measure(tmp_path, text, imports="%import relstorage\n")
    check_failed(done, tmp_path, "install it: pip install", failed=BOTH)
    assert outcomes(tmp_path)["good add"][0] == "measured"


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "not.fs").write_bytes(b"this is not a FileStorage, and long enough to see that")
    text = "<zodb bad>\n<filestorage>\npath not.fs\n</filestorage>\n</zodb>\n"
    done = measure(tmp_path, text)
    check_failed(done, tmp_path, "cannot be opened: FileStorageFormatError", failed=BOTH)
