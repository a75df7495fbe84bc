"""Options of the test suite."""

from __future__ import annotations

from typing import Any

import pytest

from tests import generated


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full", action="store_true",
        help="generate as much input as the documentation tells the results of; this takes hours",
    )  # fmt: skip


@pytest.fixture
def full(request: pytest.FixtureRequest) -> bool:
    """Whether the long form of a test is wanted."""
    return bool(request.config.getoption("--full"))


def pytest_configure(config: pytest.Config) -> None:
    generated.full = config.getoption("--full")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tell how many faults there were, and whether anything was lost."""
    passed, failed = (
        [each for each in terminalreporter.stats.get(kind, []) if "/faults/" in each.nodeid]
        for kind in ("passed", "failed")
    )
    if not passed + failed:
        return
    lost = "nothing that was measured was lost, and nothing left behind"
    if failed:
        lost = f"of {len(failed)} something was lost, left behind or not told"
    terminalreporter.write_line(f"{len(passed + failed)} faults in real runs: {lost}")
