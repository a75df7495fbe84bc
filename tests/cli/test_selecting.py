"""Which contenders a run is about."""

from __future__ import annotations

import pytest

from tests.runs import contender
from zodbshootout.cli.options import parse
from zodbshootout.cli.selecting import check_baseline, may_write, selected, shared_databases
from zodbshootout.errors import UserError

ALL = [contender("a"), contender("b"), contender("c,d"), contender("again", "/var/a.fs")]


def chosen(*words: str) -> list[str]:
    return [each.name for each in selected(ALL, parse(words))]


def test_all_are_measured_unless_some_are_named() -> None:
    assert chosen() == ["a", "b", "c,d", "again"]
    assert chosen("--only", "b,A") == ["a", "b"]
    assert chosen("--only", "b", "--only", "c,d") == ["b", "c,d"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "a,x"], "--only: no contender 'x'; there are a, b, c,d, again"),
        (["--only", "a,"], "--only: no contender ''"),
    ],
)
def test_names_that_are_none(words: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        chosen(*words)


def test_a_baseline_is_one_of_those_that_are_measured() -> None:
    options = parse(["--only", "a", "--baseline", "b"])
    with pytest.raises(UserError, match="--baseline: 'b' is not measured; there are a"):
        check_baseline([each for each in ALL if each.name == "a"], options)


def test_a_file_without_contenders() -> None:
    with pytest.raises(UserError, match="no contender; each is a section <zodb NAME>"):
        selected([], parse([]))


def test_who_may_be_written_to_in_any_case() -> None:
    assert may_write(ALL, parse(["--may-write", "a", "--may-write", "c,d"])) == ["a", "c,d"]
    with pytest.raises(UserError, match="--may-write: no contender 'x'"):
        may_write(ALL, parse(["--may-write", "x"]))


def test_contenders_of_one_database_are_told() -> None:
    assert shared_databases(ALL) == ["a and again are one database: /var/a.fs"]
    assert shared_databases([*ALL[:3], contender("memory", "/var/a.fs")]) == []
