"""The data of charts, before they are drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.reports.results import FOUR, cells_of, noisy_run
from tests.reports.swept import CLIENTS, ITERATIONS, SWEPT, swept
from tests.runs import cell, measured, noisy
from zodbshootout.model.quantities import QUANTITIES
from zodbshootout.model.specification import CrewShape
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.charts import QuantityCharts, distributions
from zodbshootout.reports.elements import Chart, ChartKind, Labels, Point, Scale
from zodbshootout.reports.sections import whole_report
from zodbshootout.results.figures import Figure, time_of
from zodbshootout.results.files import read_results
from zodbshootout.results.result import CellResult

MEASURED = Path(__file__).parents[2] / "docs" / "results" / "data" / "tutorial.json.gz"
"""A run from the documentation."""


def points(*figures: float) -> list[Point]:
    return [Point("a", x, y, str(y), low=y * 0.99, high=y * 1.01) for x, y in enumerate(figures, 1)]


def figures(results: Sequence[CellResult], unit: str = "objects") -> QuantityCharts:
    return QuantityCharts(cells_of(results).timed, QUANTITIES[unit])


def grid() -> list[CellResult]:
    """Return results for two numbers of clients, two of objects and two object sizes."""
    return [
        measured(
            cell("add", "fs", crew=CrewShape(clients), objects=objects, object_size=size),
            [0.1], [0.1],
            work_per_iteration=objects,
        )
        for clients in (1, 4)
        for objects in (10, 100)
        for size in (128, 300)
    ]  # fmt: skip


def test_a_varied_parameter_has_a_chart_per_combination_of_the_others() -> None:
    curves = list(figures(grid()).curves())
    assert [chart.x.title for chart in curves] == [
        *["clients"] * 4, *["objects per transaction"] * 4, *["bytes per object"] * 4,
    ]  # fmt: skip
    assert {chart.title for chart in curves[4:8]} == {"Add Objects"}
    assert {(chart.title, chart.subtitle) for chart in curves[:4]} == {
        (f"Add {objects} Objects", f"{objects} objects of {size} bytes, processes")
        for objects in (10, 100)
        for size in (128, 300)
    }
    assert {chart.subtitle for chart in curves[8:]} == {
        f"{objects} objects, {clients}" for objects in (10, 100)
        for clients in ("1 process", "4 processes")
    }  # fmt: skip
    assert all([point.x for point in chart.points] == [1, 4] for chart in curves[:4])
    # Four clients with 10 objects each in a tenth of a second.
    assert curves[0].points[1].y == pytest.approx(400)
    assert not list(figures(grid()).bars())


def test_an_abbreviation_keeps_its_capitals_on_an_axis() -> None:
    (chart,) = figures([measured(cell("new_oid", "fs", crew=CrewShape(1)), [1.0])]).bars()
    assert chart.y.title == "OIDs per second (more is better)"


def test_a_benchmark_with_one_set_of_parameters_has_bars() -> None:
    both = figures(SWEPT)
    assert [chart.title for chart in both.bars()] == ["Conflicting Updates in 100 Objects"]
    assert [chart.title for chart in both.curves()] == ["Add 100 Objects", "Read 100 Cold Objects"]


def test_a_curve_is_sorted_whatever_the_order_of_the_results() -> None:
    curve, _ = figures(swept()[::-1] + swept("cold")).curves()
    assert [point.x for point in curve.of("fs")] == list(CLIENTS)


def test_an_axis_is_logarithmic_if_the_gaps_between_its_values_differ_widely() -> None:
    def axis(*numbers: int) -> bool:
        results = [
            measured(cell("add", "fs", crew=CrewShape(1), objects=number), [0.1])
            for number in numbers
        ]
        (chart,) = figures(results).curves()
        return chart.x.logarithmic

    assert axis(1, 2, 4, 8)
    assert axis(1, 10, 1000)
    assert not axis(1, 2, 3, 4, 5, 6)
    assert not axis(10, 1000)


def test_rates_and_percentiles_have_intervals() -> None:
    (add, _), (p99, _) = (figures(SWEPT, unit).curves() for unit in ("objects", "p99"))
    assert all(point.low and point.high for point in add.points)
    assert all((point.low or 0) < point.y < (point.high or 0) for point in add.points)
    assert all((point.low or 0) <= point.y <= (point.high or 0) for point in p99.points)
    assert p99.y.labels is Labels.SECONDS
    assert add.y.labels is Labels.NUMBERS


def test_the_interval_of_a_rate_is_the_inverted_interval_of_the_times() -> None:
    result = swept()[0]
    (chart,) = figures([result]).bars()
    (point,) = chart.points
    times, rate = time_of(result), Figure(result, QUANTITIES["objects"])
    assert times.interval is not None
    low, high = times.interval
    assert (point.low, point.high) == (rate.work / high, rate.work / low)
    assert point.text.startswith(f"{rate.value:,.0f} ±")


def test_a_distribution_runs_from_the_median_to_the_longest_latency() -> None:
    result = swept()[0]
    (chart,) = distributions(cells_of([result]))
    first, *_, last = chart.points
    assert first.x == 2
    assert first.y == pytest.approx(result.latencies_at([50])[50], rel=1e-2)
    assert last.x == ITERATIONS * len(result.runs)
    assert last.y == Figure(result, QUANTITIES["max"]).value
    heights = [point.y for point in chart.points]
    assert heights == sorted(heights)
    assert math.isclose(chart.points[2].x, 4)
    assert chart.points[2].y == pytest.approx(result.latencies_at([75])[75], rel=1e-2)


@pytest.mark.slow
def test_latencies_at_several_percentiles_equal_those_of_the_histogram() -> None:
    recorded = read_results(MEASURED)
    assert recorded
    for result in recorded:
        wanted = [0.0, 1.0, 50.0, 90.0, 99.0, 99.9, 99.999, 100.0]
        longest = Figure(result, QUANTITIES["max"]).value
        assert longest is not None
        one_by_one = [
            result.latencies_of().get_value_at_percentile(percentage) for percentage in wanted
        ]
        assert list(result.latencies_at(wanted).values()) == [
            min(latency / 1e9, longest) for latency in one_by_one
        ]


def test_a_cell_without_latencies_has_no_distribution() -> None:
    assert not list(distributions(cells_of([measured(swept()[0].cell, [1.0])])))


def test_a_chart_summary_gives_the_ends_of_each_curve() -> None:
    chart = Chart(
        ChartKind.LINES,
        "Add",
        "processes",
        Scale("clients"),
        Scale("objects"),
        points(10, 20, 21),
        "ab",
    )
    assert chart.summary() == "Add, objects, processes: a 10 at 1, 21 at 3"
    bars = replace(chart, kind=ChartKind.BARS, x=Scale(), points=points(10))
    assert bars.summary().endswith("a 10")


@pytest.mark.slow
def test_empty_parts_of_a_report_are_left_out() -> None:
    whole = whole_report([ResultSet(SWEPT, path=Path("out.json"))])
    assert whole.title == "fs, zeo and pg"
    assert [part.title for part in whole.parts] == [
        "By benchmark", "Which is faster", "Latency", "Conflicts, retries and caches",
        "Contenders", "Machine and command",
    ]  # fmt: skip
    bare = whole_report([ResultSet([measured(swept()[0].cell, [1.0])])])
    titles = [part.title for part in bare.parts]
    assert titles == ["By benchmark", "Contenders", "Machine and command"]


@pytest.mark.slow
def test_counts_are_shown_per_iteration() -> None:
    whole = whole_report([ResultSet(SWEPT)])
    counts = next(part for part in whole.parts if part.title.startswith("Conflicts"))
    rows_by_caption = {table.caption.partition(" of ")[0]: table.rows for table in counts.tables}
    # Two runs of 10 iterations each, both with 30 conflicts, 20 resolved ones and 10 retries.
    assert {caption: [row.title for row in rows] for caption, rows in rows_by_caption.items()} == {
        caption: ["conflicts"]
        for caption in (
            "Conflicts per iteration",
            "Conflicts resolved per iteration",
            "Retries per iteration",
        )
    }
    assert [entry.text for entry in rows_by_caption["Conflicts per iteration"][0].entries] == [
        "",
        "3",
        "",
    ]


@pytest.mark.slow
def test_a_report_lists_the_configuration_and_the_command() -> None:
    whole = whole_report([ResultSet(SWEPT)])
    contenders, machine = whole.parts[-2:]
    assert contenders.listings[0].caption == "fs"
    assert contenders.listings[0].text.splitlines()[:2] == ["<zodb fs>", "  <filestorage>"]
    assert [listing.text for listing in machine.listings] == ["zodbshootout x.conf -c 1,2,4,8"]


def test_the_interval_of_a_rate_is_unbounded_if_the_time_may_be_zero() -> None:
    add = cell("add", "fs", crew=CrewShape(1))
    source = ResultSet([measured(add, [0.1], [0.3], [0.2], work_per_iteration=10)])
    (chart,) = whole_report([source]).all_charts()
    (point,) = chart.points
    assert point.y == pytest.approx(50)
    assert point.low is not None
    assert 0 < point.low < point.y
    assert point.high == math.inf


@pytest.mark.slow
def test_a_report_begins_with_facts_verdicts_and_a_matrix_of_ratios() -> None:
    results = noisy_run((*FOUR, "pg"), 0.01)
    for result in results:
        for run in result.runs:
            run._metadata |= {"hostname": "h", "cpu_count": 2, "version_ZODB": "6"}
            run._metadata["date"] = "2026-01-02 03:04:05.678901"
    whole = whole_report([ResultSet(results, path=Path("a.json"))])
    first, *others = whole.facts
    assert first.startswith("add, update, warm, cold, prefetch_cold, hot, steamin: 1000 objects")
    assert others == [
        "h, 2 CPUs, 2026-01-02 03:04:05",
        "ZODB 6",
        "from a.json; other programs used 40% of the processors",
    ]
    # Two of the four verdicts: on the fastest and the slowest of the other contenders.
    assert [str(note).partition(" (")[0] for note in whole.verdicts] == [
        "zeo against filestorage: slower at add, update, warm, cold, prefetch_cold, hot",
        "pg against filestorage: slower at add, update, warm, cold, prefetch_cold, hot",
    ]
    assert whole.matrix is not None
    assert whole.matrix.columns == [*FOUR[1:], "pg"]
    assert [row.title for row in whole.matrix.rows][:2] == ["add", "update"]
    assert [entry.text for entry in whole.matrix.rows[0].entries] == [
        "0.50×", "0.25×", "0.12×", "0.062×",
    ]  # fmt: skip


def test_a_report_has_a_matrix_for_each_contender_that_can_be_the_baseline() -> None:
    shared = {"add": ("fs", "zeo"), "cold": ("zeo", "pg"), "hot": ("memory",)}
    results = [
        measured(cell(benchmark, name), *noisy(at, slower=1 + at))
        for benchmark, names in shared.items()
        for at, name in enumerate(names)
    ]
    whole = whole_report([ResultSet(results)])
    assert [whole.baseline, *(view.baseline for view in whole.alternatives)] == ["fs", "zeo", "pg"]
    for view in whole.alternatives:
        other = whole_report([ResultSet(results)], view.baseline)
        assert (view.verdicts, view.matrix) == (other.verdicts, other.matrix)
        assert (view.tables, view.notes) == (other.tables, other.notes)
    assert not whole_report([ResultSet(results[:1])]).alternatives


def test_a_report_on_one_contender_has_its_label_as_title_and_no_matrix() -> None:
    results = [measured(cell("add", "fs"), [1.0], [1.0], [1.0], label="my run")]
    whole = whole_report([ResultSet(results)])
    assert (whole.title, whole.verdicts, whole.matrix) == ("my run", [], None)
