"""Servers are restarted for ``--restart-servers`` only if no data would be lost."""

from __future__ import annotations

from pathlib import Path

import pytest

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
