"""Options that name contenders, and contenders that share a database."""

from __future__ import annotations

from dataclasses import replace

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
def test_a_name_that_no_contender_has_is_refused(word: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        named("--only", [word], NAMES)


def test_the_baseline_must_be_a_measured_contender() -> None:
    plain = contender("a")
    assert baseline_among([plain], None) is None
    small = replace(plain, variant={"cache": "1MB"})
    assert baseline_among([small], "A [cache=1mb]") == "a [cache=1MB]"
    assert baseline_among([replace(plain, rtt=0.0), replace(plain, rtt=0.002)], "A") == "a"
    with pytest.raises(UserError, match="--baseline: 'b' is not measured; there are a"):
        baseline_among([plain], "b")


def test_contenders_that_share_a_database_are_reported() -> None:
    assert shared_databases(ALL) == ["a and again use the same database: /var/a.fs"]
    assert shared_databases([*ALL[:3], contender("memory", "/var/a.fs")]) == []
