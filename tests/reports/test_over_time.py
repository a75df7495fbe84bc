"""Notes and charts about contenders that get slower with time."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from tests.reports.results import cells_of
from tests.results.over_time import SLOWING, values
from tests.runs import cell, measured
from zodbshootout.reports import text
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.comparison import comparison_report, comparisons_of_columns, remedy
from zodbshootout.reports.csv_json import write_json
from zodbshootout.reports.drawing import draw
from zodbshootout.reports.elements import Chart
from zodbshootout.reports.sections import whole_report
from zodbshootout.reports.tables import make_report
from zodbshootout.results.ratios import Verdict
from zodbshootout.results.result import CellResult
from zodbshootout.results.trend import with_trends

STEADY = [1.0] * 7


def timed(contender: str, runs: Sequence[Sequence[float]], benchmark: str = "update") -> CellResult:
    """Return a result whose runs began 100 seconds apart, and whose slices took a second each."""
    return measured(
        cell(benchmark, contender),
        *runs,
        slice_starts_s=lambda number: " ".join(
            f"{1e6 + 100 * number + turn:.6f}" for turn in range(len(runs[number]))
        ),
        precision=0.05,
        duration=60.0,
    )


FS = timed("fs", values(STEADY, noise=0.005))
SLOW = timed("slow", values(SLOWING, 2, noise=0.005))


def notes(*results: CellResult) -> list[str]:
    return [str(note) for note in make_report([ResultSet(with_trends(results))]).notes]


def trend_note(*results: CellResult) -> str:
    (note,) = [note for note in notes(*results) if "gets slower" in note]
    return note


def test_trap_38_a_trend_is_reported_and_is_not_taken_for_imprecision() -> None:
    assert trend_note(FS, SLOW) == (
        "slow: gets slower with time: 5.4 times as long at the end (3.17 to 9.19), "
        "relative to the other contenders; its figure depends on how long it is measured"
    )
    assert not [note for note in notes(FS, SLOW) if "imprecise" in note or "minute" in note]


def test_the_imprecision_of_other_figures_is_still_reported() -> None:
    noisy = timed("noisy", values(STEADY, 4, noise=1.0))
    (imprecise,) = [note for note in notes(FS, SLOW, noisy) if "imprecise" in note]
    assert imprecise.startswith("~ imprecise: 1 of 3 figures")
    minutes = [note.partition("; about")[2] for note in notes(FS, noisy) if "imprecise" in note]
    assert minutes == [imprecise.partition("; about")[2]]


def test_the_trend_of_a_contender_by_itself_may_be_that_of_the_machine() -> None:
    assert trend_note(SLOW) == (
        "slow: it or the machine gets slower with time: 5.41 times as long at the end "
        "(3.18 to 9.2); its figure depends on how long it is measured"
    )


def test_a_comparison_with_a_contender_that_gets_slower_has_no_advice() -> None:
    (columns,) = comparisons_of_columns(cells_of(with_trends([FS, SLOW])))
    (change,) = columns.changes
    undecided = replace(change, verdict=Verdict.UNDECIDED, runs_needed=100)
    assert remedy([undecided]) == ""
    sides = replace(columns, changes=[undecided])
    (table,) = comparison_report(sides).tables
    assert table.rows[0].entries[-1].text.endswith("): slow gets slower with time")
    steady = replace(change.new, result=replace(change.new.result, trend=None))
    assert remedy([replace(undecided, new=steady)])


def charts(*results: CellResult) -> list[Chart]:
    report = whole_report([ResultSet(with_trends(results))])
    return [chart for chart in report.all_charts() if chart.x.title.startswith("minutes")]


def test_a_trend_has_a_chart_of_the_means_of_runs() -> None:
    assert charts(FS) == []
    (chart,) = charts(FS, SLOW)
    assert [point.x for point in chart.of("slow")] == [
        round((100 * number + 2.5) / 60, 3) for number in range(7)
    ]
    assert [point.y for point in chart.of("slow")] == pytest.approx(SLOWING, rel=0.05)
    assert len(chart.of("fs")) == 7
    assert chart.x.title == "minutes since the start of the first run"
    assert draw(chart).to_dict()["layer"]


def test_a_trend_without_known_instants_has_a_note_and_no_chart() -> None:
    def forgotten(result: CellResult) -> CellResult:
        return measured(result.cell, *(of_run.values for of_run in result.runs))

    assert charts(forgotten(FS), forgotten(SLOW)) == []
    assert trend_note(forgotten(FS), forgotten(SLOW))


def test_records_have_the_trend() -> None:
    stream = io.StringIO()
    write_json(make_report([ResultSet(with_trends([FS, SLOW]))]), Console(file=stream))
    by_contender = {record["contender"]: record for record in json.loads(stream.getvalue())}
    slow = by_contender["slow"]
    assert by_contender["fs"]["trend_p_value"] == 1.0
    assert slow["trend_p_value"] < 0.002
    assert slow["trend_low"] < slow["trend_times"] < slow["trend_high"]


def test_the_printed_report_has_the_trend() -> None:
    stream = io.StringIO()
    text.write(make_report([ResultSet(with_trends([FS, SLOW]))]), Console(file=stream, width=200))
    assert "slow: gets slower with time: 5.4 times as long at the end" in stream.getvalue()
