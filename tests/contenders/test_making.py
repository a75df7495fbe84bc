"""Environments are made once, or an error says why not.  No package is downloaded."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from zodbshootout.config.pythons import Environment
from zodbshootout.contenders.making import CARRIED, KEPT_DAYS, Maker, carry_to
from zodbshootout.errors import UserError
from zodbshootout.guardian import Guardian


class Making:
    """A maker with its own cache, and the messages that it prints."""

    def __init__(self, cache: Path, guardian: Guardian) -> None:
        self.messages: list[str] = []
        self.maker = Maker(guardian, self.messages.append, cache)

    def python(self, environment: Environment) -> str:
        return self.maker.interpreter(environment, Path("modules")).executable


@pytest.fixture
def making(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Making]:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # without uv
    with Guardian() as guardian:
        yield Making(tmp_path / "cache", guardian)


def wheel(directory: Path, name: str, version: str, module: str, text: str) -> Path:
    """Write a wheel with one module and return its path."""
    information = f"{name}-{version}.dist-info"
    path = directory / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{module}.py", text)
        archive.writestr(
            f"{information}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        archive.writestr(
            f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{information}/RECORD", "")
    return path


def output_of(python: str, code: str) -> str:
    done = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_the_installed_environment_is_the_python_of_the_command(making: Making) -> None:
    interpreter = making.maker.interpreter(Environment("installed"), Path("modules"))
    assert (interpreter.executable, interpreter.sees_ours) == (sys.executable, True)
    assert making.messages == []


def test_a_requirement_is_installed_once_and_other_packages_stay_as_installed(
    making: Making, tmp_path: Path
) -> None:
    path = wheel(tmp_path, "shot", "1.0", "shot", "number = 1")
    environment = Environment("shot", requirements=("shot==1.0",), keeps_installed=True)
    assert making.maker.describe(environment).endswith(
        "shot==1.0, all else as installed: to be made"
    )
    python = making.python(environment)
    assert output_of(python, "import shot, ZODB, relstorage; print(shot.number)") == "1"
    assert making.messages == ["making environment shot: shot==1.0, all else as installed"]
    path.unlink()
    assert making.python(environment) == python
    assert len(making.messages) == 1
    assert making.maker.describe(environment).endswith("made before")


def test_a_wheel_is_installed_even_if_its_version_is_installed_already(
    making: Making, tmp_path: Path
) -> None:
    import ZConfig

    version = output_of(
        sys.executable, "from importlib.metadata import version as v; print(v('ZConfig'))"
    )
    path = wheel(tmp_path, "ZConfig", version, "slowed", "number = 2")
    environment = Environment("slow", requirements=(str(path),), keeps_installed=True)
    python = making.python(environment)
    assert output_of(python, "import slowed; print(slowed.number)") == "2"
    assert output_of(python, "import ZConfig; print(ZConfig.__file__)") == ZConfig.__file__
    first = making.python(environment)
    path.unlink()
    wheel(tmp_path, "ZConfig", version, "slowed", "number = 3")
    second = making.python(Environment("slow", requirements=(str(path),), keeps_installed=True))
    assert (first == python, second == python) == (True, False)
    assert output_of(second, "import slowed; print(slowed.number)") == "3"


def age(lock: Path, days: float) -> None:
    last_use = time.time() - days * 86400
    lock.touch()
    os.utime(lock, (last_use, last_use))


def test_an_environment_that_is_long_unused_is_removed(making: Making, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for name, days in {"unused": KEPT_DAYS + 1, "used": KEPT_DAYS - 1}.items():
        (cache / name).mkdir(parents=True)
        age(cache / f"{name}.lock", days)
    wheel(tmp_path, "shot", "1.0", "shot", "")
    environment = Environment("shot", requirements=("shot==1.0",), keeps_installed=True)
    directory = Path(making.python(environment)).parents[1]
    assert {path.with_suffix("") for path in cache.iterdir()} == {cache / "used", directory}
    lock = directory.with_suffix(".lock")
    age(lock, KEPT_DAYS + 1)
    making.python(environment)
    assert time.time() - lock.stat().st_mtime < 86400


class RaceForALock:
    """A replacement of ``flock`` that calls *happens* right before its first call."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
        self.flock, self.happens = fcntl.flock, happens
        self.calls = 0
        monkeypatch.setattr(fcntl, "flock", self)

    def __call__(self, file: IO[str], operation: int) -> None:
        self.calls += 1
        if self.calls == 1:
            self.happens()
        self.flock(file, operation)


