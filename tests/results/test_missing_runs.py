"""Comparisons of results in which runs are missing, repeated or in another order."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.generated import examples
from tests.runs import cell, measured, run, speed_ratio
from zodbshootout.results.estimate import MIN_RUNS
from zodbshootout.results.ratios import Ratio, Verdict
from zodbshootout.results.result import CellResult
from zodbshootout.results.sides import compare

DIFFERENT = {Verdict.FASTER, Verdict.SLOWER}
SLICES = 4
RESULTS = examples(400, 2000)
SEEDS = given(chance=st.integers(0, 2**64).map(random.Random))


def in_rounds(contender: str, rounds: Sequence[int], values: Callable[[int, int], float],
              command: str = "r") -> CellResult:  # fmt: skip
    """Return a result with a run in each of some *rounds*; *values* takes round and slice."""
    taken = [range(number * 10, number * 10 + SLICES) for number in rounds]
    return measured(
        cell("add", contender),
        *([values(number, one) for one in of] for number, of in zip(rounds, taken, strict=True)),
        command_id=command,
        round=lambda at: str(rounds[at]),
        slices=lambda at: " ".join(map(str, taken[at])),
    )


def repeated(result: CellResult, number: int) -> CellResult:
    """Return a result whose run *number* is that of a second try, with later slices."""
    before = result.runs[number]
    metadata = before.get_metadata()
    slices = [str(int(taken) + SLICES) for taken in metadata["slices"].split()]
    values = [1.5 * value for value in before.values]
    again = run(*values, **{**metadata, "slices": " ".join(slices)}).get_runs()[0]
    return replace(result, runs=(*result.runs[:number], again, *result.runs[number + 1 :]))


Machine = Callable[[int, int], float]
"""Return the seconds that the machine takes in a round for a slice."""


def machine_of(chance: random.Random, rounds: int) -> Machine:
    """Return a machine whose speed changes from round to round and from slice to slice."""
    levels = [chance.uniform(0.2, 5.0) for _ in range(rounds)]
    noise = {taken: chance.uniform(0.8, 1.25) for taken in range(10 * rounds)}
    return lambda number, taken: levels[number] * noise[taken]


def wobbly(machine: Machine, factor: float) -> Machine:
    """Take *factor* times as long, give or take 1 %, which cancels out in each run."""
    return lambda number, taken: machine(number, taken) * factor * math.exp(0.01 * (-1) ** taken)


def some(chance: random.Random, numbers: Sequence[int]) -> set[int]:
    return set(chance.sample(numbers, chance.randrange(len(numbers) + 1)))


def changed(result: CellResult, chance: random.Random, keep: int) -> CellResult:
    """Remove, repeat, double and reorder runs; the first rounds, *keep* of them, have theirs."""
    numbers = range(len(result.runs))
    for number in some(chance, numbers[keep:]):
        result = repeated(result, number)
    return thinned(result, chance, keep)


def thinned(result: CellResult, chance: random.Random, keep: int) -> CellResult:
    """Remove, double and reorder runs."""
    numbers = range(len(result.runs))
    left = sorted(set(numbers) - some(chance, numbers[keep:]))
    left += some(chance, left)
    chance.shuffle(left)
    return replace(result, runs=tuple(result.runs[number] for number in left))


def whole_and_changed(
    chance: random.Random, factor: float
) -> tuple[CellResult, CellResult, CellResult, CellResult]:
    """Return two contenders, whole and changed; the second takes *factor* times as long."""
    rounds = chance.randint(MIN_RUNS + 1, 10)
    machine = machine_of(chance, rounds)
    base = in_rounds("a", range(rounds), machine)
    new = in_rounds("b", range(rounds), wobbly(machine, factor))
    return base, new, changed(base, chance, MIN_RUNS), changed(new, chance, MIN_RUNS)


def verdict_of(base: CellResult, new: CellResult) -> Verdict:
    (change,) = compare([base], [new], across=True).changes
    return change.verdict


@pytest.mark.slow
@RESULTS
@SEEDS
def test_missing_and_repeated_runs_never_make_equal_contenders_different(
    chance: random.Random,
) -> None:
    base, new, changed_base, changed_new = whole_and_changed(chance, 1.0)
    assert verdict_of(base, new) is Verdict.NO_DIFFERENCE
    assert verdict_of(changed_base, changed_new) is Verdict.NO_DIFFERENCE
    assert verdict_of(base, changed_new) is Verdict.NO_DIFFERENCE
    assert verdict_of(changed_base, new) is Verdict.NO_DIFFERENCE


@pytest.mark.slow
@RESULTS
@SEEDS
def test_missing_and_repeated_runs_never_hide_nor_invert_a_clear_difference(
    chance: random.Random,
) -> None:
    base, new, changed_base, changed_new = whole_and_changed(chance, 1.1)
    assert verdict_of(base, new) is Verdict.SLOWER
    assert verdict_of(changed_base, changed_new) is Verdict.SLOWER
    assert verdict_of(changed_new, changed_base) is Verdict.FASTER


@pytest.mark.slow
@RESULTS
@SEEDS
def test_a_contender_is_once_as_fast_as_itself_whatever_is_missing(chance: random.Random) -> None:
    rounds = chance.randint(1, 8)
    result = in_rounds("a", range(rounds), machine_of(chance, rounds))
    one, other = (thinned(result, chance, keep=0) for _ in range(2))
    if not (one.measured and other.measured):
        return
    assert verdict_of(one, other) not in DIFFERENT
    rounds_of = [{run.get_metadata()["round"] for run in side.runs} for side in (one, other)]
    if rounds_of[0] & rounds_of[1]:
        assert speed_ratio(one, other).value == pytest.approx(1.0, rel=1e-12)


@pytest.mark.slow
@RESULTS
@SEEDS
def test_the_ratio_of_two_contenders_is_the_inverse_of_the_opposite_ratio(
    chance: random.Random,
) -> None:
    rounds = chance.randint(2, 8)
    one, other = (
        changed(in_rounds(name, range(rounds), machine_of(chance, rounds), command), chance, 1)
        for name, command in (("a", "r"), ("b", chance.choice("rs")))
    )
    there, back = speed_ratio(one, other), speed_ratio(other, one)
    assert there.value * back.value == pytest.approx(1.0, rel=1e-9)
    assert (there.runs, there.paired, there.left_out) == (back.runs, back.paired, back.left_out)


def different(ratio: Ratio) -> bool:
    return ratio.log.p_value < 0.01


def test_a_cell_that_fails_is_compared_by_the_rounds_before_even_if_the_machine_changes() -> None:
    def machine(number: int, taken: int) -> float:
        return 1.0 if number < 4 else 0.9

    base = in_rounds("a", range(10), machine)
    failed = in_rounds("b", range(4), wobbly(machine, 1.0))
    ratio = speed_ratio(base, failed)
    assert (ratio.runs, ratio.paired, ratio.left_out) == (4, True, 6)
    assert ratio.value == pytest.approx(1.0)
    assert not different(ratio)


def test_a_run_repeated_after_a_crash_is_left_out_and_the_others_are_pairs() -> None:
    def machine(number: int, taken: int) -> float:
        return 1.0 + number

    base = in_rounds("a", range(10), machine)
    slower = in_rounds("b", range(10), wobbly(machine, 1.1))
    ratio = speed_ratio(base, repeated(slower, 4))
    assert (ratio.runs, ratio.paired, ratio.left_out) == (9, True, 2)
    assert ratio.value == pytest.approx(1 / 1.1)
    assert different(ratio)


def test_rounds_of_a_resumed_run_are_pairs_except_the_one_that_was_interrupted() -> None:
    def machine(number: int, taken: int) -> float:
        return 1.0 + number

    base = in_rounds("a", range(4), machine)
    base = replace(base, runs=base.runs + in_rounds("a", range(4, 6), machine, "s").runs)
    new = in_rounds("b", range(3), wobbly(machine, 1.1))
    new = replace(new, runs=new.runs + in_rounds("b", range(3, 6), wobbly(machine, 1.1), "s").runs)
    ratio = speed_ratio(base, new)
    assert (ratio.runs, ratio.paired, ratio.left_out) == (5, True, 2)
    assert ratio.value == pytest.approx(1 / 1.1)


def test_results_of_different_commands_are_not_pairs() -> None:
    base = in_rounds("a", range(5), lambda number, taken: 1.0, "r")
    new = in_rounds("b", range(5), lambda number, taken: 2.0, "s")
    ratio = speed_ratio(base, new)
    assert (ratio.runs, ratio.paired, ratio.left_out) == (5, False, 0)
    assert different(ratio)


def test_runs_of_one_command_without_a_common_round_have_no_verdict() -> None:
    base = in_rounds("a", range(4), lambda number, taken: 1.0)
    new = in_rounds("b", range(4, 8), lambda number, taken: 2.0)
    ratio = speed_ratio(base, new)
    assert not ratio.paired
    assert not ratio.is_known
