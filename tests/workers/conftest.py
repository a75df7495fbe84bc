"""The place in which tests start fork servers and workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workers.place import Place
from zodbshootout.guardian import Guardian


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Guardian() as guardian:
        yield Place(tmp_path, guardian)
