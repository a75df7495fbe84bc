"""``--private``: the configurations that people have are measured, their data is not touched."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from tests import instances
from tests.instances import instance
from tests.integration.command import OBJECTS, cells
from zodbshootout.errors import ALL_MEASURED, BAD_USAGE

pytestmark = [
    pytest.mark.servers("strace"),
    pytest.mark.skipif(sys.platform != "linux", reason="strace exists for Linux only"),
]

WITH_BLOBS = {
    "cookiecutter/convert-export.conf": ("source", "destination"),
    "cookiecutter/sqlite.conf": ("main",),
    "cookiecutter/zeo.conf": ("main",),
    "plone-backend/relstorage.conf": ("main",),
    "plone-backend/zeo.conf": ("main",),
    "plone-backend/zope.conf": ("main",),
    "pyramid/unnamed.conf": ("zodb",),
    "zodbtools/zodbconvert.conf": ("source", "destination"),
    "zope2instance/filestorage.conf": ("main",),
    "zope2instance/postgresql.conf": ("main",),
    "zope2instance/wrapped.conf": ("main",),
    "zope2instance/zeo.conf": ("main",),
}
"""The contenders of configurations whose storages all store blobs."""
WITHOUT_BLOBS = {
    "plone-backend/relstorage_pack.conf": ("relstorage",),
    "bluebream/zope.conf": ("zodb",),
    "pyramid/zodb.conf": ("main", "catalog", "sessions"),
    "zenoss/zope.conf": ("main", "temporary"),
    "zope2instance/mysql.conf": ("main", "temporary"),
    "zope2instance/temporary.conf": ("main", "temporary", "catalog"),
}
"""The contenders of the other configurations."""
REFUSED = {
    "plone-zeo/zeo.conf": "this is the configuration of a ZEO server",
    "pyramid/zeo.conf": "this is the configuration of a ZEO server",
    "zeoserver/zeo.conf": "this is the configuration of a ZEO server",
    "cookiecutter/pgjsonb.conf": "not known how to give <s3blobstorage> new data",
    "zodbtools/zodbpack.conf": "not known how to give <oracle> new data",
    "zope2instance/staging.conf": "not known how to give <before> new data",
}
"""Configurations with a storage that cannot be replaced, or of a server, and the reason."""
ONCE = ("-c", "1", "--object-counts", str(OBJECTS), "--debug-single-value", "-o", "a.json")


@pytest.mark.parametrize(
    ("contenders", "words"),
    [(WITH_BLOBS, ("--blobs",)), (WITHOUT_BLOBS, ())],
    ids=["with blobs", "without blobs"],
)
def test_configurations_are_measured_in_one_table_and_their_data_is_never_opened(
    contenders: dict[str, tuple[str, ...]], words: tuple[str, ...], place: Path
) -> None:
    with instance(place, *contenders) as site:
        done = site.run("update", *words, *ONCE, "--private")
    assert done.status == ALL_MEASURED, done.err
    states = cells(site.work / "a.cells.jsonl")
    assert set(states.values()) == {("measured", "")}
    # A name that several files have stands behind its file.
    names = [contender.rpartition(":")[2] for contender, _ in states]
    assert Counter(names) == Counter(chain(*contenders.values()))


@pytest.mark.parametrize("name", REFUSED)
def test_a_storage_that_cannot_be_replaced_is_refused_and_never_opened(
    name: str, place: Path
) -> None:
    with instance(place, name) as site:
        done = site.run("update", *ONCE, "--private")
    assert done.status == BAD_USAGE
    assert REFUSED[name] in done.complaint
    assert str(site.configurations[0]) in done.complaint


def test_every_configuration_is_measured_or_refused() -> None:
    assert sorted({**WITH_BLOBS, **WITHOUT_BLOBS, **REFUSED}) == instances.names()
