"""Notes, tables, charts and records of what was measured for some time."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import pytest
from rich.console import Console

from tests.results.over_time import RUNS, course, for_a_time
from tests.runs import cell
from zodbshootout.model.latencies import Latencies
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.csv_json import write_csv, write_json
from zodbshootout.reports.drawing import draw
from zodbshootout.reports.elements import Chart, Table
from zodbshootout.reports.over_time import over_time_report
from zodbshootout.reports.sections import whole_report
from zodbshootout.reports.tables import make_report
from zodbshootout.results.result import CellResult
from zodbshootout.results.trend import with_trends
from zodbshootout.workers.histograms import histogram


def recorded(number: int) -> Any:
    latencies = Latencies()
    latencies.record([0.001 * (number + 1)] * 99 + [1.0])
    return histogram(latencies).encode().decode("ascii")


STEADY = for_a_time(
    "fs",
    seed=2,
    latency_histogram=recorded,
    latency_max_s=1.0,
    client_cpu_s="0.001 0.002 0.001 0.002",
    client_memory_now_bytes=lambda number: 40_000_000 + 1_000_000 * number,
    database_bytes=lambda number: 5_000_000 * (number + 1),
)
SLOW = for_a_time("slow", 1.5)


def result_sets(*results: CellResult) -> list[ResultSet]:
    return [ResultSet(with_trends(results))]


def note(contender: str, *results: CellResult) -> str:
    notes = make_report(result_sets(*results)).notes
    (note,) = [str(line) for line in notes if str(line).startswith(f"{contender}: ")]
    return note


def test_a_trend_is_told_with_its_interval() -> None:
    assert note("slow", STEADY, SLOW).startswith(
        "slow: gets slower with time: 1.47 times as long at the end (1.43 to 1.51), "
    )
    assert note("slow", SLOW).startswith("slow: it or the machine gets slower with time: ")


def test_without_a_trend_a_line_has_the_interval_the_memory_and_the_longest_iteration() -> None:
    assert note("fs", STEADY, for_a_time("zeo", seed=3)) == (
        "fs: no certain slowdown: 0.997 to 1.03 times as long at the end, relative to the other "
        "contenders; memory of a client 40 MB, at the end 79 MB; longest iteration 1.00 s"
    )
    few = course(cell("update", "a"), [[0.01] * 4] * 5)
    assert note("a", few) == "a: cannot tell whether it gets slower"


def test_each_distance_has_its_line_and_its_tables() -> None:
    here, there = for_a_time("zeo", rtt=0.0), for_a_time("zeo", 1.5, seed=3, rtt=2e-3)
    notes = [str(note) for note in make_report(result_sets(here, there)).notes]
    assert [note.partition(": ")[0] for note in notes if note.startswith("zeo in ")] == [
        "zeo in update at 0", "zeo in update at 2 ms",
    ]  # fmt: skip
    assert [table.caption.partition(":")[0] for table in tables(here, there)] == [
        "Objects per second, update at 0", "Objects per second, update at 2 ms",
    ]  # fmt: skip


def test_a_result_that_ended_early_says_so() -> None:
    half = course(cell("update", "a"), [[0.01] * 4] * 20, for_s=1800.0)
    assert half.with_warnings(1).reason == "incomplete: 15 of 30 minutes"
    assert SLOW.with_warnings(1).reason == ""


def tables(*results: CellResult) -> Sequence[Table]:
    return over_time_report(result_sets(*results)).tables


@pytest.mark.slow
def test_tables_have_ten_rows_of_time_and_a_column_for_each_contender() -> None:
    by_caption = {table.caption.partition(",")[0]: table for table in tables(STEADY, SLOW)}
    assert list(by_caption) == [
        "Objects per second", "50th percentile of latency per iteration",
        "99th percentile of latency per iteration", "Longest latency per iteration",
        "Processor time", "Memory", "Size of the database",
    ]  # fmt: skip
    objects = by_caption["Objects per second"]
    assert objects.columns == ["fs", "slow"]
    assert [row.title for row in objects.rows][:3] == ["0:00", "3:00", "6:00"]
    assert len(objects.rows) == 10
    first, *_, last = (row.entries[1].value for row in objects.rows)
    assert first is not None
    assert last is not None
    assert first / last == pytest.approx(1.46, rel=0.05)
    size = by_caption["Size of the database"]
    assert [entry.shown for entry in size.rows[0].entries] == ["12.5 MB", "-"]
    assert tables(for_a_time("a", for_s=0)) == []


def charts(*results: CellResult) -> list[Chart]:
    report = whole_report(result_sets(*results))
    return [chart for chart in report.all_charts() if chart.x.title.startswith("minutes")]


@pytest.mark.slow
def test_a_page_has_a_chart_of_each_quantity_with_a_point_for_each_run() -> None:
    drawn = {chart.y.title: chart for chart in charts(STEADY, SLOW)}
    throughput = drawn["Objects per second"]
    assert [len(throughput.of(column)) for column in ("fs", "slow")] == [RUNS, RUNS]
    assert throughput.of("fs")[1].x - throughput.of("fs")[0].x == pytest.approx(0.75)
    memory = drawn["Memory, client, MB"]
    assert [point.y for point in memory.of("fs")][:2] == [40.0, 41.0]
    p50 = drawn["50th percentile of latency per iteration"]
    assert p50.percentile == "p50"
    assert p50.of("fs")[3].y == pytest.approx(0.004, rel=1e-3)
    assert all(draw(chart).to_dict()["layer"] for chart in drawn.values())


@pytest.mark.slow
def test_records_have_every_run_and_what_was_found() -> None:
    stream = io.StringIO()
    write_json(over_time_report(result_sets(STEADY, SLOW)), Console(file=stream))
    records = json.loads(stream.getvalue())
    assert len(records) == 2 * RUNS
    assert records[1]["start_s"] == 45.0
    assert records[1]["database_bytes"] == 10_000_000
    assert records[1]["latency_p99_s"] == pytest.approx(0.002, rel=1e-3)
    stream = io.StringIO()
    write_csv(over_time_report(result_sets(STEADY, SLOW)), Console(file=stream))
    assert len(stream.getvalue().splitlines()) == 1 + 2 * RUNS
    of_cells = {
        record["contender"]: record for record in make_report(result_sets(STEADY, SLOW)).records
    }
    assert of_cells["slow"]["trend_low"] < 1.48 < of_cells["slow"]["trend_high"]
