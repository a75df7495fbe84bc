"""The error rates of comparisons, with a twentieth of the runs of ``benchmarks.error_rates``."""

from __future__ import annotations

import functools
import random

import pytest
from benchmarks.error_rates import COMPARISONS, PARTS, Row, shapes
from benchmarks.line import Line

GOALS = {
    "comparisons": [
        "equal, called different",
        "equal, runs missing, called different",
        "5 % slower, found",
        "5 % slower, runs missing, found",
        "ratio in its interval",
        "steady, recorded",
    ],
    "trends": [
        "steady, correlated",
        "steady, heavy tails",
        "steady, some fail",
        "steady, --for",
        "steady, --for, correlated noise only",
        "3 times in 8 rounds, found",
        "1.3 times in 12 quiet rounds, others blamed",
        "--for, 1.2 times, quiet, found",
    ],
    "releases": [
        "equal releases, called different",
        "release 5 % slower, found",
        "found at another release",
    ],
}


@functools.cache
def figures_of(part: str) -> dict[str, Line]:
    """Return the figures of a part, which are simulated together, without their prefixes."""
    made = PARTS[part](COMPARISONS // 20)
    return {figure.name.partition(": ")[2]: figure for figure in made}


@pytest.mark.slow
@pytest.mark.timeout(900)  # the first test of a part simulates all of it
@pytest.mark.parametrize(
    ("part", "name"),
    [
        pytest.param(part, name, marks=pytest.mark.xdist_group(f"error rates of {part}"))
        for part, names in GOALS.items()
        for name in names
    ],
)
def test_an_error_rate_reaches_its_goal(part: str, name: str) -> None:
    figure = figures_of(part)[name]
    assert figure.reached, str(figure)


@pytest.mark.slow
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
