"""Servers are restarted for ``--restart-servers`` only if no data would be lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from zodbshootout.client.storage_info import Durability, Place, Promise, StorageInfo
from zodbshootout.client.storages.zeo import BEHIND_SERVER
from zodbshootout.config.configuration import Source, parse
from zodbshootout.contenders.contender import contenders_of
from zodbshootout.contenders.variants import check_servers_can_restart
from zodbshootout.errors import UserError
from zodbshootout.servers.address import given_names

TEXT = """
%import ZEO
<zeoserver kept>
  <filestorage>
    path $scratch/kept.fs
  </filestorage>
</zeoserver>
<zeoserver lost>
  <mappingstorage>
  </mappingstorage>
</zeoserver>
<zodb lasting>
  <clientstorage>
    server $kept
  </clientstorage>
</zodb>
<zodb fleeting>
  <clientstorage>
    server $lost
  </clientstorage>
</zodb>
<zodb upon>
  <demostorage>
    <clientstorage base>
      server $kept
    </clientstorage>
  </demostorage>
</zodb>
<zodb alone>
  <mappingstorage>
  </mappingstorage>
</zodb>
"""


def check(place: Path, *names: str) -> None:
    source = Source(place / "x.conf", TEXT)
    with given_names(source, place) as defined:
        configuration = parse(source, defined)
    contenders = [
        contender for contender in contenders_of(configuration) if contender.name in names
    ]
    assert len(contenders) == len(names)
    check_servers_can_restart(contenders)


def test_servers_that_keep_their_data_can_be_restarted(tmp_path: Path) -> None:
    check(tmp_path, "lasting", "alone")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["alone"], "no contender has a server that the run starts"),
        (["lasting", "fleeting"], "server lost would lose its data, which it keeps in memory"),
        (
            ["lasting", "upon"],
            "upon would lose its data, which it keeps in memory; leave it out with --only",
        ),
    ],
)
def test_servers_are_not_restarted_if_that_would_lose_data(
    names: list[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as caught:
        check(tmp_path, *names)
    assert str(caught.value) == f"--restart-servers: {message}"


def opened(place: Path, name: str, promise: Promise, server_place: Place | None) -> StorageInfo:
    source = Source(place / "x.conf", TEXT)
    with given_names(source, place) as defined:
        contenders = contenders_of(parse(source, defined))
    (contender,) = (contender for contender in contenders if contender.name == name)
    return contender.opened(StorageInfo(promise=promise, server_place=server_place)).info


@pytest.mark.parametrize(
    ("name", "promise"),
    [
        ("lasting", (Durability.SYNCED, "")),
        ("fleeting", (Durability.IN_MEMORY, "")),
        ("alone", BEHIND_SERVER),
    ],
)
def test_a_private_zeo_server_keeps_the_promise_of_its_storage(
    name: str, promise: Promise, tmp_path: Path
) -> None:
    assert opened(tmp_path, name, BEHIND_SERVER, Place.HERE).promise == promise


def test_what_an_open_storage_says_of_its_commits_is_true_behind_a_private_server_too(
    tmp_path: Path,
) -> None:
    promise = (Durability.IN_MEMORY, "")
    assert opened(tmp_path, "upon", promise, Place.HERE).promise == promise


def test_only_a_server_here_that_the_run_has_started_is_private(tmp_path: Path) -> None:
    def place_of(name: str, place: Place | None) -> Place | None:
        return opened(tmp_path, name, BEHIND_SERVER, place).server_place

    assert place_of("lasting", Place.HERE) is Place.PRIVATE
    assert place_of("lasting", Place.ELSEWHERE) is Place.ELSEWHERE
    assert place_of("alone", Place.HERE) is Place.HERE
    assert place_of("alone", None) is None
