"""Check that stored runs hold the measurements of their clients and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

import pyperf
import pytest

from tests.integration.command import run

VALUES, WARMUPS, LOOPS, OBJECTS = 3, 2, 8, 5


CREWS = {
    "alone": ("-c", "1"),
    "sharing": ("-c", "3", "--threads", "shared"),
    "unique": ("-c", "2", "--threads", "unique"),
}
BENCHMARKS = {
    "alone": ("add", "steamin", "cold", "hot", "conflicts"),
    "sharing": ("add", "cold", "conflicts"),
    "unique": ("add", "steamin", "conflicts"),
}
Runs = Mapping[tuple[str, str], pyperf.Run]


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.xdist_group(f"values, {name}")) for name in CREWS],
)
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The runs of a crew, by contender and benchmark."""
    directory = tmp_path_factory.mktemp(request.param)
    done = run(
        directory, *BENCHMARKS[request.param], *CREWS[request.param],
        "--object-counts", str(OBJECTS), "-p", "1", "-n", str(VALUES),
        "-w", str(WARMUPS), "-l", str(LOOPS), "-o", "a.json",
    )  # fmt: skip
    assert done.status == 0, done.out + done.err
    return {
        (path.stem, benchmark.get_name()): pyperf_run
        for path in (directory / "a.d").iterdir()
        for benchmark in pyperf.BenchmarkSuite.load(str(path)).get_benchmarks()
        for pyperf_run in benchmark.get_runs()
    }


def for_crew(name: str) -> pytest.MarkDecorator:
    mark = pytest.mark.xdist_group(f"values, {name}")
    return pytest.mark.parametrize("runs", [pytest.param(name, marks=mark)], indirect=True)


def numbers(text: Any) -> list[float]:
    return [float(word) for word in str(text).split()]


def test_stored_values_agree_with_the_metadata_of_the_clients(runs: Runs) -> None:
    assert runs
    for cell, pyperf_run in runs.items():
        clients = int(str(pyperf_run.get_metadata()["clients"]))
        metadata = pyperf_run.get_metadata()
        own = [metadata[f"client_{number}_s"] for number in range(1, clients + 1)]
        assert f"client_{clients + 1}_s" not in metadata
        assert len(pyperf_run.values) == VALUES, cell
        assert metadata["loops"] == LOOPS
        mean, value = clients / sum(1 / one for one in own if one), fmean(pyperf_run.values)
        if clients == 1:
            assert value == pytest.approx(mean, rel=1e-6), cell
        on_clock = metadata["on_clock_s"]
        if clients == 1:
            assert on_clock == pytest.approx(sum(pyperf_run.values) * LOOPS, rel=1e-6), cell
        else:
            # The clients ran for that long, most of them to the end.
            assert sum(pyperf_run.values) < on_clock < 1000 * sum(pyperf_run.values) * LOOPS, cell
        # The longest iteration fits in the time on the clock and is not far below the mean.
        assert metadata["latency_max_s"] <= on_clock
        assert metadata["latency_max_s"] >= min(pyperf_run.values) * 0.5, cell


@for_crew("alone")
def test_warm_ups_stay_out_of_the_summaries(runs: Runs) -> None:
    for cell, pyperf_run in runs.items():
        if cell[1] not in {"add", "cold", "hot"}:
            continue
        metadata = pyperf_run.get_metadata()
        assert len(pyperf_run.warmups) == WARMUPS
        slices = numbers(metadata["slices"])
        assert slices == [WARMUPS + number for number in range(VALUES)], cell
        starts = numbers(metadata["slice_starts_s"])
        assert starts == sorted(set(starts))
        assert len(starts) == VALUES
        assert metadata["iterations"] == VALUES * LOOPS, cell
        assert metadata["iterations_uncounted"] == 0
        if cell[1] in {"cold", "hot"}:
            assert metadata["loads"] == VALUES * LOOPS * (OBJECTS + 1), cell


@for_crew("alone")
def test_every_contender_runs_a_slice_before_any_runs_the_next(runs: Runs) -> None:
    added = {cell: pyperf_run for cell, pyperf_run in runs.items() if cell[1] == "add"}
    assert len(added) >= 3
    starts = {
        cell: numbers(pyperf_run.get_metadata()["slice_starts_s"])
        for cell, pyperf_run in added.items()
    }
    assert len({pyperf_run.get_metadata()["slices"] for pyperf_run in added.values()}) == 1
    for number in range(VALUES - 1):
        assert max(seconds[number] for seconds in starts.values()) < min(
            seconds[number + 1] for seconds in starts.values()
        )


@for_crew("sharing")
def test_the_concurrency_of_a_crew_is_in_the_metadata(runs: Runs) -> None:
    assert {pyperf_run.get_metadata()["clients"] for pyperf_run in runs.values()} == {3}
