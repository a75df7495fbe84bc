"""Measure storages that are configured to be read-only."""

from __future__ import annotations

from pathlib import Path

from tests.integration.command import QUICK, run

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
