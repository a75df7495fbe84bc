"""The tables and the chart of replays."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from tests.reports.replayed import WORKLOAD, result
from tests.runs import cell, measured
from zodbshootout.reports import text
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.elements import ChartKind
from zodbshootout.reports.html import figures_of
from zodbshootout.reports.sections import whole_report
from zodbshootout.reports.tables import make_report
from zodbshootout.results.cell import cell_of
from zodbshootout.results.result import CellResult

STEPS = [f"time to {step}" for step in ("begin", "load", "store", "vote", "finish")]


def printed(*results: CellResult) -> str:
    file = io.StringIO()
    text.write(make_report([ResultSet(results)]), Console(file=file, width=100))
    return file.getvalue()


def test_tables_show_step_times_latencies_and_recorded_and_measured_events() -> None:
    tables = make_report([ResultSet([result("a"), result("b", 2)])]).tables
    _, steps, latencies, events = tables
    figures = {row.title: [entry.value for entry in row.entries] for row in steps.rows}
    assert list(figures) == [
        "time to begin",
        "time to load",
        "time to store",
        "time to vote",
        "time to finish",
    ]
    for microseconds, pair in enumerate(figures.values(), 1):
        assert pair == pytest.approx([microseconds * 1e-6, 2 * microseconds * 1e-6])
    assert [row.title for row in latencies.rows] == [
        "p50 of read-only transactions", "p90 of read-only transactions",
        "p99 of read-only transactions",
    ]  # fmt: skip
    (first, *_) = latencies.rows
    assert [entry.value for entry in first.entries] == pytest.approx([50e-6, 100e-6], rel=0.01)
    assert events.columns == ["recorded", "a", "b"]
    assert [(row.title, *(entry.shown for entry in row.entries)) for row in events.rows] == [
        ("conflicts", "0.25", "0.1", "0.2"),
        ("retries", "0.1", "0.1", "0.2"),
        ("reloads after invalidation", "-", "0.3", "0.3"),
    ]


def test_tables_of_a_replay_during_an_operation_name_its_phases() -> None:
    base = result("a")
    phases = [
        replace(
            base,
            cell=replace(
                base.cell, parameters=replace(base.cell.parameters, during="pack", phase=phase)
            ),
        )
        for phase in ("before", "during")
    ]
    captions = [table.caption for table in make_report([ResultSet(phases)]).tables]
    about = [words.partition(": ")[2] for words in captions if words.startswith("Time by step")]
    assert about == [
        "main.workload before pack, 2 threads sharing one DB",
        "main.workload during pack, 2 threads sharing one DB",
    ]


def test_a_note_warns_that_a_replay_at_full_speed_has_other_conflicts() -> None:
    note = "replay: as fast as possible, so the conflicts are not those of the application"
    assert note in printed(result("a"))
    assert note not in printed(result("a", conflicts=0))


def test_a_replay_at_a_multiple_of_the_recorded_speed_shows_its_mean_latency() -> None:
    base = result("a")
    paced = replace(base.cell.parameters, workload=replace(WORKLOAD, speed=2.0))
    text = printed(replace(base, cell=replace(base.cell, parameters=paced)))
    assert "Mean latency per iteration" in text
    assert "at 2 times the recorded speed (less is better)" in text
    assert "1.00 ms" in text
    assert "as fast as possible" not in text


def test_a_replay_without_conflicts_and_retries_has_no_table_of_events() -> None:
    calm = result("a", conflicts=0, retries=0, extra_loads=0)
    without_events = replace(WORKLOAD, conflicts=0, retries=0)
    parameters = replace(calm.cell.parameters, workload=without_events)
    calm = replace(calm, cell=replace(calm.cell, parameters=parameters))
    assert "Events" not in printed(calm)
    assert "main.workload" in printed(calm)


def test_the_steps_of_each_contender_are_drawn_as_a_stack() -> None:
    report = whole_report([ResultSet([result("a"), result("b", 2)])])
    (chart,) = [chart for chart in report.all_charts() if chart.kind is ChartKind.STACKS]
    assert [chart.x.text(point.x) for point in chart.of("b")] == [
        "time to begin",
        "time to load",
        "time to store",
        "time to vote",
        "time to finish",
    ]
    assert "b time to begin 2.00 us, time to load 4.00 us" in chart.summary()


def test_a_step_that_nobody_took_is_not_in_the_legend() -> None:
    report = whole_report([ResultSet([result("a", store_ns=None), result("b", store_ns=None)])])
    (chart,) = [chart for chart in report.all_charts() if chart.kind is ChartKind.STACKS]
    assert chart.x.names == [step for step in STEPS if step != "time to store"]


def test_the_figures_of_a_stack_have_the_names_of_their_steps() -> None:
    report = whole_report([ResultSet([result("a"), result("b", 2)])])
    (chart,) = [chart for chart in report.all_charts() if chart.kind is ChartKind.STACKS]
    headings, *rows = figures_of(chart).lines()
    assert headings == ["Contender", "step", "figure"]
    assert rows[0] == ["a", "time to begin", "1.00 us"]
    assert rows[-1] == ["b", "time to finish", "10.0 us"]


def test_the_cell_metadata_of_a_replay_name_its_workload_but_not_the_path() -> None:
    metadata = result("a").cell.metadata()
    assert metadata["workload"] == "main.workload"
    assert "/somewhere" not in json.dumps(metadata)
    assert cell_of(metadata) == result("a").cell
    assert "workload" not in json.dumps(measured(cell("add", "a"), [1.0]).cell.metadata())


def test_step_times_and_events_are_averages_that_include_uncounted_iterations() -> None:
    alone, ahead = result("a"), result("b", iterations=80, iterations_uncounted=20)
    _, steps, _, events = make_report([ResultSet([alone, ahead])]).tables
    for row in steps.rows:
        first, second = (entry.value for entry in row.entries)
        assert first == second, row.title
    assert {row.entries[2].text for row in events.rows} == {"0.1", "0.3"}
