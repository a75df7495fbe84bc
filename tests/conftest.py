"""Options of the test suite, and the order of the tests."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from tests import generated

LONG = {"integration", "faults", "browser", "truth"}
"""Directories of tests that start processes and take seconds each."""
WITH_WHEELS = 900
"""Seconds that a test may take in which wheels are fetched or built."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full", action="store_true",
        help="generate as much input as for the results in the documentation; this takes hours",
    )  # fmt: skip


@pytest.fixture
def full(request: pytest.FixtureRequest) -> bool:
    """Return whether to run the long form of a test."""
    return bool(request.config.getoption("--full"))


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands print each note on one line, whatever the width of the terminal is."""
    monkeypatch.setenv("COLUMNS", "1000")


@pytest.fixture
def unopened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs start no servers and open no contender, as if all of them could be opened."""
    from zodbshootout.servers.running import RunningServers

    def open_none(variants: Any, plan: Any, *_: Any) -> tuple[Any, RunningServers]:
        return plan, RunningServers()

    monkeypatch.setattr("zodbshootout.cli.run.open_all", open_none)


def pytest_configure(config: pytest.Config) -> None:
    generated.full = config.getoption("--full")
    # A shell's background job ignores SIGINT, and every command that a test starts would inherit
    # that and miss the interrupts of the test.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run long tests first, so that all CPUs are busy until the end.

    Those that need wheels come after the other long ones, and may wait until these are fetched.
    """
    for item in items:
        if item.get_closest_marker("network") is not None:
            item.add_marker(pytest.mark.timeout(WITH_WHEELS))
    items.sort(
        key=lambda item: (
            item.path.parent.name not in LONG, item.get_closest_marker("network") is not None
        )
    )  # fmt: skip


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the number of faults, and whether a run lost measurements or left anything behind."""
    passed, failed = (
        [report for report in terminalreporter.stats.get(kind, []) if "/faults/" in report.nodeid]
        for kind in ("passed", "failed")
    )
    if not passed + failed:
        return
    lost = "nothing that was measured was lost, and nothing left behind"
    if failed:
        lost = f"{len(failed)} lost something, left something behind or did not report it"
    terminalreporter.write_line(f"{len(passed + failed)} faults in real runs: {lost}")
