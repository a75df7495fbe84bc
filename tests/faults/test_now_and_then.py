"""Storages that stall now and then, or that die after some runs, beside one that does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.runs import faulty, outcomes, runs_of
from tests.integration.command import left_behind, run, start, wait_until
from zodbshootout.results.figures import time_of
from zodbshootout.results.files import read_results
from zodbshootout.results.ratios import Verdict
from zodbshootout.results.sides import compare

STALL = 0.2
STEADY = "<zodb steady>\n<filestorage>\npath $scratch/steady.fs\n</filestorage>\n</zodb>\n"
STALLING = (
    "<zodb stalling>\n<slowing>\nmilliseconds 200\nevery 20\n"
    "<filestorage>\npath $scratch/stalling.fs\n</filestorage>\n</slowing>\n</zodb>\n"
)


def test_a_stall_in_one_of_twenty_slices_is_in_the_figure_and_in_the_ratio(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text(f"%import faulty\n{STEADY}{STALLING}")
    words = ("tpc", "-c", "1", "-l", "1", "-n", "20", "-p", "8", "-o", "a.json")
    done = run(tmp_path, "x.conf", *words)
    assert done.status == 0, done.out + done.err
    steady, stalling = read_results(tmp_path / "a.json")
    # One vote in twenty sleeps, and a run has twenty slices of one vote.
    assert all(sum(value >= STALL for value in run.values) == 1 for run in stalling.runs)
    figures = [time_of(result).value for result in (steady, stalling)]
    assert figures[1] >= STALL / 20
    (change,) = compare([steady], [stalling], across=True).changes
    assert change.verdict is Verdict.SLOWER
    # The mean of the ratios of runs is not quite the ratio of the means of all runs.
    assert 1 / change.ratio.value == pytest.approx(figures[1] / figures[0], rel=0.5)


def test_a_storage_that_dies_after_some_runs_keeps_these_and_fails(tmp_path: Path) -> None:
    dying = faulty("dying", "kill", benchmark_commit=4, when=str(tmp_path / "now"))
    (tmp_path / "x.conf").write_text(f"%import faulty\n{STEADY}{dying}")
    words = ("add", "-c", "1", "--object-counts", "10", "-l", "4", "-n", "2", "-p", "8")
    with start(tmp_path, "x.conf", *words, "-o", "a.json") as process:
        wait_until(lambda: runs_of(tmp_path).get("dying add", 0) >= 2)
        (tmp_path / "now").touch()
        process.communicate(timeout=120)
    kept = runs_of(tmp_path)
    state, reason = outcomes(tmp_path)["dying add"]
    assert (state, kept["steady add"]) == ("failed", 8)
    assert "was killed by SIGKILL" in reason
    assert 2 <= kept["dying add"] < 8
    assert left_behind(tmp_path) == []
