"""The format ``customSmallerIsBetter``, whose readers join what has the same name in each run."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import pytest
from rich.console import Console

from tests.reports.at_a_rate import result as at_a_rate
from tests.reports.results import EVERYTHING, cells_of
from tests.reports.swept import swept
from tests.reports.test_distance import crossing_at_600_us
from tests.runs import cell, measured
from zodbshootout.errors import UserError
from zodbshootout.reports import format_named
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.comparison import comparison_report, comparisons_of_columns
from zodbshootout.reports.elements import Report
from zodbshootout.reports.tables import make_report
from zodbshootout.results.result import CellResult


def written(report: Report) -> list[dict[str, Any]]:
    stream = io.StringIO()
    format_named("customSmallerIsBetter")(report, Console(file=stream, width=1000))
    curves: list[dict[str, Any]] = json.loads(stream.getvalue())
    return curves


def curves_of(*results: CellResult, label: str = "") -> list[dict[str, Any]]:
    return written(make_report([ResultSet(results, label)]))


def test_a_measured_cell_has_its_time_and_its_round_trips() -> None:
    update = measured(cell("update", "zeo", objects=100), [0.08], [0.12], [0.1], trips="12")
    time, trips = curves_of(update)
    assert time.pop("value") == pytest.approx(100)
    assert time == {
        "name": "zeo: update clients=2 client_kind=thread shared_db=True: time", "unit": "ms",
        "range": "± 49.7 %",
    }  # fmt: skip
    assert trips == {
        "name": "zeo: update clients=2 client_kind=thread shared_db=True: round trips",
        "unit": "round trips", "value": 12.0,
    }  # fmt: skip


def test_what_was_not_measured_or_is_unknown_is_left_out() -> None:
    curves = curves_of(*EVERYTHING)
    names = ["fs: add", "zeo: add", "fs: cold", "zeo: hot"]
    assert [curve["name"].partition(" clients")[0] for curve in curves] == names
    assert ["range" in curve for curve in curves] == [True, True, False, True]
    assert curves_of(measured(cell("add", "fs"), [2_000_000], unit="byte")) == []


@pytest.mark.parametrize(
    "results", [swept(), [at_a_rate("pg", rate) for rate in (50, 100)], crossing_at_600_us()]
)
def test_no_two_cells_have_the_same_name(results: Sequence[CellResult]) -> None:
    names = [curve["name"] for curve in curves_of(*results)]
    assert len(names) >= len(results)
    assert len({*names}) == len(names)


def test_the_results_of_several_files_have_different_names() -> None:
    (curve,) = curves_of(measured(cell("add", "fs"), [0.1]), label="monday")
    assert curve["name"].startswith("monday: fs: add")


def test_figures_of_other_reports_are_refused() -> None:
    (sides, *_) = comparisons_of_columns(cells_of(swept()))
    over_time = Report(records=[{"seconds_per_iteration": 1.0}])
    for report in (comparison_report(sides), over_time):
        with pytest.raises(UserError, match="to write it: zodbshootout show FILE --format custom"):
            written(report)
