"""The environments that the values of ``--against`` stand for."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from zodbshootout.config.pythons import (
    MAX_NAME,
    Environment,
    environment_of_section,
    environments_of_words,
    is_direct,
)
from zodbshootout.errors import UserError
from zodbshootout.model.titles import Release

LONG = "RelStorage>=4" + "".join(f",!=4.{n}" for n in range(60))
"""A requirement that is longer than the name of a file can be."""


@pytest.fixture(autouse=True)
def _working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_requirement_is_added_to_the_installed_packages() -> None:
    (environment,) = environments_of_words(["RelStorage[postgresql]==4.2.0"])
    assert environment.requirements == ("RelStorage[postgresql]==4.2.0",)
    assert (environment.name, environment.keeps_installed) == ("relstorage==4.2.0", True)
    assert environment.variant == {"release": Release("relstorage", "4.2.0")}


@pytest.mark.parametrize("word", ["ZODB<6", "ZODB==5.*", "ZODB==5.8 ZEO==5.4", "ZODB>=5,==5.8"])
def test_what_pins_no_single_package_is_no_release(word: str) -> None:
    (environment,) = environments_of_words([word])
    assert environment.variant == {"environment": environment.name}


def test_of_two_environments_of_one_name_only_the_first_is_that_release() -> None:
    first, second = environments_of_words(["ZODB==5.8", "ZODB[test]==5.8"])
    assert str(first.variant["release"]) == first.name == "zodb==5.8"
    assert second.variant == {"environment": "zodb==5.8-2"}


def test_a_package_from_a_url_is_named_without_the_url() -> None:
    (environment,) = environments_of_words(["RelStorage @ git+https://example.org/RelStorage@main"])
    assert environment.name == "relstorage"


@pytest.mark.parametrize(
    ("word", "requirements", "name"),
    [
        ("ZEO==5.4.1 ZODB<6", ("ZEO==5.4.1", "ZODB<6"), "zeo==5.4.1+zodb<6"),
        ("  ZEO >= 5,  < 6 uvloop", ("ZEO >= 5, < 6", "uvloop"), "zeo<6>=5+uvloop"),
        (
            "ZEO[uvloop]>=5 ; python_version >= '3.9' ZODB",
            ("ZEO[uvloop]>=5 ; python_version >= '3.9'", "ZODB"),
            "zeo>=5+zodb",
        ),
        (
            "ZODB<6 ZEO @ git+https://me:token@example.org/ZEO@main uvloop",
            ("ZODB<6", "ZEO @ git+https://me:token@example.org/ZEO@main", "uvloop"),
            "zodb<6+zeo+uvloop",
        ),
        (
            "https://example.org/ZEO.zip ; python_version >= '3.9' ZODB<6",
            ("https://example.org/ZEO.zip ; python_version >= '3.9'", "ZODB<6"),
            "zeo.zip+zodb<6",
        ),
        ("ZEO >= 5", ("ZEO >= 5",), "zeo>=5"),
        ("ZEO @ https://example.org/5", ("ZEO @ https://example.org/5",), "zeo"),
        ("3to2", ("3to2",), "3to2"),
    ],
)
def test_a_value_may_have_several_requirements(
    word: str, requirements: tuple[str, ...], name: str
) -> None:
    assert environments_of_words([word]) == [
        Environment(name, requirements=requirements, keeps_installed=True)
    ]


@pytest.mark.parametrize("login", ["me:token", "token"])
def test_no_password_is_shown(login: str) -> None:
    (environment,) = environments_of_words([f"git+https://{login}@example.org/zodb/relstorage"])
    assert environment.name == "relstorage"
    assert "token" not in environment.description


def test_the_user_of_a_repository_is_shown() -> None:
    url = f"git+ssh://git@example.org/zodb/relstorage@{'0' * 40}"
    (environment,) = environments_of_words([url])
    assert environment.requirements == (url,)
    assert url in environment.description


def releases(word: str) -> list[Environment]:
    """Return the environments of some releases for a requirement that admits several."""
    return [
        Environment(f"RelStorage=={one}", "", (f"RelStorage=={one}",), True, one_of_several=True)
        for one in ("4.1.0", "4.2.0")
        if ">=" in word
    ]


@pytest.mark.parametrize(
    ("words", "names"),
    [(["RelStorage==4.2.0", "RelStorage>=4"], ["4.2.0", "4.1.0"]),
     (["RelStorage>=4", "RelStorage==4.2.0"], ["4.1.0", "4.2.0"]),
     (["relstorage==4.2", "RelStorage>=4"], ["4.2", "4.1.0"]),
     (["RelStorage>=4", "relStorage == 4.2"], ["4.1.0", "4.2.0"]),
     (["RelStorage>=4", "RelStorage>=4.0"], ["4.1.0", "4.2.0"])],
)  # fmt: skip
def test_a_release_that_is_also_one_of_several_is_taken_once(
    words: list[str], names: list[str]
) -> None:
    environments = environments_of_words(words, releases)
    assert [one.name for one in environments] == [f"relstorage=={name}" for name in names]


def test_every_environment_has_a_unique_name(tmp_path: Path) -> None:
    for name in ("a-2", "a", "x/a"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "setup.py").touch()
    assert [environment.name for environment in environments_of_words(["a-2", "a", "x/a"])] == [
        "a-2",
        "a",
        "a-3",
    ]
    assert environments_of_words(["RelStorage>=4,<5"])[0].name == "relstorage<5>=4"


def test_a_change_in_a_checkout_makes_another_environment(tmp_path: Path) -> None:
    (tmp_path / "setup.py").touch()
    (tmp_path / ".venv").mkdir()
    before = Environment("a", requirements=(str(tmp_path),)).contents
    (tmp_path / ".venv" / "more").touch()
    (tmp_path / "loop").symlink_to(".")
    assert Environment("a", requirements=(str(tmp_path),)).contents == before
    (tmp_path / "module.py").touch()
    assert Environment("a", requirements=(str(tmp_path),)).contents != before


def test_a_requirement_and_a_url_can_be_longer_than_the_name_of_a_file() -> None:
    url = f"https://example.org/{'x' * 300}.whl"
    environments = environments_of_words([LONG, url, f"{url}?"])
    assert [one.requirements for one in environments] == [(LONG,), (url,), (f"{url}?",)]
    assert len({one.name for one in environments}) == 3
    assert max(len(one.name) for one in environments) <= MAX_NAME + 2


def test_a_requirement_of_a_section_can_be_longer_than_the_name_of_a_file() -> None:
    section = SimpleNamespace(python=None, requirements=[LONG], getSectionName=lambda: "new")
    assert environment_of_section(section).requirements == (LONG,)


def test_a_checkout_and_a_wheel_are_recognized_by_their_paths(tmp_path: Path) -> None:
    (tmp_path / "relstorage-fast").mkdir()
    (tmp_path / "relstorage-fast" / "pyproject.toml").touch()
    wheel = tmp_path / "RelStorage-4.2.0-py3-none-any.whl"
    wheel.touch()
    checkout, archive = environments_of_words(["relstorage-fast", f"./{wheel.name}"])
    assert checkout == Environment(
        "relstorage-fast", requirements=(str(tmp_path / "relstorage-fast"),), keeps_installed=True
    )
    assert archive.requirements == (str(wheel),)


def test_a_python_and_a_virtual_environment_are_used_as_they_are(tmp_path: Path) -> None:
    assert environments_of_words([sys.executable])[0].python == sys.executable
    inside = tmp_path / "old" / "bin" / "python"
    inside.parent.mkdir(parents=True)
    (tmp_path / "old" / "pyvenv.cfg").touch()
    inside.symlink_to(sys.executable)
    other = tmp_path / "x" / "old"
    other.mkdir(parents=True)
    (other / "setup.py").touch()
    by_directory, by_checkout = environments_of_words(["old", "x/old"])
    assert (
        by_directory
        == Environment("old", str(inside))
        == environments_of_words(["old/bin/python"])[0]
    )
    assert by_checkout.name == "old-2"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no/such"], "no such file or directory: no/such"),
        (["a b!"], "'a b!' is neither a list of requirements such as 'ZEO==5.4.1 ZODB<6' nor an"),
        (["RelStorage 4.2.0"], "'RelStorage 4.2.0' is neither a list of requirements such as"),
        ([" "], "' ' is neither a list"),
        (["ZODB<6 no/such"], "no such file or directory: ZODB<6 no/such"),
        (["ZODB<! git+https://token@x/y"], "'ZODB<! git+https://x/y' is neither"),
        (["x==1", "x==1"], "'x==1' names the same environment as another value"),
        (["x-y==1", "X_Y==1.0"], "'X_Y==1.0' names the same environment as another value"),
        (["pypy3.99"], "there is no Python pypy3.99"),
        (["."], "'.' is neither a checkout, with pyproject.toml or setup.py, nor a virtual"),
    ],
)
def test_an_invalid_environment_is_refused(words: list[str], message: str) -> None:
    with pytest.raises(UserError) as caught:
        environments_of_words(words)
    assert str(caught.value).startswith(f"--against: {message}")


@pytest.mark.parametrize(
    ("requirement", "direct"),
    [
        ("RelStorage==4.2.0", False),
        ("RelStorage[postgresql]>=4 ; python_version >= '3.10'", False),
        ("/src/RelStorage[mysql]", True),
        ("RelStorage @ git+https://example.org/RelStorage", True),
        ("git+https://example.org/RelStorage?at==main", True),
    ],
)
def test_a_direct_requirement_is_a_path_or_has_a_url(requirement: str, direct: bool) -> None:
    assert is_direct(requirement) is direct


def test_an_environment_is_described_by_its_contents() -> None:
    assert Environment("a").description == "as installed"
    assert Environment("a", "pypy3", ("ZODB", "ZEO")).description == "pypy3, ZODB, ZEO"
    (environment,) = environments_of_words(["RelStorage==4.2.0"])
    assert environment.description == "RelStorage==4.2.0, all else as installed"


def test_a_url_of_a_checkout_is_its_path(tmp_path: Path) -> None:
    (checkout := tmp_path / "a b").mkdir()
    url = checkout.as_uri()
    named, bare, gone = environments_of_words([f"ZEO[x] @ {url}", url, f"y @ {url}/gone"])
    assert (named.name, named.requirements) == ("zeo", (f"{checkout}[x]",))
    assert bare.requirements == (str(checkout),)
    assert gone.requirements == (f"{checkout}/gone",)
