"""Crossings of two contenders along any numeric axis."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.runs import cell, measured
from zodbshootout.model.parameters import DISTANCE, OBJECTS, Parameter, with_values
from zodbshootout.model.quantities import TIME
from zodbshootout.results.axes import ParameterAxis
from zodbshootout.results.estimate import Estimate
from zodbshootout.results.series import Crossing, Line, crossings, series_along


def line(parameter: Parameter, times: dict[float, float]) -> Line:
    """Return the line through the *times* of a contender, each measured in three runs."""
    axis, plain = ParameterAxis(parameter.key, parameter), cell("update", "a")
    results = [
        measured(
            replace(plain, parameters=with_values(plain.parameters, {parameter: place})),
            *([factor * seconds] for factor in (0.99, 1.0, 1.01)),
        )
        for place, seconds in times.items()
    ]
    (series,) = series_along(results, axis, TIME)
    return series.line


@pytest.mark.parametrize("parameter", [OBJECTS, DISTANCE])
def test_lines_cross_along_any_numeric_axis(parameter: Parameter) -> None:
    flat = line(parameter, {100: 3.0, 10: 3.0, 1: 3.0})
    rising = line(parameter, {1: 1.0, 10: 2.0, 100: 11.0})
    (crossing,) = crossings(flat, rising)
    assert crossing.at == pytest.approx(20)
    assert crossing.low < 20 < crossing.high
    assert crossing.figure == pytest.approx(3)
    assert not crossing.first_is_less
    (mirrored,) = crossings(rising, flat)
    assert (mirrored.at, mirrored.first_is_less) == (crossing.at, True)


def exact(**means: float) -> Line:
    return {float(place[1:]): Estimate(mean, 1e-4, 9) for place, mean in means.items()}


def test_there_is_no_crossing_beyond_the_ends_or_without_an_interval() -> None:
    one, other = exact(_0=1, _1=2), exact(_0=1.001, _1=1)
    assert list(crossings(one, other)) == []
    late = exact(_0=0, _1=1.002)
    assert list(crossings(late, exact(_0=1, _1=1))) == []
    (open_ended,) = crossings(late, exact(_0=1, _1=1), open_ended=True)
    assert isinstance(open_ended, Crossing)
    assert open_ended.high > 1
    vague = {place: Estimate(one.mean, 0, 0) for place, one in exact(_0=0, _1=2).items()}
    assert list(crossings(vague, exact(_0=1, _1=1))) == []


def test_lines_may_cross_twice() -> None:
    found = list(crossings(exact(_0=0, _1=2, _2=0), exact(_0=1, _1=1, _2=1)))
    assert [one.first_is_less for one in found] == [True, False]
