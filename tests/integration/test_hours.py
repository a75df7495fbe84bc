"""Storages whose clients stay for some time."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from tests.integration.command import run, start
from tests.integration.sections import contender, filestorage, slowing

FILES = {name: filestorage(f"$scratch/{name}.fs") for name in ("steady", "growing")}
CONTENDERS = (
    "%import faulty\n"
    + contender("steady", slowing(FILES["steady"], 40))
    + contender("growing", slowing(FILES["growing"], 40, "per-commit 0.3"))
)
"""Commits sleep so much longer than they take that what the machine does hardly matters."""
EFFORT = ("update", "-c", "1", "--object-counts", "5", "-s", "1000", "-o", "a.json")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "x.conf").write_text(CONTENDERS)
    return tmp_path


def test_one_that_slows_down_while_its_clients_stay_is_told_from_a_steady_one(place: Path) -> None:
    done = run(place, "x.conf", *EFFORT, "--for", "60s")
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    (slower,) = [line for line in lines if line.startswith("growing: ")]
    (steady,) = [line for line in lines if line.startswith("steady: ")]
    assert slower.startswith("growing: gets slower with time: "), done.out
    assert steady.startswith("steady: no certain slowdown: "), done.out
    assert "memory of a client " in steady
    shown = run(place, "show", "a.json", "--over-time")
    assert "Objects per second, update" in shown.out
    assert "Size of the database, update" in shown.out
    records = json.loads(run(place, "show", "a.json", "--over-time", "--format", "json").out)
    growing = [record for record in records if record["contender"] == "growing"]
    assert growing[-1]["seconds_per_iteration"] > 1.3 * growing[0]["seconds_per_iteration"]
    assert growing[-1]["database_bytes"] > growing[0]["database_bytes"]
    report = run(place, "report", "a.json", "-o", "a.html")
    assert report.status == 0, report.err
    assert "minutes since the start of the first run" in (place / "a.html").read_text()


def test_an_interrupted_one_shows_what_was_measured(place: Path) -> None:
    with start(place, "x.conf", *EFFORT, "--for", "2min") as process:
        deadline = time.monotonic() + 120
        while _runs(place) < 2:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "of 2 minutes" in out
    assert "steady: cannot tell whether it gets slower" in out
    assert _runs(place) >= 2


def _runs(place: Path) -> int:
    path = place / "a.json"
    if not path.exists():
        return 0
    suite = json.loads(path.read_text())
    return min(len(benchmark["runs"]) for benchmark in suite["benchmarks"])
