"""Missing servers are installed, or the command to type is printed, on made-up machines."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from unittest import mock

import pytest
from tools import install_servers
from tools.install_servers import Requirement


@pytest.mark.parametrize(
    ("met", "root", "debian", "platform", "installs", "advice"),
    [
        ([True], True, True, "linux", False, ""),
        ([False, True], True, True, "linux", True, ""),
        ([False, False], True, True, "linux", True, "sudo apt-get install"),
        ([False], False, True, "linux", False,
         "sudo apt-get install --no-install-recommends thing thing-dev"),
        ([False], True, False, "linux", False,
         "on Debian that is apt-get install --no-install-recommends thing"),
        ([False], False, False, "darwin", False, "brew it"),
    ],
)  # fmt: skip
def test_what_is_missing_is_installed_or_the_command_to_type_is_printed(
    met: Sequence[bool],
    root: bool,
    debian: bool,
    platform: str,
    installs: bool,
    advice: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    requirement = Requirement("a thing", mock.Mock(side_effect=met), "thing thing-dev", "brew it")
    install = mock.Mock()
    monkeypatch.setattr(install_servers, "REQUIREMENTS", [requirement])
    monkeypatch.setattr(install_servers, "is_debian", lambda: debian)
    monkeypatch.setattr(install_servers, "install", install)
    monkeypatch.setattr("os.geteuid", lambda: 0 if root else 1000)
    monkeypatch.setattr("sys.platform", platform)
    assert install_servers.main() == bool(advice)
    assert install.mock_calls == [mock.call([requirement])] * installs
    printed = capsys.readouterr().err
    assert printed.startswith(f"missing: a thing; install it: {advice}" if advice else "")
    assert printed.count("\n") == bool(advice)


def test_the_script_needs_only_the_standard_library() -> None:
    program = f"import runpy; runpy.run_path({install_servers.__file__!r})"
    subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True)
