"""The sentence that says who wins at what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.runs import cell, measured
from zodbshootout.reports.comparison import exceptions
from zodbshootout.reports.sentences import sentence
from zodbshootout.results.result import CellResult
from zodbshootout.results.sides import Comparison, compare


def compared(speeds: Mapping[str, float], runs: int = 4) -> Comparison:
    """Compare contenders, of which the second has these speeds relative to the first."""

    def side(contender: str, seconds: Mapping[str, float]) -> list[CellResult]:
        rounds = [[1.0, 1.001, 1.002]] * runs
        return [
            measured(
                cell(name, contender), *[[factor * value for value in values] for values in rounds]
            )
            for name, factor in seconds.items()
        ]

    base = side("fs", dict.fromkeys(speeds, 1.0))
    new = side("sqlite", {name: 1 / speed for name, speed in speeds.items()})
    return compare(base, new, across=True).named("fs", "sqlite")


@pytest.mark.parametrize(
    ("speeds", "expected"),
    [
        (
            {"add": 0.75, "update": 0.82, "warm": 1, "cold": 1, "hot": 1.47, "steamin": 1},
            (
                "sqlite against fs: slower at add (0.75×), update (0.82×); faster at hot (1.47×); "
                "no difference seen at warm, cold, steamin"
            ),
        ),
        (
            {"steamin": 1.02, "add": 0.5, "hot": 1},
            (
                "sqlite against fs: slower at add (0.50×); no difference seen at hot; "
                "faster at steamin (1.02×)"
            ),
        ),
        (
            {"add": 0.5, "update": 2, "hot": 1, "steamin": 2},
            (
                "sqlite against fs: slower at add (0.50×); faster at update (2.00×), steamin "
                "(2.00×); no difference seen at hot"
            ),
        ),
        (
            {"add": 0.5, "update": 0.6, "warm": 0.7, "hot": 0.8, "steamin": 2},
            (
                "sqlite against fs: slower at add, update, warm, hot (0.50× to 0.80×); geometric "
                "mean of these 4 benchmarks: 0.64× (0.64 to 0.64); faster at steamin (2.00×)"
            ),
        ),
        (
            {"add": 0.5, "hot": 0.8},
            (
                "sqlite against fs: slower at add (0.50×), hot (0.80×); geometric mean of these 2 "
                "benchmarks: 0.63× (0.63 to 0.63)"
            ),
        ),
        ({"add": 1, "hot": 1}, "sqlite against fs: no difference seen at add, hot"),
        ({"add": 0.5}, "fs is 2.00 times as fast as sqlite (2.00 to 2.00)"),
        ({"add": 1}, "sqlite and fs: no significant difference (1.00 to 1.00)"),
    ],
)
def test_the_sentence_says_who_wins_at_what(speeds: Mapping[str, float], expected: str) -> None:
    assert sentence(compared(speeds)) == expected


def test_many_benchmarks_are_summed_up_by_topic() -> None:
    names = (
        "add update warm cold prefetch_cold load store ex_commit im_commit readCurrent new_oid "
        "conflicts conflicts_map readCurrent_conflicts undo history load_before open open_cold "
        "open_stale pack copy"
    )
    speeds = dict.fromkeys(names.split(), 0.5)
    speeds |= {"hot": 2.0, "tpc": 1.0, "steamin": 1.0}
    assert sentence(compared(speeds)) == (
        "sqlite against fs: writing: slower at all 7 benchmarks (0.50×); "
        "reading from a cache: slower at warm (0.50×), faster at hot (2.00×); "
        "reading from the database: slower at all 5 benchmarks (0.50×); "
        "transactions without data: slower at ex_commit (0.50×), im_commit (0.50×), "
        "no difference seen at tpc; "
        "other work: slower at readCurrent (0.50×), new_oid (0.50×); "
        "upkeep: slower at all 5 benchmarks (0.50×); "
        "no difference seen at steamin"
    )


def test_too_few_runs_make_no_sentence() -> None:
    assert not sentence(compared({"add": 0.5, "hot": 0.5}, runs=2))


def test_cells_of_one_benchmark_are_counted() -> None:
    def side(contender: str, slower: float) -> list[CellResult]:
        results = []
        for objects, factor in ((10, 1.0), (100, slower), (1000, slower)):
            made = measured(cell("add", contender), *[[factor]] * 4)
            results.append(replace(made, cell=cell("add", contender, objects=objects)))
        return results

    comparison = compare(side("fs", 1.0), side("zeo", 2.0), across=True).named("fs", "zeo")
    assert sentence(comparison) == (
        "zeo against fs: slower at add (0.50×, 2 of 3 cells); no difference seen at add (1 of 3 "
        "cells)"
    )


def test_a_ratio_of_some_of_the_runs_says_how_many_are_left_out() -> None:
    base = [measured(cell("add", "fs"), *[[1.0]] * 10), measured(cell("hot", "fs"), *[[1.0]] * 10)]
    new = [measured(cell("add", "zeo"), *[[1.0]] * 4), measured(cell("hot", "zeo"), *[[1.0]] * 10)]
    assert list(exceptions(compare(base, new, across=True).changes)) == [
        (
            "the ratios of zeo (add) leave out 6 of 14 runs: no run of the other side was "
            "made in turn with them"
        )
    ]
