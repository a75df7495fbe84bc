"""Full disks, and a directory that is removed."""

from __future__ import annotations

from pathlib import Path

import pyperf
import pytest

from tests.faults.disks import small_disk
from tests.faults.runs import GOOD, check_failed, faulty, measure, outcomes
from tests.integration.command import OBJECTS, QUICK, left_behind, run

pytestmark = pytest.mark.servers("root")


def test_a_storage_on_a_full_disk_fails_its_cells(tmp_path: Path) -> None:
    with small_disk(tmp_path, "100k") as disk:
        text = f"<zodb bad>\n<filestorage>\npath {disk}/a.fs\n</filestorage>\n</zodb>\n"
        done = measure(tmp_path, text, "-s", "2000")
        check_failed(done, tmp_path, "No space left on device", failed=("bad add", "bad cold"))


def test_a_disk_that_fills_up_keeps_the_results_written_before(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text(GOOD)
    with small_disk(tmp_path, "36k") as disk:
        words = ("x.conf", "add", "steamin", "-c", "1", *QUICK, "-p", "20")
        done = run(tmp_path, *words, "-o", str(disk / "a.json"))
        assert done.status == 3
        assert "cannot write results: " in done.err
        assert "No space left on device" in done.err
        assert "Traceback" not in done.out + done.err
        assert f"{OBJECTS} objects of 300 bytes" in done.out
        suite = pyperf.BenchmarkSuite.load(str(disk / "a.json"))
        assert len(suite.get_benchmarks()[0].get_runs()) > 1
        assert [path.name for path in disk.iterdir() if path.name.startswith(".")] == []
    assert left_behind(tmp_path) == []


def test_a_report_on_a_full_disk_loses_no_results(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text(GOOD)
    with small_disk(tmp_path, "100k") as disk:
        words = ("x.conf", "add", "-c", "1", *QUICK, "-o", "a.json")
        done = run(tmp_path, *words, "--report", str(disk / "page.html"))
        assert done.status == 3
        assert f"--report: cannot write {disk}/page.html: No space left on device" in done.err
        assert "Traceback" not in done.out + done.err
        assert list(disk.iterdir()) == []
    assert f"{OBJECTS} objects of 300 bytes" in done.out
    assert outcomes(tmp_path) == {"good add": ("measured", "")}
    assert left_behind(tmp_path) == []


def test_removing_the_directory_of_results_loses_no_run(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    text = faulty("bad", "remove", when=tmp_path / "results" / "a.json", once=tmp_path / "done")
    done = measure(tmp_path, text, "-p", "2", output="results/a.json")
    assert done.status == 0, done.out + done.err
    assert (tmp_path / "done").exists()
    suite = pyperf.BenchmarkSuite.load(str(tmp_path / "results" / "a.json"))
    assert [len(benchmark.get_runs()) for benchmark in suite] == [2] * 4
    assert left_behind(tmp_path) == []
