"""The parts of a whole report."""

from __future__ import annotations

from tests.reports.results import noisy_run
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.sections import BOUNDED, MOST_COLUMNS, whole_report


def test_a_page_of_many_contenders_is_bounded() -> None:
    names = [f"c{number}" for number in range(MOST_COLUMNS + 1)]
    for count, baselines, drawn in (
        (MOST_COLUMNS, MOST_COLUMNS, MOST_COLUMNS),
        (MOST_COLUMNS + 1, 1, MOST_COLUMNS),
    ):
        report = whole_report([ResultSet(noisy_run(names[:count], 0.01))])
        assert 1 + len(report.alternatives) == baselines
        assert (BOUNDED in report.notes) is (baselines == 1)
        charts = [chart for part in report.parts for chart in part.all_charts()]
        assert charts
        assert {column for chart in charts for column in chart.drawn()} == set(names[:drawn])
        (table, *_) = report.tables
        assert len(table.rows[0].entries) == count
