"""Tests that lack something are skipped with what to install."""

from __future__ import annotations

import pytest

from tests import missing
from tests.install_servers import Requirement

ABSENT = Requirement("absent", lambda: False, "absent-server", "brew install absent")
PRESENT = Requirement("present", lambda: True, "present-server", "brew install present")


@pytest.fixture(autouse=True)
def _requirements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing, "REQUIREMENTS", [ABSENT, PRESENT])
    monkeypatch.setattr(missing, "MODULES", {"json": "a", "no_such_module": "b"})
    missing._advice.cache_clear()


def test_a_test_that_lacks_something_is_skipped_with_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(missing, "skips", True)
    with pytest.raises(pytest.skip.Exception) as skipped:
        missing.skip_without({"absent", "present", "json", "no_such_module"})
    server, module = str(skipped.value).split("; ")
    assert server.startswith("install absent: ")
    assert "absent" in server.partition(": ")[2]
    assert module == "install no_such_module: pip install -e '.[dev,b]'"


def test_a_test_that_lacks_nothing_runs() -> None:
    missing.skip_without({"present", "json"})


def test_no_test_is_skipped_if_none_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing, "skips", False)
    with pytest.raises(pytest.fail.Exception, match="install absent"):
        missing.skip_without({"absent"})


def test_what_only_root_can_do_is_skipped_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(pytest.skip.Exception, match="run it as root"):
        missing.skip_without({"root"})
