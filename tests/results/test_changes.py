"""The choice of cells to compare, the comparison itself, and its verdicts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.runs import cell, failed, measured, noisy, run, speed_ratio
from zodbshootout.errors import UserError
from zodbshootout.model.quantities import QUANTITIES
from zodbshootout.model.specification import CrewShape
from zodbshootout.results.changes import mean_ratio
from zodbshootout.results.ratios import Verdict
from zodbshootout.results.result import CellResult
from zodbshootout.results.sides import compare, rounds_needed


def adding(contender: str, *runs: Sequence[float], **facts: Any) -> CellResult:
    return measured(cell("add", contender), *runs, **facts)


def test_values_of_the_same_slices_are_paired_and_machine_noise_cancels_out() -> None:
    ratio = speed_ratio(adding("a", *noisy(1)), adding("b", *noisy(2, slower=1.05)))
    assert ratio.paired
    assert ratio.value == pytest.approx(1 / 1.05, rel=0.01)
    low, high = ratio.interval
    assert 0.93 < low < high < 0.97


def test_runs_without_rounds_are_unpaired_and_include_machine_noise() -> None:
    base, new = (adding("a", *noisy(seed), round=None) for seed in (1, 2))
    ratio = speed_ratio(base, new)
    assert not ratio.paired
    low, high = ratio.interval
    assert low < 0.8
    assert high > 1.2


def test_only_slices_with_the_same_number_are_paired() -> None:
    whole = adding("a", *[[1.0, 100.0, 1.0]] * 2)
    part = CellResult(cell("add", "b"))
    for number in range(2):
        part = part.with_run(run(2.0, 2.0, round=f"r-{number}", slices="0 2"))
    assert speed_ratio(whole, part).value == pytest.approx(0.5)


def test_all_runs_have_equal_weight_whatever_their_number_of_values() -> None:
    base = adding("a", [1.0] * 100, [1.0])
    new = adding("b", [1.0] * 100, [4.0])
    assert speed_ratio(base, new).value == pytest.approx(1 / 2)


def test_a_verdict_is_faster_or_slower_only_if_the_difference_is_significant() -> None:
    base = adding("a", *noisy(1))
    (change,) = compare([base], [adding("b", *noisy(2, slower=1.05))], across=True).changes
    assert change.verdict is Verdict.SLOWER
    (change,) = compare([adding("b", *noisy(2, slower=1.05))], [base], across=True).changes
    assert change.verdict is Verdict.FASTER
    (change,) = compare([base], [adding("b", *noisy(3))], across=True).changes
    assert change.verdict is Verdict.NO_DIFFERENCE


def test_an_undecided_comparison_says_how_many_runs_it_needs() -> None:
    base, new = (adding("a", *noisy(seed), round=None) for seed in (1, 2))
    (change,) = compare([base], [new]).changes
    assert change.verdict is Verdict.UNDECIDED
    assert change.runs_needed is not None
    assert change.runs_needed > 20
    (change,) = compare([adding("a", [1.0])], [adding("a", [2.0])]).changes
    assert (change.verdict, change.runs_needed) == (Verdict.UNDECIDED, 3)


def test_a_difference_that_is_significant_alone_may_not_be_among_many() -> None:
    def side(contender: str, slower: float) -> list[CellResult]:
        return [
            measured(cell("add", contender), [slower], [slower * 1.01], [slower * 1.02], [slower])
        ]

    base, new = side("a", 1.0), side("b", 1.02)
    new[0] = adding("b", [1.02], [1.023], [1.048], [1.015])
    alone = compare(base, new, across=True).changes[0]
    assert alone.ratio.log.p_value == pytest.approx(0.00985, abs=0.0001)
    assert alone.verdict is Verdict.SLOWER
    others = [
        measured(cell(benchmark, "x"), [1.0], [1.1], [0.9], [1.0])
        for benchmark in ("update", "cold", "hot")
    ]
    more = [
        measured(cell(benchmark, "x"), [1.1], [1.0], [1.0], [0.9])
        for benchmark in ("update", "cold", "hot")
    ]
    among = compare([*base, *others], [*new, *more], across=True).changes[0]
    assert among.verdict is Verdict.NO_DIFFERENCE


def test_a_gate_fails_only_if_the_whole_interval_exceeds_the_limit() -> None:
    base = adding("a", *noisy(1))
    (change,) = compare([base], [adding("b", *noisy(2, slower=1.10))], across=True).changes
    assert [change.beyond(part) for part in (0.05, 0.20)] == [True, False]
    assert change.beyond(1 / change.ratio.value - 1) is None
    (change,) = compare([adding("b", *noisy(2, slower=1.10))], [base], across=True).changes
    assert change.beyond(0.01) is False


def test_cells_measured_on_only_one_side_are_listed() -> None:
    base = [adding("a", [1.0]), measured(cell("hot", "a"), [1.0])]
    new = [adding("a", [1.0]), failed(cell("hot", "a"), "broken")]
    comparison = compare(base, new)
    assert [change.base.cell.benchmark for change in comparison.changes] == ["add"]
    assert [result.cell.benchmark for result in comparison.only_base] == ["hot"]
    assert comparison.only_new == []


def test_cells_with_different_parameters_are_compared_only_if_those_are_ignored() -> None:
    base = [measured(cell("add", "a", objects=100), [1.0], [1.0])]
    new = [measured(cell("add", "a", objects=1000), [5.0], [5.0])]
    assert compare(base, new).changes == []
    (change,) = compare(base, new, ["object-counts"]).changes
    # Ten times as many objects take five times as long.
    assert change.ratio.value == pytest.approx(2.0)


def test_compare_refuses_cells_that_ignored_parameters_make_ambiguous() -> None:
    several = [measured(cell("add", "a", objects=count), [1.0]) for count in (10, 100)]
    with pytest.raises(UserError, match=r"a: add 10x300B .* and a: add 100x300B .*; ignore fewer"):
        compare(several, several, ["object-counts"])


def test_the_geometric_mean_covers_all_ratios_of_three_or_more_runs() -> None:
    base = [adding("a", *[[1.0]] * 3), measured(cell("hot", "a"), *[[1.0]] * 3)]
    new = [adding("b", *[[0.5]] * 3), measured(cell("hot", "b"), *[[8.0]] * 3)]
    mean = mean_ratio(compare(base, new, across=True).changes)
    assert mean is not None
    assert mean.value == pytest.approx(0.5)
    assert mean_ratio([]) is None
    few = [adding("b", *[[0.5]] * 2), measured(cell("hot", "b"), *[[8.0]] * 3)]
    mean = mean_ratio(compare(base, few, across=True).changes)
    assert mean is not None
    assert mean.value == pytest.approx(0.125)
    assert mean_ratio(compare(base, few[:1], across=True).changes) is None


def test_each_difference_of_versions_and_settings_is_listed_once() -> None:
    def with_version(version: str, setting: str) -> list[CellResult]:
        settings = json.dumps({"a": "1", "b": setting})
        metadata = {"version_ZEO": version, "driver": "x", "settings": settings}
        return [measured(cell(name, "a"), [1.0], [1.0], **metadata) for name in ("add", "hot")]

    differences = compare(with_version("6.1", "no"), with_version("6.2", "yes")).differences
    assert list(map(str, differences)) == ["version_ZEO: 6.1 against 6.2", "b: no against yes"]


def test_another_durability_is_the_first_difference() -> None:
    def with_metadata(**metadata: str) -> list[CellResult]:
        return [adding("a", [1.0], [1.0], **metadata)]

    full = {"durability": "synced", "durability_detail": "synchronous FULL"}
    base = with_metadata(driver="x", hostname="a", **full)
    lost = {"durability": "may lose the last commits", "durability_detail": "synchronous NORMAL"}
    new = with_metadata(driver="y", hostname="b", **lost)
    assert list(map(str, compare(base, new).differences)) == [
        "durability: synced against may lose the last commits",
        "durability_detail: synchronous FULL against synchronous NORMAL",
        "hostname: a against b",
        "driver: x against y",
    ]


def test_crews_of_different_shapes_are_compared_only_if_the_shape_is_ignored() -> None:
    base = [adding("a", [1.0], [1.0])]
    alone = replace(base[0].cell.parameters, crew=CrewShape(1))
    new = CellResult(replace(base[0].cell, parameters=alone)).with_run(run(1.0))
    assert compare(base, [new]).changes == []
    assert len(compare(base, [new], ["concurrency", "threads"]).changes) == 1


def test_the_ratios_that_have_to_be_precise_are_those_at_one_distance() -> None:
    # What disturbs both contenders at one distance cancels out.
    here, there = noisy(1), noisy(2, runs=6, noise=0.3)[::-1]
    results = [
        measured(cell("add", name, rtt=rtt), *rounds)
        for name in ("zeo", "pg")
        for rtt, rounds in ((0.0, here), (0.002, there))
    ]
    alone = max(rounds_needed([result], None, 0.05) for result in results)
    assert rounds_needed(results, None, 0.05) == alone


def measured_amounts(name: str, quantity: str, runs: Sequence[Sequence[float]]) -> CellResult:
    """Return a contender's result with a quantity's amounts in some runs."""
    key = QUANTITIES[quantity].key
    return measured(
        cell("add", name),
        *[[1.0]] * len(runs),
        **{key: lambda number: " ".join(map(str, runs[number]))},
    )


def verdict_on(
    name: str, base: Sequence[Sequence[float]], new: Sequence[Sequence[float]]
) -> Verdict:
    """Return the verdict on amounts of a quantity in the runs of two contenders."""
    of_base, of_new = (measured_amounts(*side) for side in (("a", name, base), ("b", name, new)))
    (change,) = compare([of_base], [of_new], across=True, quantity=QUANTITIES[name]).changes
    return change.verdict


def test_a_quantity_of_which_more_is_better_is_judged_the_other_way_round() -> None:
    sides = [
        measured(cell("hot", name), *[[1.0]] * 4, storage_cache_hits=hits, loads=100)
        for name, hits in (("a", 50), ("b", 90))
    ]
    (change,) = compare(sides[:1], sides[1:], across=True, quantity=QUANTITIES["hits"]).changes
    assert change.verdict is Verdict.FASTER
    assert change.sentence("a", "b") == (
        "b takes 1.80 times as much as a (exactly): 90% against 50%"
    )


def test_a_sentence_about_amounts_has_both() -> None:
    sides = [measured_amounts(name, "trips", [[of]]) for name, of in (("a", 0), ("b", 3))]
    (change,) = compare(sides[:1], sides[1:], across=True, quantity=QUANTITIES["trips"]).changes
    assert change.sentence("a", "b") == "b takes some, and a none"
    assert change.sentence("a", "b", brief=True) == "b takes some"
    (change,) = compare(sides[1:], sides[1:], across=True, quantity=QUANTITIES["trips"]).changes
    assert change.sentence("b", "b once more") == "b once more and b: equal"


def test_round_trips_that_vary_are_judged_like_other_figures() -> None:
    counted = [[18, 18, 18, 18, 19]] * 5
    assert verdict_on("trips", counted, [[18, 18, 18, 19, 18]] * 5) is Verdict.NO_DIFFERENCE
    assert verdict_on("trips", counted, [[19] * 5] * 5) is Verdict.SLOWER
    assert verdict_on("trips", counted, [[17] * 5] * 5) is Verdict.FASTER
    assert verdict_on("trips", counted[:1], [[19] * 5]) is Verdict.UNDECIDED


def test_a_0_among_amounts_does_not_hide_a_difference() -> None:
    few, many = [[2], [2], [0], [2]] * 3, [[505], [500], [510], [505]] * 3
    assert verdict_on("trips", few, many) is Verdict.SLOWER
    assert verdict_on("trips", many, few) is Verdict.FASTER
    assert verdict_on("trips", many, [[0], *many[1:]]) is Verdict.UNDECIDED
    assert verdict_on("trips", [[0]] * 12, many) is Verdict.SLOWER
    assert verdict_on("trips", many, [[0]] * 12) is Verdict.FASTER
    assert verdict_on("trips", [[0]] * 12, [[0], [1], [0]] * 4) is Verdict.UNDECIDED
    assert verdict_on("disk", [[-10], [10], [-20], [5]] * 3, many) is Verdict.SLOWER


def test_an_amount_of_one_run_is_not_exact_but_a_number_is() -> None:
    assert verdict_on("cpu", [[0.1]], [[0.2]]) is Verdict.UNDECIDED
    assert verdict_on("trips", [[12]], [[13]]) is Verdict.SLOWER


@pytest.mark.parametrize(
    ("cost", "base", "equal", "more"),
    [
        ("bytes", 86_020, 85_920, 96_020),  # a digit of each object ID
        ("written", 40_960, 49_150, 90_000),  # two pages
        ("server_memory", 23_868_416, 23_832_576, 33_868_416),
        ("memory", 51_100_000, 49_900_000, 61_000_000),
    ],
)
def test_amounts_that_differ_by_no_more_than_a_grain_are_the_same(
    cost: str, base: int, equal: int, more: int
) -> None:
    runs = [[base], [base + 2], [base + 4], [base + 6]]
    assert verdict_on(cost, runs, [[equal]] * 4) is Verdict.NO_DIFFERENCE
    assert verdict_on(cost, runs, [[more]] * 4) is Verdict.SLOWER
    assert verdict_on("cpu", [[0.010]] * 4, [[0.011]] * 4) is Verdict.SLOWER


def test_no_number_of_runs_decides_about_amounts_whose_means_have_no_ratio() -> None:
    sides = [
        measured_amounts(name, "disk", amounts)
        for name, amounts in (("a", [[0.0], [1.0], [-2.0]]), ("b", [[-3.0], [4.0], [-5.0]]))
    ]
    (change,) = compare(sides[:1], sides[1:], across=True, quantity=QUANTITIES["disk"]).changes
    assert (change.verdict, change.runs_needed) == (Verdict.UNDECIDED, None)
