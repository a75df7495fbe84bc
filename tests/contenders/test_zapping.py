"""Nothing is destroyed that nobody asked for."""

from __future__ import annotations

import pytest

from zodbshootout.client.specification import Storage
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.selection import to_be_zapped
from zodbshootout.errors import UserError


def contender(name: str, obstacle: str | None = None, **settings: str) -> Contender:
    storage_settings = {f"storage.{key}": value for key, value in settings.items()}
    return Contender(name, Storage(), storage_settings, zap_obstacle=obstacle)


A, B = (contender(name, path=f"/var/{name}.fs", quota="5") for name in "ab")
ANOTHER_A = contender("again", path="/var/a.fs", cache_size="7")
READ_ONLY = contender("precious", "it is configured to be read only", path="/var/p.fs")
MEMORY = contender("memory", "this storage has its data in the memory of one process")


def refuse_to_ask(question: str) -> bool:
    raise AssertionError(question)


def test_each_database_is_asked_for_and_told_apart() -> None:
    asked: list[str] = []

    def yes_to_the_second(question: str) -> bool:
        asked.append(question)
        return len(asked) == 2

    assert to_be_zapped([A, B, MEMORY], [], yes_to_the_second) == {"b"}
    assert asked == [
        "Destroy all data of a, this storage (/var/a.fs)?",
        "Destroy all data of b, this storage (/var/b.fs)?",
    ]


def test_force_asks_for_none_and_takes_all_that_last() -> None:
    zapped = to_be_zapped([A, B, MEMORY], [], refuse_to_ask, force=True)
    assert zapped == {"a", "b"}


def test_names_ask_for_none_and_take_those() -> None:
    assert to_be_zapped([A, B], ["b"], refuse_to_ask) == {"b"}


def test_a_name_can_have_a_comma() -> None:
    both = contender("a,b", path="/var/ab.fs")
    assert to_be_zapped([A, B, both], ["a,b"], refuse_to_ask) == {"a,b"}
    assert to_be_zapped([A, B], ["a,b"], refuse_to_ask) == {"a", "b"}


def test_a_name_that_is_none_destroys_nothing() -> None:
    with pytest.raises(UserError, match="--zap: no contender 'c'; there are a, b"):
        to_be_zapped([A, B], ["a", "c"], refuse_to_ask)


def test_contenders_that_are_one_database_are_one_question() -> None:
    asked: list[str] = []

    def yes(question: str) -> bool:
        asked.append(question)
        return True

    assert to_be_zapped([A, B, ANOTHER_A], [], yes) == {"a", "b", "again"}
    assert asked[0] == "Destroy all data of a and again, this storage (/var/a.fs)?"
    assert len(asked) == 2
    no = to_be_zapped([A, ANOTHER_A], [], lambda question: False)
    assert no == frozenset()


def test_servers_of_the_same_database_name_are_told_apart() -> None:
    here, there = (contender(name, db="zodb", host=f"{name}.example.com") for name in ("x", "y"))
    asked: list[str] = []

    def no(question: str) -> bool:
        asked.append(question)
        return False

    to_be_zapped([here, there], [], no)
    assert ["x.example.com" in asked[0], "y.example.com" in asked[1]] == [True, True]


def test_a_uri_tells_which_database_it_is_where_nothing_else_does() -> None:
    asked: list[str] = []

    def no(question: str) -> bool:
        asked.append(question)
        return False

    unknown = Contender("other", Storage(), {"uri": "other://x"})
    known = Contender("file", Storage(), {"uri": "file:///var/a.fs", "storage.path": "/var/a.fs"})
    to_be_zapped([unknown, known, A], [], no)
    assert asked == [
        "Destroy all data of other, this storage (other://x)?",
        "Destroy all data of file and a, this storage (/var/a.fs)?",
    ]


def test_where_nobody_can_answer_it_is_told_what_to_type() -> None:
    with pytest.raises(UserError, match="no terminal to ask on; name the contenders, as in"):
        to_be_zapped([A, B, MEMORY], [], None)
    assert to_be_zapped([A, B], ["a"], None) == {"a"}


def test_what_is_read_only_is_neither_asked_for_nor_destroyed() -> None:
    assert to_be_zapped([READ_ONLY], [], refuse_to_ask) == frozenset()
    assert to_be_zapped([READ_ONLY], [], refuse_to_ask, force=True) == frozenset()


@pytest.mark.parametrize(
    ("words", "force", "message"),
    [
        (["precious"], False, "precious cannot be zapped: it is configured to"),
        (["memory"], False, "memory cannot be zapped: this storage has its"),
        (["a"], False, "a and again are one database; name both or"),
        ([], True, "a contender has that name; give it another one"),
    ],
)
def test_what_would_surprise_is_refused(words: list[str], force: bool, message: str) -> None:
    named_force = contender("force", path="/var/f.fs")
    contenders = [A, B, ANOTHER_A, READ_ONLY, MEMORY, *([named_force] if force else [])]
    with pytest.raises(UserError, match=message):
        to_be_zapped(contenders, words, refuse_to_ask, force=force)
