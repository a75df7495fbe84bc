"""Tests that lack something are skipped with what to install."""

from __future__ import annotations

import pytest
from tools.install_servers import Requirement

from tests import missing


@pytest.mark.parametrize(
    ("skips", "names", "outcome", "reason"),
    [
        (True, ["absent", "present", "json", "no_such_module"], pytest.skip.Exception,
         r"^install absent: .*absent-server; install no_such_module: pip install -e '\.\[dev,b\]'"),
        (False, ["absent"], pytest.fail.Exception, "install absent"),
        (True, ["root"], pytest.skip.Exception, "run it as root"),
    ],
)  # fmt: skip
def test_a_test_that_lacks_something_is_skipped_unless_none_may_be(
    skips: bool,
    names: list[str],
    outcome: type[BaseException],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    absent = Requirement("absent", lambda: False, "absent-server", "brew install absent-server")
    present = Requirement("present", lambda: True, "present-server", "")
    monkeypatch.setattr(missing, "REQUIREMENTS", [absent, present])
    monkeypatch.setattr(missing, "MODULES", {"json": "a", "no_such_module": "b"})
    monkeypatch.setattr(missing, "skips", skips)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    missing._advice.cache_clear()
    missing.skip_without({"present", "json"})
    with pytest.raises(outcome, match=reason):
        missing.skip_without(names)
