"""The error rates of comparisons, with a twentieth of the runs of ``benchmarks.error_rates``."""

from __future__ import annotations

import random

import pytest
from benchmarks.error_rates import Row, measure, shapes
from benchmarks.figure import Figure


@pytest.fixture(scope="module")
def figures() -> dict[str, Figure]:
    return {figure.name.partition(": ")[2]: figure for figure in measure(quick=True)}


@pytest.mark.xdist_group("error rates")  # the figures are simulated together
@pytest.mark.parametrize(
    "name",
    [
        "equal, called different",
        "equal, runs missing, called different",
        "5 % slower, found",
        "5 % slower, runs missing, found",
        "ratio in its interval",
        "steady, recorded",
        "steady, correlated",
        "steady, heavy tails",
        "steady, missing, repeated",
        "6 times in 7 rounds, found",
        "equal releases, called different",
        "release 5 % slower, found",
        "found at another release",
        "shared, 12 %, drifting, found",
        "shared, 12 %, drifting, others blamed",
        "history, steady, points with a verdict",
        "history, step of 5 %, found at its point",
        "history, anchor changed by 5 %, said so",
        "10 % slower, right commit named",
        "10 % slower, others named",
        "good and bad equal, a commit named",
    ],
)
def test_an_error_rate_reaches_its_goal(figures: dict[str, Figure], name: str) -> None:
    assert figures[name].reached, str(figures[name])


def test_a_simulated_row_has_the_given_means_and_ratio() -> None:
    shape = shapes()["sqlite"][5]
    row = Row(shape, random.Random(0), slower=2.0, drift=0.0)
    assert not row.measure(0.0, 400)
    assert row.ratio.value == pytest.approx(0.5, rel=0.01)
    assert row.own(0).mean == pytest.approx(shape.truth, rel=0.02)
    assert row.own(1).mean == pytest.approx(2 * shape.truth, rel=0.02)


def test_a_simulated_row_ends_when_its_figures_are_precise_enough() -> None:
    row = Row(shapes()["sqlite"][5], random.Random(0))
    assert row.measure(0.05, 400)
    assert row.ratio.log.half_width <= 0.05
    assert all(row.own(side).half_width <= 0.05 * row.own(side).mean for side in (0, 1))
