from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.command import open_directory


@pytest.fixture
def place() -> Iterator[Path]:
    """A temporary directory that every user may enter."""
    with open_directory() as path:
        yield path
