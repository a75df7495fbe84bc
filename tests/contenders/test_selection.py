"""Options name contenders; a baseline is one of those that are measured."""

from __future__ import annotations

import pytest

from tests.runs import contender
from zodbshootout.contenders.selection import baseline_among, named, shared_databases
from zodbshootout.errors import UserError

ALL = [contender("a"), contender("b"), contender("c,d"), contender("again", "/var/a.fs")]
NAMES = [one.name for one in ALL]


def test_commas_separate_names_unless_a_name_has_them() -> None:
    assert named("--only", [], NAMES) == []
    assert named("--only", ["b,a"], NAMES) == ["b", "a"]
    assert named("--may-write", ["b", "c,d", "b"], NAMES) == ["b", "c,d"]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("a,x", "--only: no contender 'x'; there are a, b, c,d, again"),
        ("a,", "--only: no contender ''"),
    ],
)
def test_names_that_are_none(word: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        named("--only", [word], NAMES)


def test_a_baseline_is_one_of_those_that_are_measured() -> None:
    assert baseline_among(["a"], None) is None
    assert baseline_among(["a [cache=1MB]"], "A [cache=1mb]") == "a [cache=1MB]"
    with pytest.raises(UserError, match="--baseline: 'b' is not measured; there are a"):
        baseline_among(["a"], "b")


def test_contenders_of_one_database_are_told() -> None:
    assert shared_databases(ALL) == ["a and again are one database: /var/a.fs"]
    assert shared_databases([*ALL[:3], contender("memory", "/var/a.fs")]) == []