def test_a_run_locks_the_file_that_others_find_if_its_own_was_removed_meanwhile(
    making: Making, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "cache" / "shot.lock"
    race = RaceForALock(monkeypatch, lock.unlink)
    with (
        making.maker._locked(Environment("shot"), lock.with_suffix("")),
        lock.open("r+") as file,
        pytest.raises(BlockingIOError),
    ):
        race.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert race.calls == 2


def test_an_environment_that_another_run_makes_is_not_removed(
    making: Making, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "cache" / "shot"
    directory.mkdir(parents=True)
    lock = directory.with_suffix(".lock")
    age(lock, KEPT_DAYS + 1)

    def replace_lock() -> None:
        lock.unlink()
        lock.touch()

    RaceForALock(monkeypatch, replace_lock)
    making.maker._prune()
    assert directory.exists()
    assert lock.exists()


def test_a_missing_requirement_is_reported_in_the_words_of_the_installer(making: Making) -> None:
    environment = Environment("gone", requirements=("no-such-thing==1",), keeps_installed=True)
    with pytest.raises(UserError) as caught:
        making.python(environment)
    assert str(caught.value).startswith("environment gone cannot be made: ERROR: ")
    assert "no-such-thing==1" in str(caught.value)


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
        program(tmp_path / "old", f"echo '{old}'"): "is Python 3.8.1; 3.9 is the oldest that",
        program(tmp_path / "none", "echo wrong >&2; exit 3"): "cannot run Python ",
        program(tmp_path / "mute", "true"): "cannot run Python ",
        program(tmp_path / "bare", f"echo '{bare}'"): "has no ZODB that works: ImportError: ZODB",
    }
    for python, message in cases.items():
        with pytest.raises(UserError) as caught:
            making.python(Environment("a", python))
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


def test_an_environment_with_a_missing_path_cannot_be_made(making: Making, tmp_path: Path) -> None:
    environment = Environment("a", requirements=(str(tmp_path / "gone"),), keeps_installed=True)
    assert making.maker.describe(environment).endswith("to be made")
    with pytest.raises(UserError, match="environment a cannot be made: ERROR: "):
        making.python(environment)
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".lock"]


def test_reusing_an_environment_with_an_unpinned_requirement_prints_its_date(
    making: Making, tmp_path: Path
) -> None:
    wheel(tmp_path, "shot", "1.0", "shot", "")
    environment = Environment("shot", requirements=("shot>=1",), keeps_installed=True)
    for _ in range(2):
        making.python(environment)
    assert making.messages[1].startswith("environment shot: as it was made on 2")


def test_building_a_checkout_leaves_the_checkout_unchanged(tmp_path: Path, making: Making) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'back'\nbackend-path = ['.']\n"
    )
    source = tmp_path / "wheels"
    source.mkdir()
    made = wheel(source, "shot", "1.0", "shot", "number = 5")
    (checkout / "back.py").write_text(
        "import pathlib, shutil\n"
        "def build_wheel(directory, *_, **__):\n"
        "    pathlib.Path('built').touch()\n"
        f"    shutil.copy({str(made)!r}, directory)\n    return {made.name!r}\n"
    )
    before = sorted(checkout.iterdir())
    python = making.python(Environment("c", requirements=(str(checkout),), keeps_installed=True))
    assert output_of(python, "import shot; print(shot.number)") == "5"
    assert sorted(checkout.iterdir()) == before
    assert not (Path(python).parents[1] / "sources").exists()


def test_a_cache_that_cannot_be_written_to_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    with Guardian() as guardian, pytest.raises(UserError, match="cannot be kept in"):
        Making(tmp_path / "cache", guardian).python(Environment("a", requirements=("x",)))


def test_only_the_modules_that_a_worker_needs_are_carried(tmp_path: Path) -> None:
    carry_to(tmp_path / "modules")
    (information,) = (tmp_path / "modules").glob("pyperf-*.dist-info")
    assert "pyperf.hook" in (information / "entry_points.txt").read_text()
    home = tmp_path / "modules" / "zodbshootout"
    assert {path.name for path in home.iterdir()} == set(CARRIED)
    assert not list((tmp_path / "modules").rglob("__pycache__"))
