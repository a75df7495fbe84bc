"""An axis is added by a line, and has rows, curves, crossings and ratios to its base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.files import written
from tests.commands import outcome
from tests.runs import cell, measured, noisy
from zodbshootout.model.parameters import ROWS, SWEPT, Parameter, Scope, with_values
from zodbshootout.model.quantities import TIME
from zodbshootout.model.titles import Value
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.elements import Chart
from zodbshootout.reports.sections import whole_report
from zodbshootout.reports.tables import make_report
from zodbshootout.results.axes import Axis, ParameterAxis, axes_of
from zodbshootout.results.files import read_results
from zodbshootout.results.result import CellResult
from zodbshootout.results.series import Crossing, crossings, series_along
from zodbshootout.results.sides import compare

ADDED = Parameter(
    "compressibility", "compressibility", "compressibility", Scope.CONTENT,
    letter="z", axis="part that compression removes", row="z={}",
)  # fmt: skip
"""The line that adds an axis; sweeps vary no parameter of this name."""
TIMES = {"zeo": (1.0, 1.0, 1.0), "pg": (0.5, 0.8, 1.7)}
"""Seconds at each value of an axis; the contenders cross between the second and the third."""


def at_speed(name: str, times: float, variant: Mapping[str, Value] | None = None) -> CellResult:
    return measured(cell("add", name, variant), *noisy(round(1000 * times), times))


def charts(results: Sequence[CellResult], x_title: str) -> list[Chart]:
    charts = whole_report([ResultSet(results)]).all_charts()
    return [chart for chart in charts if chart.x.title == x_title]


def ratios(results: Sequence[CellResult], axis: Axis) -> list[tuple[str, float]]:
    """Return the speed of each contender at each value as a multiple of that at the base."""
    base, *others = axis.divided(results).values()
    changes = [change for other in others for change in compare(base, other).changes]
    return [(change.base.cell.contender, round(change.ratio.value, 1)) for change in changes]


def crossing(results: Sequence[CellResult], axis: Axis) -> Crossing:
    first, second = series_along(results, axis, TIME)
    (found,) = crossings(first.line, second.line)
    return found


RATIOS = [("zeo", 1.0), ("pg", 0.6), ("zeo", 1.0), ("pg", 0.3)]


def test_a_parameter_becomes_an_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zodbshootout.results.axes.SWEPT", (*SWEPT, ADDED))
    monkeypatch.setattr("zodbshootout.reports.headings.ROWS", (*ROWS, ADDED))
    results = []
    for name, times in TIMES.items():
        for value, seconds in zip((0.1, 0.5, 0.9), times, strict=True):
            one = at_speed(name, seconds)
            added = with_values(one.cell.parameters, {ADDED: value})
            results.append(replace(one, cell=replace(one.cell, parameters=added)))
    (table,) = make_report([ResultSet(results)]).tables
    assert [row.title for row in table.rows] == ["add z=0.1", "add z=0.5", "add z=0.9"]
    (axis,) = axes_of(results)
    assert axis == ParameterAxis("compressibility", ADDED)
    (chart,) = charts(results, "part that compression removes")
    assert [point.x for point in chart.of("zeo")] == [0.1, 0.5, 0.9]
    assert ratios(results, axis) == RATIOS
    assert crossing(results, axis).at == pytest.approx(0.59, abs=0.03)


def test_what_distinguishes_variants_is_an_axis_without_a_line(tmp_path: Path) -> None:
    results = [
        at_speed(name, seconds, {"spindles": str(number)})
        for name, times in TIMES.items()
        for number, seconds in enumerate(times, 1)
    ]
    path = written(tmp_path / "a.json", *results)
    assert "pg [spindles=2]" in outcome("show", path)[1]
    assert "spindles=3 and spindles=1" in outcome("compare", path, "--define", "spindles")[1]
    results = read_results(path)
    (axis,) = axes_of(results)
    (chart,) = charts(results, "spindles")
    assert {name: [point.x for point in chart.of(name)] for name in TIMES} == {
        "zeo": [1, 2, 3], "pg": [1, 2, 3],
    }  # fmt: skip
    assert ratios(results, axis) == RATIOS
    assert crossing(results, axis).at == pytest.approx(2.22, abs=0.05)
