"""What is stored of a run is what its clients have measured, and of nothing else."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

import pyperf
import pytest

from tests.integration.command import run
from zodbshootout.client.specification import CrewShape

VALUES, WARMUPS, LOOPS, OBJECTS = 3, 2, 8, 20


def runs_of(directory: Path, *words: str) -> dict[tuple[str, str], pyperf.Run]:
    done = run(
        directory, *words, "--object-counts", str(OBJECTS), "-p", "1", "-n", str(VALUES),
        "-w", str(WARMUPS), "-l", str(LOOPS), "-o", "a.json",
    )  # fmt: skip
    assert done.status == 0, done.out + done.err
    return {
        (path.stem, benchmark.get_name()): each
        for path in (directory / "a.d").iterdir()
        for benchmark in pyperf.BenchmarkSuite.load(str(path)).get_benchmarks()
        for each in benchmark.get_runs()
    }


def numbers(text: Any) -> list[float]:
    return [float(word) for word in str(text).split()]


@pytest.mark.parametrize(
    ("words", "clients"),
    [
        (["-c", "1"], 1),
        (["-c", "3", "--threads", "shared"], 3),
        (["-c", "2", "--threads", "unique"], 2),
    ],
)
def test_a_stored_value_is_what_the_samples_say(
    words: list[str], clients: int, tmp_path: Path
) -> None:
    runs = runs_of(tmp_path, "add", "steamin", "cold", "conflicts", *words)
    assert runs
    for cell, each in runs.items():
        metadata = each.get_metadata()
        own = [metadata[f"client_{number}_s"] for number in range(1, clients + 1)]
        assert f"client_{clients + 1}_s" not in metadata
        assert len(each.values) == VALUES, cell
        assert metadata["loops"] == LOOPS
        mean, value = clients / sum(1 / one for one in own if one), fmean(each.values)
        if clients == 1:
            assert value == pytest.approx(mean, rel=1e-6), cell
        # With several, the first iterations are in the clients' figures and not in the value.
        assert mean / 10 < value < mean * 10, cell
        on_clock = metadata["on_clock_s"]
        if clients == 1:
            assert on_clock == pytest.approx(sum(each.values) * LOOPS, rel=1e-6), cell
        else:
            # The clients were at work for as long as that, most of them to the end.
            assert sum(each.values) < on_clock < 1000 * sum(each.values) * LOOPS, cell
        # No iteration takes longer than all that were on the clock, and some as long as the mean.
        assert metadata["latency_max_s"] <= on_clock
        assert metadata["latency_max_s"] >= min(each.values) * 0.5, cell


def test_warm_ups_stay_out_of_the_summaries(tmp_path: Path) -> None:
    for cell, each in runs_of(tmp_path, "add", "cold", "hot", "-c", "1").items():
        metadata = each.get_metadata()
        assert len(each.warmups) == WARMUPS
        slices = numbers(metadata["slices"])
        assert slices == [WARMUPS + number for number in range(VALUES)], cell
        starts = numbers(metadata["slice_starts_s"])
        assert starts == sorted(set(starts))
        assert len(starts) == VALUES
        assert metadata["iterations"] == VALUES * LOOPS, cell
        assert metadata["iterations_uncounted"] == 0
        if cell[1] in {"cold", "hot"}:
            assert metadata["loads"] == VALUES * LOOPS * (OBJECTS + 1), cell


def test_what_contenders_did_in_a_slice_of_the_same_number_is_a_pair(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, "add", "-c", "1")
    assert len(runs) >= 3
    starts = {cell: numbers(each.get_metadata()["slice_starts_s"]) for cell, each in runs.items()}
    assert len({each.get_metadata()["slices"] for each in runs.values()}) == 1
    # Every contender has had its slice before any of them has its next.
    for number in range(VALUES - 1):
        assert max(each[number] for each in starts.values()) < min(
            each[number + 1] for each in starts.values()
        )


def test_the_shape_of_a_crew_is_in_the_metadata(tmp_path: Path) -> None:
    for each in runs_of(tmp_path, "ex_commit", "-c", "2", "--threads").values():
        assert each.get_metadata()["concurrency"] == CrewShape(2).size
