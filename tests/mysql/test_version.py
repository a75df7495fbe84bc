from __future__ import annotations

import pytest

from tests.mysql.server import DEBIAN_12, DEBIAN_SID, FakeDriver, FakeServer
from zodbshootout.mysql.adapter import VersionDetector, honours_inline_references, number, product


@pytest.mark.parametrize(
    ("version", "name", "digits", "honours"),
    [
        (DEBIAN_12, "MariaDB", "10.11.19", True),
        ("10.4.34-MariaDB", "MariaDB", "10.4.34", False),
        ("10.5.0-MariaDB-1:10.5.0+maria~focal", "MariaDB", "10.5.0", True),
        ("11.8.3-MariaDB-ubu2404-log", "MariaDB", "11.8.3", True),
        ("5.7.44-log", "MySQL", "5.7.44", False),
        ("8.0.43-0ubuntu0.24.04.1", "MySQL", "8.0.43", False),
        ("8.4.6", "MySQL", "8.4.6", False),
        ("9.0.0", "MySQL", "9.0.0", True),
        (DEBIAN_SID, "MySQL", "9.7.4", True),
        ("10.0.0", "MySQL", "10.0.0", True),
    ],
)
def test_a_version_string_gives_product_number_and_reference_support(
    version: str, name: str, digits: str, honours: bool
) -> None:
    assert product(version) == name
    assert number(version) == digits
    assert honours_inline_references(version) == honours


@pytest.mark.parametrize(
    ("version", "reported", "alias"),
    [
        (DEBIAN_12, (5, 7, 44), False),
        ("10.6.4-MariaDB-1:10.6.4+maria~focal", (5, 7, 44), False),
        ("8.0.18", (8, 0, 18), False),
        (DEBIAN_SID, (9, 7, 4), True),
    ],
)
def test_mariadb_is_reported_to_relstorage_as_mysql_5_7_and_mysql_as_itself(
    version: str, reported: tuple[int, ...], alias: bool
) -> None:
    driver = FakeDriver(FakeServer(version))
    cursor = driver.cursor(driver.connect())
    detector = VersionDetector()
    assert detector.server_version is None
    assert detector.get_version_info(cursor) == reported
    assert detector.get_major_version(cursor) == reported[0]
    assert detector.requires_values_upsert_alias(cursor) == alias
    assert detector.server_version == version
