"""Tables and curves of values given with --define."""

from __future__ import annotations

from tests.runs import cell, measured
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.elements import Chart, ChartKind
from zodbshootout.reports.sections import whole_report
from zodbshootout.reports.tables import tables_with_comparisons
from zodbshootout.results.result import CellResult

RUNS = 5


def result(times: float, section: str = "zeo", **values: str) -> CellResult:
    """Return a result that takes *times* seconds, of a variant with these *values* of names."""
    runs = [[times * (1 + number / 1000)] * 3 for number in range(RUNS)]
    return measured(cell("cold", section, values), *runs)


FIRST = "zeo [cache=1MB]"
CACHES = [
    result(4.0, cache="1MB"),
    result(2.0, cache="10MB"),
    result(2.0, cache="100MB"),
]


def curves(*results: CellResult) -> list[Chart]:
    charts = whole_report([ResultSet(results)]).all_charts()
    return [chart for chart in charts if chart.kind is ChartKind.LINES]


def test_the_figures_of_all_values_are_compared_with_that_of_the_first() -> None:
    report = tables_with_comparisons([ResultSet(CACHES)])
    (table,) = report.tables
    ratios = [entry.ratio and entry.ratio.text for entry in table.rows[0].entries]
    assert table.columns == [FIRST, "zeo [cache=10MB]", "zeo [cache=100MB]"]
    assert ratios == [None, "2.00×", "2.00×"]
    assert not report.parts


def test_a_curve_joins_the_figures_of_one_name() -> None:
    (chart,) = curves(*CACHES, result(1.0, section="file"))
    assert (chart.x.title, chart.drawn()) == ("cache (MB)", ["zeo"])
    assert [point.x for point in chart.points] == [1, 10, 100]


def test_a_curve_has_the_colour_of_the_first_of_its_columns() -> None:
    (chart,) = curves(result(1.0, section="file"), *CACHES)
    assert chart.columns == ["file", "zeo", "zeo [cache=10MB]", "zeo [cache=100MB]"]


def test_a_chart_has_a_curve_for_each_value_of_the_other_name() -> None:
    results = [
        result(1.0, cache=cache, workers=workers) for cache in ("1", "2") for workers in ("4", "8")
    ]
    over_cache, over_workers = curves(*results)
    assert (over_cache.x.title, over_workers.x.title) == ("cache", "workers")
    assert over_cache.drawn() == ["zeo [workers=4]", "zeo [workers=8]"]
    assert over_workers.drawn() == ["zeo [cache=1]", "zeo [cache=2]"]


def test_values_that_are_not_numbers_are_drawn_as_bars() -> None:
    results = [result(1.0, mode="fast"), result(2.0, mode="safe")]
    charts = list(whole_report([ResultSet(results)]).all_charts())
    assert [chart.kind for chart in charts] == [ChartKind.BARS]
