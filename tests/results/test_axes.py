"""The axes along which results differ: values, order, and what results have in common."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.results.of_releases import IN_ORDER, INSTALLED, all_releases, in_release, variant_in
from tests.runs import cell, measured
from zodbshootout.model.parameters import RATE, SIZE
from zodbshootout.model.titles import Release, Value
from zodbshootout.results.axes import (
    CONTENDERS,
    ENVIRONMENTS,
    RTT,
    Axis,
    ParameterAxis,
    ReleaseAxis,
    along,
    at_distances,
    axes_of,
    families,
)
from zodbshootout.results.cell import cell_of
from zodbshootout.results.names import long_name
from zodbshootout.results.result import CellResult

CACHE = Axis("cache")


def of(variant: dict[str, Value], rtt: float | None = None, name: str = "zeo") -> CellResult:
    return measured(cell("add", name, variant, rtt=rtt), [1.0])


@pytest.mark.parametrize(
    ("variant", "rtt", "title"),
    [
        ({}, None, "zeo"),
        ({"cache": "10MB"}, 0.0005, "zeo [cache=10MB, 0.5ms]"),
        ({}, 0.0, "zeo [0]"),
        ({"release": Release("relstorage", "4.0.0")}, None, "zeo@relstorage==4.0.0"),
        ({"release": Release("relstorage", commit="v4")}, None, "zeo@relstorage@v4"),
        ({"environment": "zeo==5+zodb<6"}, None, "zeo@zeo==5+zodb<6"),
    ],
)
def test_a_variant_is_the_same_after_its_metadata_and_its_title_names_files(
    variant: dict[str, Value], rtt: float | None, title: str
) -> None:
    one = of(variant, rtt).cell
    again = cell_of(one.metadata())
    assert again == one
    assert hash(again) == hash(one)
    assert again.title == title
    assert long_name(one).startswith(f"{title}: add ")
    assert one != of({**variant, "other": "1"}, rtt).cell


@pytest.mark.parametrize(
    ("text", "number"),
    [("3", 3), ("0.5", 0.5), ("10MB", 10), ("512kb", 0.5), ("1g", 1024), ("fast", None)],
)
def test_a_definition_has_a_position_if_it_is_a_number_or_a_size(
    text: str, number: float | None
) -> None:
    assert CACHE.place(of({"cache": text})) == number
    assert CACHE.unit([text]) == ("MB" if text[-1] in "bBg" else "")
    assert CACHE.place(of({})) is None


def test_results_are_grouped_by_all_else_in_the_order_of_the_axis() -> None:
    swept = [
        measured(cell("add", name, rate=rate, object_size=size), [1.0])
        for size in (300, 128) for name in "ab" for rate in (20.0, 0.0, 5.0)
    ]  # fmt: skip
    rate, size = ParameterAxis("rate", RATE), ParameterAxis("size", SIZE)
    groups = [[rate.of(one) for one in group] for group in along(swept, rate)]
    assert groups == [[5.0, 20.0]] * 4  # without a rate, a result is not on the axis
    assert [[size.of(one) for one in group] for group in along(swept, size)] == [[128, 300]] * 6
    assert [axis.key for axis in axes_of(swept)] == ["object_size_bytes", "rate"]


def test_definitions_keep_the_order_in_which_they_were_given() -> None:
    results = [of({"cache": size, "workers": n}) for size in ("10MB", "1MB") for n in ("1", "2")]
    assert CACHE.ordered(map(CACHE.of, results)) == ["10MB", "1MB"]
    assert axes_of(results) == [CACHE, Axis("workers")]
    assert {text: len(own) for text, own in CACHE.divided(results).items()} == {"10MB": 2, "1MB": 2}
    assert [one.cell.title for one in CACHE.divided(results)["1MB"]] == [
        "zeo [workers=1]", "zeo [workers=2]",
    ]  # fmt: skip


def test_releases_are_in_order_with_the_installed_one_and_commits_last() -> None:
    commit = of({"release": Release("relstorage", commit="9.0")}, name="pg")
    results = [commit, *reversed(all_releases())]
    (axis,) = axes_of(results)
    assert axis == ReleaseAxis("release", "relstorage")
    (family,) = families(results)
    assert (family.title, [*map(family.text, family.values)]) == ("pg", [*IN_ORDER, "9.0"])
    assert axis.place(results[0]) is None
    other = replace(commit, cell=cell("add", "pg", {"release": Release("zodb", "6.0")}))
    assert axis.of(other) is None


def test_environments_are_those_of_releases_and_others_and_what_is_installed() -> None:
    results = [in_release(INSTALLED), in_release("4.0.0"), of({"environment": "pypy"}, name="pg")]
    divided = ENVIRONMENTS.divided(results)
    assert list(divided) == ["installed", "relstorage==4.0.0", "pypy"]
    assert {one.cell.column for own in divided.values() for one in own} == {"pg"}
    assert list(CONTENDERS.divided(results)) == ["pg", "pg@relstorage==4.0.0", "pg@pypy"]


def test_what_has_no_distance_is_at_each_distance() -> None:
    results = [of({}, rtt) for rtt in (0.002, 0.0)] + [measured(cell("add", "fs"), [1.0])]
    assert [(one.cell.contender, RTT.of(one)) for one in at_distances(results)] == [
        ("zeo", 0.002), ("zeo", 0.0), ("fs", 0.0), ("fs", 0.002),
    ]  # fmt: skip
    assert at_distances(results[2:]) == results[2:]
    assert variant_in(INSTALLED) == {}
