"""The releases of a contender in order, what each is compared with, and the steps among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from tests.results.of_releases import IN_ORDER, INSTALLED, RELEASES, all_releases, in_release
from tests.runs import cell, failed, unsupported
from zodbshootout.model.titles import Release
from zodbshootout.results.axes import Family, families
from zodbshootout.results.result import CellResult
from zodbshootout.results.series import Step, steps_of
from zodbshootout.results.sides import originals_of, pairs_to_compare


def significant(steps: Sequence[Step]) -> list[tuple[str, str]]:
    return [(step.before, step.since) for step in steps if step.change.is_significant]


def only_step(results: Sequence[CellResult]) -> Step:
    (step,) = [step for step in steps_of(results) if step.change.is_significant]
    return step


def texts(series: Family) -> list[str]:
    return list(map(series.text, series.values))


def commit(name: str) -> CellResult:
    return CellResult(cell("update", "pg", {"release": Release("relstorage", commit=name)}))


def test_releases_are_ordered_by_version_with_the_installed_one_among_them() -> None:
    (series,) = families(all_releases())
    assert (series.title, series.axis.title) == ("pg", "relstorage")
    assert texts(series) == IN_ORDER
    assert series.text("pg") == INSTALLED


def test_commits_follow_releases_in_their_own_order() -> None:
    commits = [commit(name) for name in ("v5.0", "1a2b3c4")]
    (series,) = families([*all_releases(), *commits])
    assert texts(series) == [*IN_ORDER, "v5.0", "1a2b3c4"]


def test_what_is_installed_is_in_no_series_of_commits() -> None:
    commits = [commit(name) for name in "cab"]
    (series,) = families([in_release(INSTALLED), *commits])
    assert texts(series) == ["c", "a", "b"]


def test_two_releases_and_other_environments_are_no_series() -> None:
    others = ("zeo==5.4.1+zodb<6", "pypy3", "before")
    results = [CellResult(cell("update", "pg", {"environment": name})) for name in others]
    alone = in_release("4.1.0", contender="other")
    assert families([in_release(INSTALLED), in_release("4.0.0"), *results, alone]) == []
    assert originals_of([in_release(INSTALLED), in_release("4.0.0")]) == {
        "pg": "", "pg@relstorage==4.0.0": "pg",
    }  # fmt: skip


def test_releases_are_compared_with_the_oldest_that_works() -> None:
    results = all_releases()
    oldest, *_ = results[1:]
    results[1] = unsupported(oldest.cell, "no wheel")
    originals = originals_of(results)
    assert originals == {
        "pg": "pg@relstorage==4.1.0",
        "pg@relstorage==4.1.0": "",
        "pg@relstorage==4.2.0": "pg@relstorage==4.1.0",
        "pg@relstorage==4.10.0": "pg@relstorage==4.1.0",
    }
    assert {base for base, _ in pairs_to_compare(originals)} == {"pg@relstorage==4.1.0"}
    assert {base for base, _ in pairs_to_compare(originals, "pg")} == {"pg"}


def test_another_contender_is_compared_with_the_oldest_release_of_the_first() -> None:
    others = [in_release(release, contender="my") for release in IN_ORDER]
    originals = originals_of([*all_releases(), *others])
    pairs = pairs_to_compare(originals)
    assert ("pg@relstorage==4.0.0", "my@relstorage==4.0.0") in pairs
    assert ("my@relstorage==4.0.0", "my") in pairs
    assert len(pairs) == len(originals) - 1


def test_a_step_of_5_percent_is_found_at_its_release() -> None:
    step = only_step(all_releases(v4_2_0=0.105))
    assert (step.before, step.since, step.between) == ("4.1.0", "4.2.0", [])
    assert step.change.ratio.value == pytest.approx(1 / 1.05, rel=0.01)
    low, high = step.change.ratio.interval
    assert low < 1 / 1.05 < high


def test_the_installed_release_may_be_the_step() -> None:
    assert significant(steps_of(all_releases(v4_3_0=0.09))) == [("4.2.0", "4.3.0")]


def test_equal_releases_have_no_step() -> None:
    steps = steps_of(all_releases())
    assert [(step.before, step.since) for step in steps] == [*pairwise(IN_ORDER)]
    assert significant(steps) == []


@pytest.mark.parametrize("absent", [unsupported, failed])
def test_a_release_without_a_figure_is_passed_over_and_named(absent: Any) -> None:
    results = all_releases(v4_1_0=0.2)
    results[2] = absent(results[2].cell, "a reason")
    step = only_step(results)
    assert (step.before, step.since, step.between) == ("4.0.0", "4.2.0", ["4.1.0"])


def test_the_installed_release_is_not_between_itself_and_the_next_if_it_is_named_as_well() -> None:
    results = all_releases(v4_10_0=0.2)
    named = cell("update", "pg", {"release": Release("relstorage", INSTALLED)})
    results.append(replace(in_release(INSTALLED), cell=named))
    step = only_step(results)
    assert (step.before, step.since, step.between) == (INSTALLED, "4.10.0", [])


def test_releases_that_were_measured_at_other_times_have_no_steps() -> None:
    results = [in_release(INSTALLED, 0.2, rounds=range(20, 30)), *all_releases()[1:]]
    assert ("4.2.0", INSTALLED) not in [(step.before, step.since) for step in steps_of(results)]


def test_the_false_discovery_rate_is_that_over_all_releases_and_benchmarks() -> None:
    results = all_releases(v4_2_0=0.1013)
    others = [
        in_release(release, benchmark=f"other{number}")
        for release in IN_ORDER
        for number in range(40)
    ]
    assert significant(steps_of(results)) == [("4.1.0", "4.2.0")]
    among = steps_of([*results, *others])
    assert len(among) == 41 * len(steps_of(results))
    assert significant(among) == []


def test_a_round_trip_more_is_a_step() -> None:
    counts = {release: 12 if release in RELEASES[:2] else 13 for release in IN_ORDER}
    results = [in_release(release, trips=f"{number}") for release, number in counts.items()]
    step = only_step(results)
    assert step.series.quantity.name == "trips"
    assert (step.since, step.change.base.value, step.change.new.value) == ("4.2.0", 12, 13)
