"""Nothing is destroyed that nobody asked for."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from zodbshootout.arguments import UsageError
from zodbshootout.cli import Streams
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.layer import Sharing
from zodbshootout.options import Zap
from zodbshootout.zapping import to_be_zapped

A, B = (
    Contender(name, object(), {"storage.path": f"var/{name}.fs", "storage.quota": "5"})
    for name in "ab"
)
MEMORY = Contender("memory", object(), {}, observed_sharing=Sharing.VOLATILE)


def refuse_to_ask(question: str) -> bool:
    raise AssertionError(question)


def test_without_the_option_nothing_is_asked_and_nothing_destroyed() -> None:
    assert to_be_zapped(Zap(), [A, B], refuse_to_ask) == frozenset()


def test_each_database_is_asked_for_and_told_apart() -> None:
    asked: list[str] = []

    def yes_to_the_second(question: str) -> bool:
        asked.append(question)
        return len(asked) == 2

    assert to_be_zapped(Zap(asked_for=True), [A, B, MEMORY], yes_to_the_second) == {"b"}
    assert asked == [
        "Destroy all data of a, this storage (var/a.fs)?",
        "Destroy all data of b, this storage (var/b.fs)?",
    ]


def test_force_asks_for_none_and_takes_all_that_last() -> None:
    found = to_be_zapped(Zap(asked_for=True, force=True), [A, B, MEMORY], refuse_to_ask)
    assert found == {"a", "b"}


def test_names_ask_for_none_and_take_those() -> None:
    assert to_be_zapped(Zap(asked_for=True, names=["b"]), [A, B], refuse_to_ask) == {"b"}


def test_a_name_that_is_none_destroys_nothing() -> None:
    with pytest.raises(UsageError, match="--zap: no contender 'c'; there are a, b"):
        to_be_zapped(Zap(asked_for=True, names=["a", "c"]), [A, B], refuse_to_ask)


@pytest.mark.parametrize("answer", ["", "\n", " \n", "n\n", "no\n", "yeah\n", "y es\n", "ja\n"])
def test_trap_11_anything_but_yes_is_a_no(answer: str) -> None:
    assert not asked_with(answer)


@pytest.mark.parametrize("answer", ["y\n", "Y\n", "yes\n", "YES\n", " y \n", "yes"])
def test_an_explicit_yes_is_a_yes(answer: str) -> None:
    assert asked_with(answer)


def asked_with(answer: str) -> bool:
    console = Console(file=io.StringIO())
    return Streams(console, console, io.StringIO(answer)).ask("Destroy all data of a?")
