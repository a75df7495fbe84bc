"""The ratio of a run from its pairs: exact if bursts strike by chance, and true to stalls."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence

import pytest

from zodbshootout.results.estimate import Estimate, mean_of_runs
from zodbshootout.results.pairs import Pairs, log_ratios_of, middle, of_mean

RUNS, SLICES = 8, 30


def machine(
    chance: random.Random, *, bursts: float = 0.0, stall: float = 0.0, slower: float = 1.0
) -> list[Pairs]:
    """Return pairs of a machine whose speed changes, and which is busy in some slices.

    The first contender stalls in one of twenty slices.
    """
    runs: list[Pairs] = []
    for _ in range(RUNS):
        pairs = []
        speed = 1.0
        for number in range(SLICES):
            if chance.random() < 0.1:
                speed = chance.uniform(1.0, 2.0)
            one, other = (
                speed
                * chance.gauss(1.0, 0.03)
                * (1 + (chance.expovariate(1.0) if chance.random() < bursts else 0.0))
                for _ in range(2)
            )
            pairs.append((one + (stall if number % 20 == 7 else 0.0), other * slower))
        runs.append(pairs)
    return runs


def estimates(count: int, **how: float) -> list[Estimate]:
    chance = random.Random(53)
    return [mean_of_runs(log_ratios_of(machine(chance, **how))) for _ in range(count)]


def error(found: Sequence[Estimate], log: float = 0.0) -> float:
    return math.sqrt(statistics.fmean((one.mean - log) ** 2 for one in found))


def test_bursts_that_strike_either_contender_by_chance_hardly_change_the_ratio() -> None:
    chance = random.Random(53)
    runs = [machine(chance, bursts=0.06) for _ in range(300)]
    means = [mean_of_runs([one_of_means(pairs) for pairs in of_one]) for of_one in runs]
    found = [mean_of_runs(log_ratios_of(of_one)) for of_one in runs]
    typical = [statistics.median(abs(one.mean) for one in some) for some in (found, means)]
    assert typical[0] < 0.5 * typical[1]
    assert statistics.fmean(one.p_value <= 0.01 for one in found) <= 0.02
    covered = statistics.fmean(one.interval[0] <= 0 <= one.interval[1] for one in found)
    assert covered >= 0.93


def one_of_means(pairs: Pairs) -> list[float]:
    first, second = (of_mean(amounts) for amounts in zip(*pairs, strict=True))
    return [one - other for one, other in zip(first, second, strict=True)]


def test_five_per_cent_are_found_in_spite_of_bursts() -> None:
    found = estimates(200, bursts=0.03, slower=1.05)
    assert statistics.fmean(one.p_value <= 0.01 for one in found) >= 0.8
    assert error(found, -math.log(1.05)) < 0.02


@pytest.mark.parametrize("bursts", [0.0, 0.03])
@pytest.mark.parametrize("stall", [1.0, 10.0])
def test_a_storage_that_stalls_in_one_of_twenty_slices_has_the_ratio_of_the_figures(
    stall: float, bursts: float
) -> None:
    chance = random.Random(54)
    for _ in range(100):
        runs = machine(chance, stall=stall, bursts=bursts)
        figures = [
            statistics.fmean(map(statistics.fmean, zip(*pairs, strict=True))) for pairs in runs
        ]
        assert figures
        first, second = (
            statistics.fmean(pair[which] for pairs in runs for pair in pairs) for which in (0, 1)
        )
        found = mean_of_runs(log_ratios_of(runs)).mean
        assert found == pytest.approx(math.log(first / second), abs=0.06)


def test_a_single_pair_has_its_own_ratio() -> None:
    assert log_ratios_of([[(2.0, 1.0)], [(4.0, 1.0)]]) == [[math.log(2)], [math.log(4)]]


def test_the_ratio_is_the_inverse_of_the_opposite_ratio() -> None:
    for stall in (0.0, 10.0):
        runs = machine(random.Random(3), stall=stall)
        inverse = [[(other, one) for one, other in pairs] for pairs in runs]
        sums = zip(log_ratios_of(runs), log_ratios_of(inverse), strict=True)
        for one, other in sums:
            assert statistics.fmean(one) == pytest.approx(-statistics.fmean(other))


def test_middle_numbers_have_the_mean_and_the_error_of_the_middle_half() -> None:
    numbers = [-900.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 90.0]
    assert statistics.fmean(middle(numbers)) == pytest.approx(4.5)
    winsorized = [2.0, 2.0, 2.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 7.0, 7.0, 7.0]
    assert statistics.stdev(middle(numbers)) == pytest.approx(2 * statistics.stdev(winsorized))
    assert middle(numbers[:9]) == pytest.approx(numbers[:9])
