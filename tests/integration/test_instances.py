"""Commands that touch the data or the servers of an instance, which must not notice them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.instances import Instance, instance, manifest
from zodbshootout.errors import ALL_MEASURED

pytestmark = [
    pytest.mark.servers("strace"),
    pytest.mark.skipif(sys.platform != "linux", reason="strace exists for Linux only"),
]
NAMES = (
    "zope2instance/filestorage.conf", "zope2instance/zeo.conf", "zope2instance/postgresql.conf",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_private_listing_touches_nothing_of_an_instance(name: str, place: Path) -> None:
    with instance(place, name) as site:
        done = site.run("add", "--list", "-c", "1", "--private")
    assert done.status == ALL_MEASURED, done.out + done.err


TOUCHES = {
    "reading": "open({data!r}, 'rb').read()",
    "appending to": "open({data!r}, 'ab').write(b'x')",
    "listing": "import os; os.listdir({var!r})",
    "locking": "open({data!r} + '.lock', 'a')",
    "removing": "import os; os.remove({data!r})",
    "in it": "import os; os.chdir({var!r}); open('filestorage/Data.fs')",
    "changing the configuration": "open({file!r}, 'a')",
    "connecting": "import socket; socket.create_connection(('127.0.0.1', {port}))",
}


@pytest.mark.parametrize("way", TOUCHES)
def test_an_instance_notices_that_it_is_touched(way: str, place: Path) -> None:
    with (
        pytest.raises(AssertionError, match=r"Data\.fs|plone/var|\.conf|htons"),
        instance(place, NAMES[0]) as site,
    ):
        site.traced(sys.executable, "-c", program(way, site))


@pytest.mark.parametrize("way", ["appending to", "connecting"])
def test_an_instance_notices_without_a_trace_what_was_changed(way: str, place: Path) -> None:
    with pytest.raises(AssertionError), instance(place, NAMES[0]) as site:
        subprocess.run([sys.executable, "-c", program(way, site)], check=True)


def program(way: str, site: Instance) -> str:
    var = site.directory / "srv/plone/var"
    return TOUCHES[way].format(
        data=str(var / "filestorage/Data.fs"), var=str(var), file=str(site.configurations[0]),
        port=site.server.getsockname()[1],
    )  # fmt: skip


def test_an_instance_has_objects_and_blobs(place: Path) -> None:
    with instance(place, NAMES[0]) as site:
        files = manifest(site.directory)
    assert files["srv/plone/var/filestorage/Data.fs"][-1].startswith(b"FS")
    assert [path for path in files if path.endswith(".blob") and "blobstorage/0x" in path]
    assert b"an image" in [content for *_, content in files.values()]
