"""Tables, comparisons and curves of iterations at a given rate."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyperf
import pytest
from rich.console import Console

from tests.reports.at_a_rate import RUNS, result, titles_and_figures
from tests.runs import cell, failed, measured
from zodbshootout.model.latencies import Latencies
from zodbshootout.model.quantities import LONGEST, P50, P999
from zodbshootout.model.specification import LatencyLimit
from zodbshootout.reports import text
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.comparison import comparison_report
from zodbshootout.reports.elements import ChartKind
from zodbshootout.reports.footnotes import OVERLOADED
from zodbshootout.reports.sections import whole_report
from zodbshootout.reports.sentences import sentence
from zodbshootout.reports.tables import make_report
from zodbshootout.results.changes import mean_ratio
from zodbshootout.results.figures import Figure
from zodbshootout.results.ratios import Verdict
from zodbshootout.results.result import CellResult
from zodbshootout.results.sides import compare, rounds_needed
from zodbshootout.workers.histograms import histogram


def test_the_table_of_a_rate_shows_the_rate_reached_and_the_latencies() -> None:
    assert titles_and_figures(result("a", 20), result("b", 20, 2)) == {
        "update 20/s reached": ["20/s", "20/s"],
        "  p50": ["1.00 ms", "2.00 ms"],
        "  p99": ["10.0 ms", "20.1 ms"],
        "  max": ["10.0 ms", "20.1 ms"],
    }


def test_rates_that_are_nearly_equal_have_rows_of_their_own() -> None:
    titles = list(titles_and_figures(result("a", 1e6), result("a", 1e6 + 1)))
    assert titles[::4] == ["update 1000000/s reached", "update 1000001/s reached"]


def test_the_far_tail_is_shown_if_there_are_enough_iterations() -> None:
    assert "  p99.9" in titles_and_figures(result("a", 20, iterations=2000))


def test_no_percentile_of_a_run_is_longer_than_the_longest_latency_of_that_run() -> None:
    measured = result("a", 20)
    longest = Figure(measured, LONGEST).amounts
    assert Figure(measured, P999).amounts == longest
    assert max(Figure(measured, P50).amounts) < min(longest)


def test_a_contender_that_cannot_keep_up_has_no_latency() -> None:
    overloaded = result("a", 120, part_of_schedule=0.833)
    expected = {"update 120/s reached": ["100/s"], "  p50": ["cannot keep up"]}
    assert titles_and_figures(overloaded) == expected
    figures = titles_and_figures(overloaded, result("b", 120))
    assert figures["  p99"] == ["-", "10.0 ms"]
    report = make_report([ResultSet([overloaded, result("b", 120)])])
    entries = {row.title: row.entries[0] for row in report.tables[0].rows}
    (footnote,) = [note for note in report.notes if note.number]
    assert str(footnote) == f"[1] a: {OVERLOADED}"
    assert [entry.note for entry in entries.values()] == [footnote] * 4


@pytest.mark.parametrize(
    ("growths", "keeps_up"),
    [("0.0 0.0", True), ("0.2 0.2", False), ("0.2 -0.2", True), ("0.01 0.01", True)],
)
def test_a_contender_cannot_keep_up_if_its_lag_keeps_growing(
    growths: str, *, keeps_up: bool
) -> None:
    # In a slice of 10 s, a lag that grows by 1 % of the time is 0.05 s longer in the second half.
    grown = result("a", 20, lag_growth_s=growths)
    assert grown.keeps_up is keeps_up


def test_the_median_and_the_tail_are_compared_at_equal_rates() -> None:
    base = [result("a", 20), result("a", 40)]
    new = [result("b", 20, 2), result("b", 80)]
    comparison = compare(base, new, across=True)
    assert [(change.base.quantity.name, change.verdict) for change in comparison.changes] == [
        ("p50", Verdict.SLOWER),
        ("p99", Verdict.SLOWER),
    ]
    assert all(change.ratio.paired for change in comparison.changes)
    (table,) = comparison_report(comparison).tables
    assert [row.title for row in table.rows] == ["update 20/s p50", "update 20/s p99"]


def test_a_contender_that_cannot_keep_up_is_not_compared() -> None:
    overloaded = result("b", 20, part_of_schedule=0.5)
    comparison = compare([result("a", 20)], [overloaded], across=True)
    assert not comparison.changes
    report = comparison_report(comparison)
    assert any(
        str(note).startswith("cannot keep up, so not compared: b: update") for note in report.notes
    )


@pytest.mark.slow
def test_a_latency_curve_has_only_rates_that_clients_keep_up_with() -> None:
    times = {20: 1.0, 40: 1.1, 80: 1.3, 160: 9.0}
    results = [result("a", rate, factor) for rate, factor in times.items()]
    results.append(result("a", 320, part_of_schedule=0.4))
    charts = [
        chart
        for chart in whole_report([ResultSet(results)]).all_charts()
        if chart.kind is ChartKind.LINES and chart.percentile == "p99"
    ]
    (chart,) = charts
    assert chart.x.title == "iterations a second"
    assert [point.x for point in chart.points] == [20, 40, 80, 160]


def test_a_failure_is_shown_in_the_row_of_the_rates_reached() -> None:
    broken = result("b", 20)
    broken = failed(broken.cell, "the disk is full")
    figures = titles_and_figures(result("a", 20), broken)
    assert figures["update 20/s reached"] == ["20/s", "failed"]
    assert figures["  p50"] == ["1.00 ms", ""]


def test_the_highest_rate_within_a_latency_limit_is_shown_as_a_rate() -> None:
    made = measured(cell("update", "a"), [0.0062], [0.0063], [0.0064])
    parameters = replace(made.cell.parameters, limit=LatencyLimit(99, 0.05))
    made = replace(made, cell=replace(made.cell, parameters=parameters))
    file = io.StringIO()
    text.write(make_report([ResultSet([made])]), Console(file=file, width=100))
    assert "Iterations per second with p99 within 50 ms" in file.getvalue()
    (table,) = make_report([ResultSet([made])]).tables
    clients = made.cell.parameters.crew.size
    assert table.rows[0].entries[0].value == pytest.approx(clients / 0.0063)
    (chart,) = whole_report([ResultSet([made])]).all_charts()
    assert chart.y.title == "iterations per second with p99 within 50 ms (more is better)"
    (point,) = chart.points
    assert point.low is not None
    assert point.high is not None
    assert point.y == pytest.approx(clients / 0.0063)
    assert point.y / 2 < point.low < point.y < point.high < 2 * point.y
    (record,) = make_report([ResultSet([made])]).records
    assert record["iterations_per_second"] == pytest.approx(clients / 0.0063)
    assert record["objects_per_second"] == pytest.approx(
        made.cell.parameters.objects * clients / 0.0063
    )


def with_tails(contender: str, tails: Sequence[float], rate: float = 20, **more: Any) -> CellResult:
    """Return a result with a run for each tail, a factor of its slowest latencies.

    The mean latency of all runs is the same.
    """
    made = result(contender, rate, **more)
    runs = []
    for run, tail in zip(made.runs, tails, strict=True):
        latencies = Latencies()
        latencies.record([1e-3] * 97 + [tail * 1e-2] * 3)
        metadata = run.get_metadata() | {
            "latency_histogram": histogram(latencies).encode().decode(),
            "latency_max_s": tail * 1e-2,
        }
        runs.append(pyperf.Run([1e-3], metadata=metadata, collect_metadata=False))
    return replace(made, runs=tuple(runs))


def test_a_rate_takes_rounds_until_the_latencies_that_are_shown_are_precise() -> None:
    steady = [with_tails("a", [1.0] * RUNS)]
    assert rounds_needed(steady, None, 0.05) == RUNS
    scattered = [with_tails("a", [0.5, 1.5, 0.7, 1.3])]
    assert rounds_needed(scattered, None, 0.05) > 100


def test_a_contender_that_cannot_keep_up_takes_no_more_rounds() -> None:
    steady = with_tails("a", [1.0] * RUNS)
    overloaded = with_tails("b", [0.5, 1.5, 0.7, 1.3], part_of_schedule=0.5)
    for run, seconds in zip(overloaded.runs, [0.5, 1.5, 0.7, 1.3], strict=True):
        run._values = (seconds,)
    assert rounds_needed([steady, overloaded], None, 0.05) == RUNS


def test_what_never_becomes_precise_is_not_counted_as_imprecise() -> None:
    report = make_report([ResultSet([with_tails("a", [0.5, 1.5, 0.7, 1.3])])])
    assert any(str(note).startswith("~ imprecise: 1 of 2 figures") for note in report.notes)
    (table,) = report.tables
    marked = {row.title.split()[-1] for row in table.rows if row.entries[0].text.startswith("~")}
    assert marked == {"p99"}


def test_the_figures_of_a_cell_count_once_in_the_mean_over_cells() -> None:
    base = [with_tails("a", [1.0, 1.1, 0.9, 1.0], rate) for rate in (20, 40)]
    new = [with_tails("b", [2.0, 2.3, 1.8, 2.0], rate) for rate in (20, 40)]
    changes = compare(base, new, across=True).changes
    mean = mean_ratio(changes)
    assert len(changes) == 4
    assert mean is not None
    # The medians are equal, and the tails twice as long: the mean of both is 1 / sqrt(2).
    assert mean.value == pytest.approx(2**-0.5, rel=0.02)


def test_the_sentence_on_rates_speaks_of_latency_and_names_what_cannot_keep_up() -> None:
    base = [result("a", 20), result("a", 40), result("a", 80)]
    new = [result("b", 20, 2), result("b", 40, 2), result("b", 80, part_of_schedule=0.5)]
    assert sentence(compare(base, new, across=True).named("a", "b")) == (
        "b against a: higher latency at update p50 (2.00 times), update p99 (2.00 times); "
        "geometric mean of these 2 cells: 2.000 times higher (2.000 to 2.000); b cannot keep up "
        "with 80/s"
    )
