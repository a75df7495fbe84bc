"""Measure storages that are configured to be read-only."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.integration import foreign
from tests.integration.command import QUICK, left_behind, run

CONF = """
%import relstorage
<zodb fs>
  cache-size 5000
  <filestorage>
    path {here}/x.fs
    {key}
  </filestorage>
</zodb>
<zodb sqlite>
  cache-size 5000
  <relstorage>
    keep-history false
    {key}
    <sqlite3>
      data-dir {here}/x
    </sqlite3>
  </relstorage>
</zodb>
"""


def test_a_read_only_storage_only_runs_benchmarks_that_read_existing_objects(
    tmp_path: Path,
) -> None:
    conf = tmp_path / "x.conf"
    conf.write_text(CONF.format(here=tmp_path, key=""))
    assert run(tmp_path, "x.conf", "hot", "-c", "1", *QUICK).status == 0

    conf.write_text(CONF.format(here=tmp_path, key="read-only true"))
    words = ("x.conf", "add", "new_oid", "tpc", "hot", "ex_commit", "-c", "1")
    done = run(tmp_path, *words, *QUICK)
    assert done.status == 0, done.err + done.out
    missing = run(tmp_path, "x.conf", "hot", "-c", "1", *QUICK, "--object-counts", "21")
    packed = run(tmp_path, "x.conf", "hot", "-c", "1", *QUICK, "--pack")
    for contender, name in (("fs", "FileStorage"), ("sqlite", "RelStorage")):
        assert (
            f"{contender}, add, tpc, new_oid: not supported: {name} is read-only as "
            "configured here; leave out the benchmarks that write"
        ) in done.out
        assert (
            f"not supported: {name} is read-only as configured here, and "
            "the database lacks objects that are needed; run the benchmark once on a contender"
        ) in missing.out
        assert (
            f"not supported: {name} is read-only as configured here; leave out --pack"
        ) in packed.out


def on_server(name: str, port: int, more: str = "") -> str:
    return f"""
<externalserver {name}>
  address 127.0.0.1:{port}
</externalserver>
<zodb on_{name}>
  <relstorage>
    keep-history false
    {more}
    <postgresql>
      dsn host='${name}_host' port='${name}_port' dbname='postgres' user='zodbshootout'
    </postgresql>
  </relstorage>
</zodb>
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@pytest.mark.servers("PostgreSQL")
def test_reads_of_a_hot_standby_are_measured_and_what_writes_is_not_supported(place: Path) -> None:
    primary, standby = free_port(), free_port()
    plain = "%import relstorage\n" + on_server("primary", primary)
    (place / "plain.conf").write_text(plain + on_server("standby", standby))
    reading = "read-only true\n    create-schema false"
    (place / "x.conf").write_text(plain + on_server("standby", standby, reading))
    words = ("add", "update", "hot", "cold", "-c", "1", *QUICK)
    with foreign.postgresql(place, primary, "127.0.0.1"):
        prepared = run(place, "x.conf", "--only", "on_primary", *words)
        assert prepared.status == 0, prepared.err
        with foreign.standby(place, primary, standby):
            done = run(place, "x.conf", *words, "-o", "a.json")
            refused = run(place, "plain.conf", "hot", "-c", "1", *QUICK)
    assert done.status == 0, done.err + done.out
    assert "on_standby, add, update: not supported: RelStorage is read-only" in done.out
    assert refused.status == 3
    assert (
        "the server is a standby, which is read only: write 'read-only true' and 'create-schema "
        "false' in <relstorage>"
    ) in " ".join(refused.out.split())
    assert left_behind(place) == []
