"""Environments are made by uv, or an error says why not.  No package is downloaded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.repositories import git, repository, wheel
from zodbshootout.config.pythons import Environment
from zodbshootout.contenders.making import CARRIED, Maker, carry_to
from zodbshootout.errors import UserError
from zodbshootout.guardian import Guardian
from zodbshootout.model.specification import Interpreter, variables_for

pytestmark = pytest.mark.servers


class Making:
    """A maker, and the messages that it prints."""

    def __init__(self, place: Path, guardian: Guardian) -> None:
        self.place = place
        self.messages: list[str] = []
        self.maker = Maker(guardian, place, self.messages.append)

    def interpreter(self, environment: Environment) -> Interpreter:
        return self.maker.interpreter(environment, self.place / "modules")

    def replacing(self, *requirements: str) -> Interpreter:
        """Make an environment in which the requirements replace installed packages."""
        return self.interpreter(Environment("it", "", requirements, keeps_installed=True))

    @property
    def installed(self) -> set[str]:
        """The distributions in the environments that were made."""
        directories = self.place.glob("environment-*/packages/*.dist-info")
        return {path.name.removesuffix(".dist-info") for path in directories}


@pytest.fixture
def making(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Making]:
    place = tmp_path / "run"
    place.mkdir()
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    with Guardian() as guardian:
        yield Making(place, guardian)


def output_of(interpreter: Interpreter, code: str) -> str:
    done = subprocess.run(
        [interpreter.executable, "-c", code],
        check=True, capture_output=True, text=True, env=variables_for(interpreter, os.environ),
    )  # fmt: skip
    return done.stdout.strip()


def test_the_installed_environment_is_the_python_of_the_command(making: Making) -> None:
    interpreter = making.interpreter(Environment("installed"))
    assert (interpreter.executable, interpreter.sees_ours) == (sys.executable, True)
    assert interpreter.modules == str(making.place / "modules")
    assert making.messages == []


def test_a_requirement_and_what_it_needs_come_before_the_installed_packages(
    making: Making, tmp_path: Path
) -> None:
    wheel(tmp_path, "shot", "1.0", "shot", "number = 1", needs="shtab<1")
    wheel(tmp_path, "shtab", "0.9", "shtab", "number = 0.9")
    interpreter = making.replacing("shot")
    code = "import shot, shtab, ZEO; print(shot.number, shtab.number)"
    assert output_of(interpreter, code) == "1 0.9"
    assert making.messages == ["making environment it: shot, all else as installed"]


def test_installed_packages_that_fit_are_not_replaced(making: Making, tmp_path: Path) -> None:
    wheel(tmp_path, "shot", "1.0", "shot", "", needs="ZODB>=6")
    wheel(tmp_path, "ZODB", "999", "ZODB", "")
    making.replacing("shot", "ZConfig")
    assert making.installed == {"shot-1.0"}


def test_an_environment_with_what_is_installed_already_is_empty(making: Making) -> None:
    interpreter = making.replacing(f"ZConfig=={version('ZConfig')}")
    assert making.installed == set()
    output_of(interpreter, "import ZConfig")


def test_a_wheel_is_installed_even_if_its_version_is_installed_already(
    making: Making, tmp_path: Path
) -> None:
    for number in (2, 3):
        path = wheel(tmp_path, "ZConfig", version("ZConfig"), "slowed", f"number = {number}")
        assert output_of(making.replacing(str(path)), "import slowed; print(slowed.number)") == str(
            number
        )


def test_a_section_has_an_environment_with_only_its_packages(
    making: Making, tmp_path: Path
) -> None:
    wheel(tmp_path, "ZODB", "5.0", "ZODB", "")
    interpreter = making.interpreter(Environment("old", sys.executable, ("ZODB==5.0",)))
    assert (interpreter.sees_ours, interpreter.executable == sys.executable) == (False, False)
    code = "import ZODB, importlib.util as u; print(u.find_spec('persistent'))"
    assert output_of(interpreter, code) == "None"


@pytest.mark.parametrize(
    "environment",
    [
        Environment("gone", requirements=("no-such-thing==1",), keeps_installed=True),
        Environment("gone", requirements=("no-such-thing==1",)),
        Environment("gone", requirements=("/no-such-thing/x-1-py3-none-any.whl",)),
    ],
)
def test_a_missing_requirement_is_reported_in_the_words_of_uv(
    making: Making, environment: Environment
) -> None:
    with pytest.raises(UserError) as caught:
        making.interpreter(environment)
    message = str(caught.value)
    assert message.startswith("environment gone cannot be made: error: ")
    assert "no-such-thing" in message
    assert "\n" not in message


def test_without_uv_the_extra_is_named(making: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError) as caught:
        making.replacing("shot")
    assert str(caught.value).endswith(
        "but is not installed; install it: pip install 'zodbshootout[against]'"
    )


def test_uv_may_be_a_program_without_the_package(
    making: Making, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from uv import find_uv_bin

    wheel(tmp_path, "shot", "1.0", "shot", "")
    monkeypatch.setenv("PATH", str(Path(find_uv_bin()).parent))
    monkeypatch.setitem(sys.modules, "uv", None)
    making.replacing("shot")
    assert making.installed == {"shot-1.0"}


def program(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_python_that_is_missing_too_old_broken_or_without_zodb_is_refused(
    making: Making, tmp_path: Path
) -> None:
    old = '{"version": [3, 8, 1], "implementation": "CPython", "flaw": ""}'
    bare = '{"version": [3, 9, 1], "implementation": "CPython", "flaw": "ImportError: ZODB"}'
    cases = {
        str(tmp_path / "gone"): "environment a: there is no Python ",
        program(tmp_path / "old", f"echo '{old}'"): "is Python 3.8.1; clients need 3.9 or later",
        program(tmp_path / "none", "echo wrong >&2; exit 3"): "cannot run Python ",
        program(tmp_path / "mute", "true"): "cannot run Python ",
        program(tmp_path / "bare", f"echo '{bare}'"): "has no working ZODB: ImportError: ZODB",
    }
    for python, message in cases.items():
        with pytest.raises(UserError) as caught:
            making.interpreter(Environment("a", python))
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_checkout_is_built_as_it_is_now_and_stays_as_it_is(
    tmp_path: Path, making: Making
) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'back'\nbackend-path = ['.']\n"
    )
    source = tmp_path / "wheels"
    source.mkdir()
    (checkout / "back.py").write_text(
        "import pathlib, shutil\n"
        f"made, = pathlib.Path({str(source)!r}).iterdir()\n"
        "def build_wheel(directory, *_, **__):\n"
        "    pathlib.Path('built').touch()\n"
        "    shutil.copy(made, directory)\n    return made.name\n"
    )
    before = sorted(checkout.iterdir())
    for number in ("5", "6"):
        wheel(source, "shot", "1.0", "shot", f"number = {number}")
        interpreter = making.replacing(str(checkout))
        assert output_of(interpreter, "import shot; print(shot.number)") == number
    assert [path for path in sorted(checkout.iterdir()) if path.name != "__pycache__"] == before


def test_a_commit_is_built_with_its_tags_and_its_checkout_stays_as_it_is(
    tmp_path: Path, making: Making
) -> None:
    checkout = tmp_path / "checkout"
    repository(checkout, "number = 1", "number = 2", "number = 3")
    (checkout / "shot.py").write_text("number = 4")
    url = f"git+{checkout.as_uri()}@{git(checkout, 'rev-parse', 'HEAD~1')}"
    assert output_of(making.replacing(url), "import shot; print(shot.number)") == "2"
    (made,) = making.installed
    assert made.startswith("shot-1.post1+g")
    assert (checkout / "shot.py").read_text() == "number = 4"
    assert git(checkout, "status", "--porcelain") == "M shot.py"
    assert git(checkout, "worktree", "list").count("\n") == 0


def test_only_the_modules_that_a_worker_needs_are_carried(tmp_path: Path) -> None:
    carry_to(tmp_path / "modules")
    (information,) = (tmp_path / "modules").glob("pyperf-*.dist-info")
    assert "pyperf.hook" in (information / "entry_points.txt").read_text()
    home = tmp_path / "modules" / "zodbshootout"
    assert {path.name for path in home.iterdir()} == {name.partition("/")[0] for name in CARRIED}
    carried = {f"api/{path.name}" for path in (home / "api").iterdir()}
    assert carried == {name for name in CARRIED if name.startswith("api/")}
    assert not list((tmp_path / "modules").rglob("__pycache__"))
