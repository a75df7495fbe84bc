"""Runs of the command that measures the harness itself; its figures are not checked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import __main__ as command
from benchmarks.capacity import commits_in
from benchmarks.command import Run, environment
from benchmarks.limited import commits
from benchmarks.line import at_least, at_most, info
from benchmarks.precision import off_the_clock, pairs_in, precision_of

pytestmark = pytest.mark.servers

ROOT = Path(__file__).parents[1]


def measure(*names: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", *names],
        check=False, capture_output=True, text=True, cwd=ROOT, env=environment(), timeout=280,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("recording", ["recording: an iteration by itself", "recording: one of a batch"]),
        ("memory", ["memory: peak, 1,000 iterations", "memory: growth from 1,000 on"]),
        ("distance", ["distance: one client, 0.2 ms", "distance: 16 clients, 5 ms"]),
        ("start_spread", ["start_spread: median", "start_spread: wait for a processor"]),
    ],
)
def test_a_measurement_prints_its_figures(name: str, lines: list[str]) -> None:
    done = measure(name)
    assert done.returncode in {0, 1}, done.stderr
    assert "not measured" not in done.stdout
    for line in lines:
        assert line in done.stdout


def test_every_name_has_a_module() -> None:
    for name in command.NAMES:
        assert (ROOT / "benchmarks" / f"{name}.py").is_file()


def test_an_unknown_name_is_refused() -> None:
    done = measure("speed")
    assert done.returncode == 2
    assert "unknown: speed" in done.stderr


def test_a_line_says_whether_its_goal_is_reached() -> None:
    assert str(at_most("spread", 0.5, 1.0, "{:.1f} ms")).split() == [
        "spread", "0.5", "ms", "<=", "1.0", "ms", "reached",
    ]  # fmt: skip
    assert str(at_least("share", 0.5, 0.6, "{:.0%}")).endswith("missed")
    assert str(info("wall time", 3.0, "{:.0f} s")).endswith("3 s")


def run(values: list[float], slices: str, starts: str = "", on_clock: float = 0.0) -> Run:
    metadata = {"slices": slices, "slice_starts_s": starts, "on_clock_s": on_clock, "loops": 1}
    return Run(values, metadata)


def test_pairs_are_values_of_the_same_slice_of_the_same_round() -> None:
    first = [in_round("1", run([1.0, 2.0, 9.0], "0 1 3")), in_round("2", run([1.0], "4"))]
    second = [in_round("3", run([2.0], "4")), in_round("1", run([2.0, 1.0, 5.0], "0 1 2"))]
    assert pairs_in(first, second) == [[(1.0, 2.0), (2.0, 1.0)]]


def in_round(number: str, one: Run) -> Run:
    return Run(one.values, {**one.metadata, "round": number})


def made(factor: float, offset: float) -> list[Run]:
    """Return four runs of two slices of a second, which begin every five seconds."""
    runs = []
    for number in range(4):
        starts = [10.0 * number + offset, 10.0 * number + offset + 5]
        one = run([factor, factor], "0 1", " ".join(map(str, starts)), on_clock=2.0)
        ends = " ".join(str(start + 1) for start in starts)
        runs.append(in_round(str(number), Run(one.values, {**one.metadata, "slice_ends_s": ends})))
    return runs


def test_the_precision_is_that_of_pairs_of_equal_contenders() -> None:
    names = ["zeo_1", "zeo_2", "sqlite_1", "sqlite_2"]
    cells = {
        (name, "add"): made(2.0 if name == "zeo_2" else 1.0, 1.1 * at)
        for at, name in enumerate(names)
    }
    precision = precision_of(cells)
    assert precision.worst == pytest.approx(1.0)
    assert precision.half_interval == 0.0
    assert (precision.runs, precision.called) == ([4, 4], 1)
    assert precision.share == pytest.approx(32 / (35 + 3.3))
    slices, rows = off_the_clock(cells)
    assert (slices.measured, rows.measured) == ("100.0 ms a slice", "0.70 s")


def test_commits_of_a_storage_are_counted_within_the_slices() -> None:
    times = [0.5, 10.1, 10.2, 10.3, 10.4, 20.1, 20.2]
    # The slices run from 10 to 10.35 and from 20 to 20.15.
    slices = run([0.7, 0.3], "0 1", "10.0 20.0", on_clock=0.5)
    assert commits_in(slices, times) == pytest.approx(3.5 + 1.5)


def test_a_limited_storage_records_its_commits(tmp_path: Path) -> None:
    import ZODB.config

    journal = tmp_path / "journal"
    database = ZODB.config.databaseFromString(
        "%import benchmarks.limited\n<zodb>\n<limitedstorage>\n"
        f"path {tmp_path}/limited.fs\njournal {journal}\n</limitedstorage>\n</zodb>\n"
    )
    before = len(commits(journal))
    with database.transaction() as connection:
        connection.root()["key"] = "value"
    database.close()
    assert len(commits(journal)) == before + 1
