"""Options of the test suite."""

from __future__ import annotations

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
