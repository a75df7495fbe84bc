from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A temporary directory that every user may enter, as database servers run as others do."""
    with tempfile.TemporaryDirectory(prefix="shootout-test-") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path
