"""What words stand for which environments."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from zodbshootout.environments.environment import BadWord, Environment, of_words


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_requirement_comes_upon_what_is_installed() -> None:
    assert of_words(["RelStorage==4.2.0"]) == [
        Environment("relstorage==4.2.0", requirements=("RelStorage==4.2.0",), upon_ours=True)
    ]


def test_a_package_from_elsewhere_is_named_without_its_place() -> None:
    (found,) = of_words(["RelStorage @ git+https://example.org/RelStorage@main"])
    assert found.name == "relstorage"


def test_no_password_is_in_a_name() -> None:
    (found,) = of_words(["git+https://me:token@example.org/zodb/relstorage"])
    assert found.name == "relstorage"


def test_a_checkout_and_a_wheel_are_told_by_their_paths(tmp_path: Path) -> None:
    (tmp_path / "relstorage-fast").mkdir()
    (tmp_path / "relstorage-fast" / "pyproject.toml").touch()
    wheel = tmp_path / "RelStorage-4.2.0-py3-none-any.whl"
    wheel.touch()
    checkout, archive = of_words(["relstorage-fast", f"./{wheel.name}"])
    assert checkout == Environment(
        "relstorage-fast", requirements=(str(tmp_path / "relstorage-fast"),), upon_ours=True
    )
    assert archive.requirements == (str(wheel),)


def test_a_python_and_a_virtual_environment_are_used_as_they_are(tmp_path: Path) -> None:
    assert of_words([sys.executable])[0].python == sys.executable
    inside = tmp_path / "old" / "bin" / "python"
    inside.parent.mkdir(parents=True)
    (tmp_path / "old" / "pyvenv.cfg").touch()
    inside.symlink_to(sys.executable)
    other = tmp_path / "x" / "old"
    other.mkdir(parents=True)
    (other / "setup.py").touch()
    by_directory, by_checkout = of_words(["old", "x/old"])
    assert by_directory == Environment("old", str(inside)) == of_words(["old/bin/python"])[0]
    assert by_checkout.name == "old-2"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no/such"], "there is no no/such"),
        (["a b"], "'a b' is no requirement such as RelStorage==4.2.0, and there is no such file"),
        (["x==1", "x==1"], "'x==1' is there twice"),
        (["."], "'.' is neither a checkout, with pyproject.toml or setup.py, nor a virtual"),
    ],
)
def test_what_is_none_of_these(words: list[str], message: str) -> None:
    with pytest.raises(BadWord) as caught:
        of_words(words)
    assert str(caught.value).startswith(message)


def test_what_an_environment_is_made_of() -> None:
    assert Environment("a").made_of == "as installed"
    assert Environment("a", "pypy3", ("ZODB", "ZEO")).made_of == "pypy3, ZODB, ZEO"
    (found,) = of_words(["RelStorage==4.2.0"])
    assert found.made_of == "RelStorage==4.2.0, all else as installed"
