"""Options of the test suite, and the order of the tests."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import pytest
import zodburi
from hypothesis import is_hypothesis_test, settings

from tests import generated, missing
from zodbshootout.plugins import entries

# Images of Python forbid to keep what is compiled; each process would compile all modules again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

OF_SERVERS = {Path(__file__).parent / name for name in ("faults", "integration")}
"""The directories of tests that run the command with its servers and workers."""
MOST_WORKERS = 4
"""The most processes that run tests, which start many of their own."""
WITH_WHEELS = 900
"""Seconds that a test may take in which wheels are fetched or built."""
WITHOUT_SERVERS = 30
"""Seconds that a test may take that starts no servers; it usually takes less than 0.2 s."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full", action="store_true",
        help="generate as much input as for the results in the documentation; this takes hours",
    )  # fmt: skip
    parser.addoption(
        "--skip-none", action="store_true",
        help="fail instead of skipping a test if a server, browser or package is missing",
    )  # fmt: skip


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Use the processors for the whole suite; files that are named run in this process."""
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        return 0
    return min(MOST_WORKERS, os.cpu_count() or 1)


@pytest.fixture
def full(request: pytest.FixtureRequest) -> bool:
    """Return whether to run the long form of a test."""
    return bool(request.config.getoption("--full"))


@pytest.fixture(scope="session", autouse=True)
def resolvers() -> Iterator[None]:
    """Let zodburi search the installed packages for resolvers once, not for each URI."""
    with mock.patch.object(zodburi, "entry_points", entries):
        yield


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

    monkeypatch.setattr("zodbshootout.cli.preparing.open_all", open_none)


def pytest_configure(config: pytest.Config) -> None:
    generated.full = config.getoption("--full")
    missing.skips = not config.getoption("--skip-none")
    settings.register_profile("usual", deadline=None, max_examples=generated.EXAMPLES)
    settings.register_profile("full", deadline=None)
    settings.load_profile("full" if generated.full else "usual")
    # A shell's background job ignores SIGINT, and every command that a test starts would inherit
    # that and miss the interrupts of the test.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # nohup ignores SIGHUP in the same way.
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(tryfirst=True)  # before pytest deselects tests by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests, and run those with servers first, so that all CPUs are busy until the end.

    Those that need wheels come after the others with servers, and may wait until these are fetched.
    """
    for item in items:
        if item.path.parent in OF_SERVERS or item.get_closest_marker("slow") is not None:
            item.add_marker(pytest.mark.servers)
        if item.get_closest_marker("network") is not None:
            item.add_marker(pytest.mark.timeout(WITH_WHEELS))
        if item.get_closest_marker("servers") is None:
            item.add_marker(pytest.mark.timeout(WITHOUT_SERVERS))
    items.sort(
        key=lambda item: (
            item.get_closest_marker("servers") is None,
            item.get_closest_marker("network") is not None,
        )
    )


class TookTooLongError(BaseException):
    """A test has reached its limit; no :class:`Exception`, so that Hypothesis does not catch it."""


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer(item: pytest.Item) -> Iterator[Any]:
    """Let a timeout end tests of Hypothesis, which would repeat, without a limit, what fails."""
    result = yield
    fail = signal.getsignal(signal.SIGALRM)
    if is_hypothesis_test(getattr(item, "obj", None)) and callable(fail):

        def end(number: int, frame: FrameType | None) -> None:
            try:
                fail(number, frame)
            except pytest.fail.Exception as error:
                raise TookTooLongError(str(error)) from None

        signal.signal(signal.SIGALRM, end)
    return result


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test if something is missing that its marker names."""
    missing.skip_without({name for mark in item.iter_markers("servers") for name in mark.args})


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
