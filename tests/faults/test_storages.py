"""Storages that fail when they are imported, opened or closed, and missing drivers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults.runs import GOOD, FaultyRun, faulty, measure_together
from tests.integration.command import QUICK, SOURCES, left_behind, run

BOTH = ("add", "cold")
OPENING = {fault: {"fault": fault, "during": "open"} for fault in ("raise", "kill", "exit", "hang")}
CLOSING = {
    f"{fault}_closing": {"fault": fault, "during": "close"} for fault in ("raise", "kill", "hang")
}
DRIVERS = {
    "oracle": "<oracle>\nuser x\npassword y\ndsn z\n</oracle>\n",
    "driver_of_postgresql": "<postgresql>\ndriver psycopg2cffi\ndsn host='x'\n</postgresql>\n",
    "driver_of_mysql": "<mysql>\ndriver C MySQL Connector/Python\ndb x\n</mysql>\n",
}
NO_DATABASE = "<zodb no_database>\n<filestorage>\npath not.fs\n</filestorage>\n</zodb>\n"

pytestmark = pytest.mark.xdist_group("storages")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> FaultyRun:
    """A run with storages that cannot be opened or closed, next to a good one."""
    place = tmp_path_factory.mktemp("storages")
    (place / "not.fs").write_bytes(b"this is not a FileStorage, and long enough to see that")
    text = "".join(faulty(name, **keys) for name, keys in (OPENING | CLOSING).items())
    for name, section in DRIVERS.items():
        text += f"<zodb {name}>\n<relstorage>\n{section}</relstorage>\n</zodb>\n"
    imports = "%import faulty\n%import relstorage\n"
    return measure_together(place, text + NO_DATABASE, imports=imports)


def test_failing_storages_do_not_affect_others(opened: FaultyRun) -> None:
    opened.check_others_are_measured(*OPENING, *CLOSING, *DRIVERS, "no_database")


@pytest.mark.parametrize("fault", ["raise", "kill", "exit"])
def test_a_storage_that_cannot_be_opened_fails_all_its_cells(fault: str, opened: FaultyRun) -> None:
    opened.check_failed(fault, "cannot be opened: ", benchmarks=BOTH)


def test_a_storage_that_hangs_while_opening_fails_at_the_time_limit(opened: FaultyRun) -> None:
    opened.check_failed("hang", "time limit of 8 s (--timeout)", benchmarks=BOTH)


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("raise", "StorageError: the disk is on fire"),
        ("kill", "was killed by SIGKILL"),
        ("hang", "time limit of 8 s (--timeout)"),
    ],
)
def test_a_storage_that_cannot_be_closed_fails_all_its_cells(
    fault: str, cause: str, opened: FaultyRun
) -> None:
    opened.check_failed(f"{fault}_closing", cause, benchmarks=BOTH)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_missing_driver_is_reported_with_how_to_install_it(
    driver: str, opened: FaultyRun
) -> None:
    opened.check_failed(driver, "install it: pip install", benchmarks=BOTH)


def test_a_file_that_is_not_a_database_cannot_be_opened(opened: FaultyRun) -> None:
    opened.check_failed("no_database", "cannot be opened: FileStorageFormatError", benchmarks=BOTH)


def test_a_package_that_raises_on_import_is_bad_usage(tmp_path: Path) -> None:
    package = tmp_path / "raising"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('this is no package')\n")
    (tmp_path / "x.conf").write_text("%import raising\n" + GOOD)
    done = run(
        tmp_path, "x.conf", "add", "-c", "1", *QUICK, PYTHONPATH=f"{tmp_path}{os.pathsep}{SOURCES}"
    )
    assert done.status == 2
    assert done.complaint.startswith("zodbshootout: x.conf: ")
    assert "this is no package" in done.complaint
    assert left_behind(tmp_path) == []
