"""The command on storages that are configured to be read only."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.command import QUICK, run

STORAGES = {
    "filestorage": "<filestorage>\npath {here}/x.fs\n{key}</filestorage>\n",
    "relstorage": "<relstorage>\nkeep-history false\n{key}<sqlite3>\ndata-dir {here}/x\n"
    "</sqlite3>\n</relstorage>\n",
}


def configure(directory: Path, storage: str, *, read_only: bool) -> None:
    section = STORAGES[storage].format(here=directory, key="read-only true\n" if read_only else "")
    text = f"%import relstorage\n<zodb x>\ncache-size 5000\n{section}</zodb>\n"
    (directory / "x.conf").write_text(text)


@pytest.mark.parametrize("storage", STORAGES)
def test_what_only_reads_is_measured_where_its_objects_are(storage: str, tmp_path: Path) -> None:
    configure(tmp_path, storage, read_only=False)
    assert run(tmp_path, "x.conf", "hot", "-c", "1", *QUICK).status == 0
    configure(tmp_path, storage, read_only=True)
    words = ("x.conf", "add", "new_oid", "tpc", "hot", "ex_commit", "-c", "1")
    done = run(tmp_path, *words, *QUICK)
    name = "FileStorage" if storage == "filestorage" else "RelStorage"
    assert done.status == 0, done.err + done.out
    assert (
        f"x, add, tpc, new_oid: not supported: {name} is read only as it is configured here; "
        "remove read-only, or leave out the benchmarks that write"
    ) in done.out
    done = run(tmp_path, "x.conf", "hot", "-c", "1", *QUICK, "--object-counts", "21")
    assert (
        f"not supported: {name} is read only as it is configured here, and objects to be read are "
        "not in the database; run it without read-only"
    ) in done.out
    done = run(tmp_path, "x.conf", "hot", "-c", "1", "--pack", *QUICK)
    assert f"{name} is read only as it is configured here; leave out --pack" in done.out
