"""Measure the storage of a ZODB URI instead of a configuration file."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import outcome
from tests.integration.command import QUICK, cells, left_behind, metadata_of, names_in, run
from zodbshootout.client.reachability import accepts
from zodbshootout.servers.address import HOST, reserved_port

REFUSED = "FileStorage: only one DB at a time can open it; use --threads shared, or -c 1"


@pytest.fixture
def zeo(tmp_path: Path) -> Iterator[str]:
    """Run a ZEO server; return its address."""
    with reserved_port() as port, (tmp_path / "zeo.log").open("wb") as log:
        address = f"{HOST}:{port}"
        command = [sys.executable, "-m", "ZEO.runzeo", "-a", address, "-f", "zeo.fs"]
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path)
        try:
            deadline = time.monotonic() + 30
            while not accepts((HOST, port)):
                assert server.poll() is None, (tmp_path / "zeo.log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield address
        finally:
            server.terminate()
            server.wait(30)


@pytest.mark.parametrize(
    ("words", "clients", "client_kind"),
    [
        ([], 1, "process"),
        (["-c", "1"], 1, "process"),
        (["-c", "3", "--threads"], 3, "thread"),
    ],
)
def test_a_filestorage_uri_is_measured(
    words: list[str], clients: int, client_kind: str, tmp_path: Path
) -> None:
    done = run(tmp_path, "file://kept $1.fs", "cold", *words, *QUICK, "-o", "a.json")
    assert done.status == 0, done.out + done.err
    assert names_in(tmp_path / "a.d" / "file.json") == {"cold"}
    metadata = metadata_of(tmp_path / "a.d" / "file.json", "cold")
    assert (metadata["clients"], metadata["client_kind"]) == (clients, client_kind)
    assert metadata["storage_classes"] == "ZODB.FileStorage.FileStorage.FileStorage"
    assert json.loads(str(metadata["settings"]))["uri"] == "file://kept $1.fs"
    assert (tmp_path / "kept $1.fs").stat().st_size > 1000
    assert left_behind(tmp_path) == []


def test_an_unsupported_crew_of_a_filestorage_is_reported_by_list_and_run(tmp_path: Path) -> None:
    words = ("file://x.fs", "hot", "-c", "2")
    listed = run(tmp_path, *words, "--list")
    assert listed.status == 0
    assert f"[1] file: not supported: {REFUSED}" in listed.out.splitlines()
    done = run(tmp_path, *words, *QUICK, "-o", "a.json")
    assert done.status == 3
    assert "nothing was measured" in done.err.splitlines()[-1]
    assert cells(tmp_path / "a.cells.jsonl") == {("file", "hot"): ("not supported", REFUSED)}


def test_a_zeo_uri_is_measured(zeo: str, tmp_path: Path) -> None:
    done = run(tmp_path, f"zeo://{zeo}?connection_cache_size=99", "cold", "warm", "-c", "2",
               "--include-mapping", "--only", "zeo", *QUICK, "-o", "a.json")  # fmt: skip
    assert done.status == 0, done.out + done.err
    assert {path.stem for path in (tmp_path / "a.d").iterdir()} == {"zeo"}
    assert names_in(tmp_path / "a.d" / "zeo.json") == {"cold", "warm"}
    metadata = metadata_of(tmp_path / "a.d" / "zeo.json", "cold")
    assert metadata["cleared_caches"] == "pickle cache, ZEO client cache"
    assert json.loads(str(metadata["settings"]))["cache_size"] == "99"


def test_a_zeo_server_is_zapped_if_the_user_confirms(zeo: str, tmp_path: Path) -> None:
    for answer, name in (("n\n", "a.json"), ("y\n", "b.json")):
        done = run(tmp_path, "--zap", f"zeo://{zeo}", "add", "--threads", *QUICK, "-o", name,
                   answers=answer)  # fmt: skip
        assert done.status == 0, done.out + done.err
        assert f"Destroy all data of zeo, ClientStorage (zeo://{zeo})? [y/N]" in done.err
    assert metadata_of(tmp_path / "a.d" / "zeo.json", "add")["zapped"] is False
    assert metadata_of(tmp_path / "b.d" / "zeo.json", "add")["zapped"] is True


def test_a_missing_zeo_server_is_reported_with_advice(tmp_path: Path) -> None:
    done = run(tmp_path, "zeo://localhost:1", "add", "-c", "1", *QUICK, "-o", "a.json")
    assert done.status == 3
    assert "no server at localhost:1; start one there" in done.out


def test_a_memory_uri_is_measured_next_to_the_floor(tmp_path: Path) -> None:
    done = run(tmp_path, "memory://", "cold", "hot", "--include-mapping", *QUICK, "-o", "a.json")
    assert done.status == 0, done.out + done.err
    assert set(cells(tmp_path / "a.cells.jsonl").values()) == {("measured", "")}
    assert {path.stem for path in (tmp_path / "a.d").iterdir()} == {"memory", "mapping"}


def test_a_demostorage_leaves_its_base_unchanged(tmp_path: Path) -> None:
    assert run(tmp_path, "file://x.fs", "cold", *QUICK, "-o", "a.json").status == 0
    before = (tmp_path / "x.fs").read_bytes()
    done = run(tmp_path, "demo:(file://x.fs)/(memory://)#connection_pool_size=9", "add", "cold",
               *QUICK, "-o", "b.json")  # fmt: skip
    assert done.status == 0, done.out + done.err
    metadata = metadata_of(tmp_path / "b.d" / "demo.json", "cold")
    assert str(metadata["storage_classes"]).startswith("ZODB.DemoStorage.DemoStorage over ")
    assert json.loads(str(metadata["settings"]))["pool_size"] == "9"
    assert (tmp_path / "x.fs").read_bytes() == before


def test_an_sqlite_uri_is_measured_through_the_resolver_of_relstorage(tmp_path: Path) -> None:
    done = run(tmp_path, "sqlite://?data_dir=db&keep_history=false", "cold",
               "readCurrent_conflicts", "-c", "2", *QUICK, "-o", "a.json")  # fmt: skip
    assert done.status == 0, done.out + done.err
    metadata = metadata_of(tmp_path / "a.d" / "sqlite.json", "cold")
    assert metadata["cleared_caches"] == "pickle cache, RelStorage cache"
    assert metadata["driver"] == "sqlite3"
    state, reason = cells(tmp_path / "a.cells.jsonl")["sqlite", "readCurrent_conflicts"]
    assert state == "not supported"
    assert "commits what a refused transaction stored" in reason
    assert (tmp_path / "db").is_dir()


def test_zodburi_sections_of_a_file_are_measured(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text(
        "<zeoserver main>\n<filestorage>\npath $scratch/x.fs\n</filestorage>\n</zeoserver>\n"
        "<zodburi one>\nuri zeo://$main\n</zodburi>\n"
        "<zodburi two>\nuri sqlite://?data_dir=$scratch/db\n</zodburi>\n"
        f"<environment here>\npython {sys.executable}\n</environment>\n"
        "<zodburi three>\nenvironment here\nuri sqlite://?data_dir=$scratch/other\n</zodburi>\n"
    )
    done = run(tmp_path, "x.conf", "cold", "-c", "2", *QUICK, "-o", "a.json")
    assert done.status == 0, done.out + done.err
    assert set(cells(tmp_path / "a.cells.jsonl").values()) == {("measured", "")}
    assert left_behind(tmp_path) == []


def test_a_password_in_a_uri_is_never_printed_or_stored(tmp_path: Path) -> None:
    uri = "zeo://u:geheim@localhost:1?password=geheim&wait=1"
    done = run(tmp_path, uri, "add", "-c1", "--include-mapping", *QUICK, "-o", "a.json", "-v")
    assert done.status == 3
    everything = done.out + done.err
    everything += "".join(path.read_text() for path in tmp_path.rglob("*.json"))
    assert "mapping" in everything
    assert "geheim" not in everything


def test_a_bad_uri_for_another_python_is_reported_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text(
        f"<environment here>\npython {sys.executable}\n</environment>\n"
        "<zodburi a>\nenvironment here\nuri fiel:///tmp/x.fs\n</zodburi>\n"
    )
    done = run(tmp_path, "x.conf", "cold", *QUICK)
    assert done.status == 2
    assert done.complaint == (
        "zodbshootout: x.conf:6: no resolver knows the scheme 'fiel'; did you mean file? "
        "(environment here)"
    )


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        (
            "fiel:///tmp/x.fs",
            "fiel:///tmp/x.fs: no resolver knows the scheme 'fiel'; did you mean file?",
        ),
        ("file:x.fs", "file:x.fs: it has to begin with file://"),
        (
            "zeo://h:1?nonsense=1",
            "zeo://h:1?nonsense=1: Unrecognized database keyword(s): nonsense",
        ),
    ],
)
def test_a_bad_uri_prints_one_line_and_returns_2(
    uri: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = outcome(uri, *QUICK)
    (line,) = err.splitlines()
    assert line.startswith(f"zodbshootout: {message}")
    assert (status, out) == (2, "")
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_zodburi_says_how_to_install_it(tmp_path: Path) -> None:
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "zodburi.py").write_text("raise ImportError\n")
    done = run(tmp_path, "file://x.fs", PYTHONPATH=str(tmp_path / "without"))
    assert done.status == 2
    assert done.complaint == (
        "zodbshootout: file://x.fs: zodburi is not installed; install it: "
        "pip install 'zodbshootout[uri]'"
    )
