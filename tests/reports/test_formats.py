"""The exact output of each format."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.reports.results import EVERYTHING
from tests.runs import cell, failed, measured
from zodbshootout.errors import UserError
from zodbshootout.model.quantities import QUANTITIES
from zodbshootout.model.specification import ReplayedWorkload
from zodbshootout.reports import Write, csv_json, format_named, table_layout
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.tables import make_report
from zodbshootout.results.result import CellResult

GOLDEN = Path(__file__).parent / "golden"
OTHERS = [measured(cell("add", "fs"), [0.04]), failed(cell("add", "zeo"), "gone | away")]


def written(
    name: str, *result_sets: ResultSet, unit: str = "", baseline: str | None = None,
    named: Callable[[str], Write] = format_named,
) -> str:  # fmt: skip
    stream = io.StringIO()
    report = make_report(result_sets or [ResultSet(EVERYTHING)], QUANTITIES.get(unit), baseline)
    named(name)(report, Console(file=stream, width=1000))
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


CASES = {
    "everything.csv": lambda: written("csv"),
    "everything.table.csv": lambda: written("csv", named=table_layout),
    "everything.md": lambda: written("markdown"),
    "everything.json": lambda: written("json"),
    "seconds.txt": lambda: written("text", unit="seconds"),
    "baseline.txt": lambda: written("text", baseline="zeo"),
    "side_by_side.txt": lambda: written("text", ResultSet(EVERYTHING, "a"), ResultSet(OTHERS, "b")),
    "side_by_side.md": lambda: written(
        "markdown", ResultSet(OTHERS, "a_1"), ResultSet(OTHERS, "b")
    ),
}


def test_records_are_made_when_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[CellResult] = []

    def record(result: CellResult) -> dict[str, Any]:
        made.append(result)
        return {}

    monkeypatch.setattr(csv_json, "_record", record)
    report = make_report([ResultSet(EVERYTHING)])
    assert made == []
    assert len(list(report.records)) == len(EVERYTHING)
    assert len(report.records) == len(made) == len(EVERYTHING)


@pytest.mark.parametrize("name", CASES)
def test_the_output_of_a_format_equals_its_golden_file(name: str) -> None:
    assert CASES[name]() == (GOLDEN / name).read_text(encoding="utf-8")


def test_csv_has_a_line_per_cell_with_numbers_in_separate_columns() -> None:
    lines = list(csv.DictReader(io.StringIO(written("csv"))))
    assert len(lines) == len(EVERYTHING)
    first = lines[0]
    assert (first["benchmark"], first["contender"], first["state"]) == ("add", "fs", "measured")
    assert float(first["objects_per_second"]) == 100_000
    assert first["seconds_per_iteration"] == "0.02"
    broken = next(line for line in lines if line["state"] == "failed")
    assert (broken["objects_per_second"], broken["reason"]) == (
        "",
        "OperationalError: connection refused",
    )


def test_json_has_null_for_a_missing_figure() -> None:
    rows = json.loads(written("json"))
    for row in rows:
        assert (row["objects_per_second"] is None) == (row["state"] != "measured")
    assert rows[0]["objects_per_second"] == 100_000
    assert rows[0]["latency_p99_s"] is None  # these made-up runs have no latencies


def latency_metadata(durations: Sequence[float]) -> dict[str, Any]:
    """Return the metadata of a run whose iterations took that long."""
    from zodbshootout.model.latencies import Latencies
    from zodbshootout.workers.histograms import histogram

    latencies = Latencies()
    latencies.record(durations)
    encoded = histogram(latencies).encode().decode("ascii")
    return {"latency_histogram": encoded, "latency_max_s": latencies.longest}


def value(result: CellResult, name: str) -> float:
    figure = result.figures[QUANTITIES[name]]
    assert figure is not None
    return figure.value


def test_latencies_of_all_runs_are_merged() -> None:
    runs = [
        measured(cell("add", "fs"), [1.0], **latency_metadata(durations))
        for durations in ([0.001] * 99 + [0.5], [0.002] * 100)
    ]
    both = runs[0].with_run(runs[1].benchmark())
    # 99 iterations of both runs took 1 ms, and the 100th of 200 took 2 ms.
    assert value(both, "p50") == pytest.approx(0.002, rel=0.01)
    assert value(runs[0], "p50") == pytest.approx(0.001, rel=0.01)
    assert value(both, "p90") == pytest.approx(0.002, rel=0.01)
    assert value(both, "max") == pytest.approx(0.5)


def test_the_baseline_must_be_a_contender() -> None:
    with pytest.raises(UserError, match="no contender 'nobody'; there are fs, zeo, pg"):
        written("text", baseline="nobody")


def test_memory_is_shown_in_bytes() -> None:
    traced = [measured(cell("add", "fs"), [2_000_000], unit="byte")]
    shown = written("text", ResultSet(traced))
    assert "Memory of a worker (less is better)" in shown
    assert "2 MB" in shown
    record = json.loads(written("json", ResultSet(traced)))[0]
    assert (record["memory_bytes"], record["objects_per_second"]) == (2_000_000, None)


def test_the_memory_of_a_replay_at_the_recorded_speed_is_no_latency() -> None:
    paced = cell("replay", "fs", workload=ReplayedWorkload("shop", speed=1.0))
    shown = written("text", ResultSet([measured(paced, [2_000_000], unit="byte")]))
    assert "Memory of a worker" in shown
    assert "latency" not in shown


def test_a_benchmark_that_is_not_installed_has_its_name_as_title() -> None:
    assert "their_own 1000" in written(
        "csv", ResultSet([measured(cell("their_own", "fs"), [1.0])]), named=table_layout
    )


def test_no_percentile_is_longer_than_the_longest_latency() -> None:
    result = measured(cell("add", "fs"), [1.0], **latency_metadata([1.2345678] * 100))
    assert value(result, "p99") == value(result, "max") == result.metadata["latency_max_s"]


def test_the_standard_deviation_covers_the_values_of_all_runs() -> None:
    result = measured(cell("add", "fs"), [0.1, 0.3], [0.2, 0.2])
    assert value(result, "stdev") == pytest.approx(0.0816, rel=1e-2)
    assert measured(cell("add", "fs"), [0.1]).figures[QUANTITIES["stdev"]] is None


def test_the_hit_rate_of_a_cache_is_never_above_one() -> None:
    for hits, rate in ((102, 1.0), (51, 0.51)):
        result = measured(cell("add", "zeo"), [1.0], storage_cache_hits=hits, loads=100)
        assert value(result, "hits") == rate


def test_the_caption_of_a_latency_says_of_how_many_objects() -> None:
    def caption(*results: CellResult) -> str:
        return written("text", ResultSet(results), unit="p99").splitlines()[1].partition(" (")[0]

    start = "99th percentile of latency per iteration of"
    latencies = latency_metadata([0.1] * 100)
    add = measured(cell("add", "fs"), [1.0], work_per_iteration=1000, **latencies)
    load = measured(cell("load", "fs"), [1.0], work_per_iteration=1, **latencies)
    few = measured(cell("add", "fs", objects=10), [1.0], work_per_iteration=10, **latencies)
    tpc = measured(cell("tpc", "fs", objects=0), [1.0], work_per_iteration=1, **latencies)
    half = measured(cell("conflicts", "fs"), [1.0], work_per_iteration=500, **latencies)
    assert caption(add) == f"{start} 1000 objects"
    assert f"{start} 1000 objects (load: 1, conflicts: 500) (less" in written(
        "text", ResultSet([add, load, half]), unit="p99"
    )
    assert caption(add, few) == f"{start} n objects"
    assert f"{start} n objects (load: 1, conflicts: 0.5 n) (less" in written(
        "text", ResultSet([add, few, load, half]), unit="p99"
    )
    assert caption(tpc) == f"{start} 1 transaction"
    assert caption(failed(cell("add", "fs"), "gone")).endswith("per iteration")
    mean = written("text", ResultSet([add]), unit="seconds")
    assert "Mean latency per iteration of 1000 objects (less is better)" in mean
