"""``--private``: the configurations that people have are measured, their data is not touched."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.instances import instance
from tests.integration.command import QUICK
from zodbshootout.errors import ALL_MEASURED

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="strace exists for Linux only")


@pytest.mark.parametrize(
    "name",
    [
        "zope2instance/filestorage.conf",
        "zope2instance/zeo.conf",
        "zope2instance/postgresql.conf",
        "zope2instance/mysql.conf",
    ],
)
def test_an_instance_is_measured_and_its_data_is_never_opened(name: str, place: Path) -> None:
    with instance(name, place) as site:
        done = site.run("add", "update", "-c", "1", "--blobs", *QUICK, "--private")
    assert done.status == ALL_MEASURED, done.err
    assert "update 5x300B blobs processes-1: main " in done.err
