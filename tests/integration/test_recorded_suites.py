"""Run the storage test suites of ZODB and ZEO on recorded storages.

RelStorage's tests need more than the test environment provides; run by hand with RelStorage 4.3 on
SQLite, the recorded storage fails the same six tests as plain RelStorage.
"""

from __future__ import annotations

import unittest
from pathlib import Path
from typing import Any

import pytest
from ZEO.tests import testZEO
from ZODB.tests import testDemoStorage, testFileStorage, testMappingStorage, testMVCCMappingStorage

from tests.recording.recordings import counts
from zodbshootout.recording import record
from zodbshootout.recording.storage import RecordedStorage

SHORT = [
    testFileStorage.FileStorageTestsWithBlobsEnabled,
    testDemoStorage.DemoStorageTests,
    testMVCCMappingStorage.MVCCMappingStorageTests,
]
LONG = [
    testFileStorage.FileStorageTests,
    testFileStorage.FileStorageHexTests,
    testMappingStorage.MappingStorageTests,
    testMappingStorage.MappingStorageHexTests,
    testDemoStorage.DemoStorageHexTests,
    testZEO.FileStorageTests,
    testZEO.DemoStorageTests,
    testZEO.BlobAdaptedFileStorageTests,
]


def recorded(suite: type, place: Path) -> type:
    """Return a subclass of a test suite that records the suite's storage."""

    def get(self: Any) -> Any:
        return self.__dict__.get("recorded")

    def put(self: Any, storage: Any) -> None:
        is_wrapped = storage is None or isinstance(storage, RecordedStorage)
        self.__dict__["recorded"] = storage if is_wrapped else record(storage, place)

    names = {"_storage": property(get, put), "__module__": suite.__module__}
    return type(suite.__name__, (suite,), names)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Include the suites that take minutes only with ``--full``."""
    suites = SHORT + LONG if metafunc.config.getoption("--full") else SHORT
    names = [f"{suite.__module__.rpartition('.')[2]}.{suite.__name__}" for suite in suites]
    metafunc.parametrize("suite", suites, ids=names)


@pytest.mark.filterwarnings("ignore")
def test_a_recorded_storage_passes_the_tests_of_its_kind(suite: type, tmp_path: Path) -> None:
    place = tmp_path / "main.workload"
    tests = unittest.defaultTestLoader.loadTestsFromTestCase(recorded(suite, place))
    result = unittest.TestResult()
    tests.run(result)
    assert result.testsRun > 40
    assert [(test.id(), text) for test, text in result.failures + result.errors] == []
    assert counts(place)["FINISH"] > 0
