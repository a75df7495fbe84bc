"""Settings of tests that run commands in their own process."""

from __future__ import annotations

import pytest

from zodbshootout.scheduling import opening


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no message come that a contender is slow to open, however busy the machine is."""
    monkeypatch.setattr(opening, "PATIENCE", 60.0)
