"""The choice of the databases that a run may zap."""

from __future__ import annotations

import pytest

from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.selection import to_be_zapped
from zodbshootout.errors import UserError
from zodbshootout.model.settings import Path
from zodbshootout.model.specification import Storage
from zodbshootout.model.storage_facts import Sharing, StorageInfo


def contender(name: str, obstacle: str | None = None, **settings: str) -> Contender:
    storage_settings: dict[Path, str] = {("storage", key): value for key, value in settings.items()}
    return Contender(name, Storage(), storage_settings, StorageInfo(zap_obstacle=obstacle))


A, B = (contender(name, path=f"/var/{name}.fs", quota="5") for name in "ab")
ANOTHER_A = contender("again", path="/var/a.fs", cache_size="7")
READ_ONLY = contender("precious", "it is configured to be read-only", path="/var/p.fs")
MEMORY = contender("memory").opened(StorageInfo(sharing=Sharing.VOLATILE))


def fail_if_asked(question: str) -> bool:
    raise AssertionError(question)


def test_a_question_is_asked_for_each_database_with_its_path() -> None:
    asked: list[str] = []

    def yes_to_the_second(question: str) -> bool:
        asked.append(question)
        return len(asked) == 2

    assert to_be_zapped([A, B, MEMORY], [], yes_to_the_second) == {"b"}
    assert asked == [
        "Destroy all data of a, this storage (/var/a.fs)?",
        "Destroy all data of b, this storage (/var/b.fs)?",
    ]


def test_force_asks_no_question_and_zaps_every_persistent_database() -> None:
    zapped = to_be_zapped([A, B, MEMORY], [], fail_if_asked, force=True)
    assert zapped == {"a", "b"}


def test_a_contender_that_could_not_be_opened_is_not_asked_about() -> None:
    assert to_be_zapped([A, B], [], lambda _: True, unavailable={"b": None}) == {"a"}
    assert to_be_zapped([A, B], [], fail_if_asked, force=True, unavailable=["b"]) == {"a"}


def test_named_contenders_are_zapped_without_a_question() -> None:
    assert to_be_zapped([A, B], ["b"], fail_if_asked) == {"b"}


def test_the_name_of_a_contender_can_contain_a_comma() -> None:
    both = contender("a,b", path="/var/ab.fs")
    assert to_be_zapped([A, B, both], ["a,b"], fail_if_asked) == {"a,b"}
    assert to_be_zapped([A, B], ["a,b"], fail_if_asked) == {"a", "b"}


def test_an_unknown_name_zaps_nothing() -> None:
    with pytest.raises(UserError, match="--zap: no contender 'c'; there are a, b"):
        to_be_zapped([A, B], ["a", "c"], fail_if_asked)


def test_contenders_that_share_a_database_share_one_question() -> None:
    asked: list[str] = []

    def yes(question: str) -> bool:
        asked.append(question)
        return True

    assert to_be_zapped([A, B, ANOTHER_A], [], yes) == {"a", "b", "again"}
    assert asked[0] == "Destroy all data of a and again, this storage (/var/a.fs)?"
    assert len(asked) == 2
    no = to_be_zapped([A, ANOTHER_A], [], lambda question: False)
    assert no == frozenset()


def test_databases_with_the_same_name_are_distinguished_by_their_hosts() -> None:
    here, there = (contender(name, db="zodb", host=f"{name}.example.com") for name in ("x", "y"))
    asked: list[str] = []

    def no(question: str) -> bool:
        asked.append(question)
        return False

    to_be_zapped([here, there], [], no)
    assert ["x.example.com" in asked[0], "y.example.com" in asked[1]] == [True, True]


def test_a_uri_identifies_a_database_if_no_other_setting_does() -> None:
    asked: list[str] = []

    def no(question: str) -> bool:
        asked.append(question)
        return False

    unknown = Contender("other", Storage(), {("uri",): "other://x"})
    known = Contender("file", Storage(), {("uri",): "file:///var/a.fs"})
    to_be_zapped([unknown, known, A], [], no)
    assert asked == [
        "Destroy all data of other, this storage (other://x)?",
        "Destroy all data of file and a, this storage (/var/a.fs)?",
    ]


def test_without_a_terminal_an_error_asks_for_the_names_of_contenders() -> None:
    with pytest.raises(UserError, match="there is no terminal; name the contenders, as in"):
        to_be_zapped([A, B, MEMORY], [], None)
    assert to_be_zapped([A, B], ["a"], None) == {"a"}


def test_a_read_only_database_is_neither_asked_about_nor_zapped() -> None:
    assert to_be_zapped([READ_ONLY], [], fail_if_asked) == frozenset()
    assert to_be_zapped([READ_ONLY], [], fail_if_asked, force=True) == frozenset()


@pytest.mark.parametrize(
    ("words", "force", "message"),
    [
        (["precious"], False, "precious cannot be zapped: it is configured to"),
        (["memory"], False, "memory cannot be zapped: this storage keeps its"),
        (["a"], False, "a and again use the same database; name both or"),
        ([], True, "a contender has that name; rename it"),
    ],
)
def test_an_impossible_or_ambiguous_zap_is_refused(
    words: list[str], force: bool, message: str
) -> None:
    named_force = contender("force", path="/var/f.fs")
    contenders = [A, B, ANOTHER_A, READ_ONLY, MEMORY, *([named_force] if force else [])]
    with pytest.raises(UserError, match=message):
        to_be_zapped(contenders, words, fail_if_asked, force=force)
