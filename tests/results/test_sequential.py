"""Sequential decisions about ratios: when they are made, and how often they are wrong."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from zodbshootout.results.estimate import Estimate, mean_of
from zodbshootout.results.sequential import LOOKS, Rule, boundary_for
from zodbshootout.results.verdicts import Ratio

SLOWER = math.log(1 / 1.1)


def ratio(logs: Sequence[float]) -> Ratio:
    return Ratio(mean_of(logs), len(logs), paired=True)


def exactly(value: float) -> Ratio:
    log = math.log(value) if value else -math.inf
    return Ratio(Estimate(log, 0.0, math.inf), 1)


def noisy(mean: float, runs: int, noise: float = 0.01) -> Ratio:
    half = runs // 2
    return ratio([mean + noise * sign for sign in (1, -1) for _ in range(half)])


def test_a_change_and_none_are_told_apart_by_the_boundary_between() -> None:
    rule = Rule(0.01, boundary_for(noisy(SLOWER, 8)))
    assert rule.is_changed(noisy(SLOWER, 8)) is True
    assert rule.is_changed(noisy(0.0, 8)) is False
    assert rule.is_changed(noisy(SLOWER / 2, 64)) is None


def test_something_faster_is_a_change_too() -> None:
    rule = Rule(0.01, boundary_for(noisy(-SLOWER, 8)))
    assert rule.is_changed(noisy(-SLOWER, 8)) is True
    assert rule.is_changed(noisy(SLOWER, 8)) is False


def test_the_numbers_of_runs_at_looks_double() -> None:
    rule = Rule(0.01)
    assert [rule.next_look(runs) for runs in (0, 7, 8, 511, 512)] == [8, 8, 16, 512, 0]


def test_the_first_step_wants_the_change_to_be_more_than_half_of_what_is_measured() -> None:
    rule = Rule(0.01)
    assert rule.is_changed(noisy(SLOWER, 8)) is True
    # Different from 1, but the change could be less than half as large.
    assert rule.is_changed(noisy(0.02, 8)) is None
    assert rule.is_changed(exactly(1.0)) is None


@pytest.mark.parametrize(("bad", "boundary"), [(11 / 12, math.log(11 / 12) / 2), (0, -1.0)])
def test_exact_numbers_are_decided_by_one_run(bad: float, boundary: float) -> None:
    rule = Rule(0.01, looks=(1, *LOOKS))
    assert rule.is_changed(exactly(bad)) is True
    assert boundary_for(exactly(bad)) == boundary
    later = Rule(0.01, boundary, looks=(1, *LOOKS))
    assert [later.is_changed(exactly(value)) for value in (1.0, bad)] == [False, True]


@pytest.mark.slow
def test_wrong_decisions_are_as_rare_as_the_rule_says() -> None:
    chance, error, wrong, times = random.Random(0), 0.05, 0, 1000
    rule = Rule(error, SLOWER / 2)
    for _ in range(times):
        logs = [chance.gauss(SLOWER / 2 - 1e-9, 0.02) for _ in range(LOOKS[-1])]
        outcomes = (rule.is_changed(ratio(logs[:look])) for look in LOOKS)
        wrong += next((outcome for outcome in outcomes if outcome is not None), True) is False
    assert wrong <= times * error
    assert wrong >= times * error / 4  # the division among looks costs something, but not all
