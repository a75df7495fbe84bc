from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence

import pytest

from tests import install_servers
from tests.install_servers import Requirement


@pytest.fixture
def fake_machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that fakes the machine, and the answers of a requirement in turn."""

    def fake(*met: bool, root: bool, debian: bool, platform: str = "linux") -> None:
        answers = iter(met)
        requirement = Requirement("a thing", lambda: next(answers), "thing thing-dev", "brew it")
        monkeypatch.setattr(install_servers, "REQUIREMENTS", [requirement])
        monkeypatch.setattr(install_servers, "is_debian", lambda: debian)
        monkeypatch.setattr("os.geteuid", lambda: 0 if root else 1000)
        monkeypatch.setattr("sys.platform", platform)

    return fake


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []

    def install(requirements: Sequence[Requirement]) -> None:
        names.extend(requirement.debian for requirement in requirements)

    monkeypatch.setattr(install_servers, "install", install)
    return names


def test_nothing_is_installed_if_nothing_is_missing(
    fake_machine: Callable[..., None], installed: list[str]
) -> None:
    fake_machine(True, root=True, debian=True)
    assert install_servers.main() == 0
    assert installed == []


def test_root_on_debian_installs_missing_packages(
    fake_machine: Callable[..., None], installed: list[str]
) -> None:
    fake_machine(False, True, root=True, debian=True)
    assert install_servers.main() == 0
    assert installed == ["thing thing-dev"]


def test_a_requirement_that_cannot_be_installed_is_reported(
    fake_machine: Callable[..., None], installed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    fake_machine(False, False, root=True, debian=True)
    assert install_servers.main() == 1
    assert "missing: a thing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("root", "debian", "platform", "advice"),
    [
        (False, True, "linux", "sudo apt-get install --no-install-recommends thing thing-dev"),
        (True, False, "linux", "on Debian that is apt-get install --no-install-recommends thing"),
        (False, False, "darwin", "brew it"),
    ],
)
def test_the_command_to_type_is_printed_if_nothing_can_be_installed(
    root: bool,
    debian: bool,
    platform: str,
    advice: str,
    fake_machine: Callable[..., None],
    installed: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake_machine(False, root=root, debian=debian, platform=platform)
    assert install_servers.main() == 1
    assert installed == []
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"missing: a thing; install it: {advice}")


def test_the_script_needs_only_the_standard_library() -> None:
    program = f"import runpy; runpy.run_path({install_servers.__file__!r})"
    subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True)
