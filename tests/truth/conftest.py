"""What several tests of exact times have in common."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from zodbshootout.client.benchmarks import benchmark
from zodbshootout.model.specification import Parameters


@pytest.fixture
def even_arrivals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the iterations at a rate fall due at equal intervals, both per client and overall."""

    def evenly(parameters: Parameters, clients: range, rate: float, name: str) -> Iterator[float]:
        return itertools.count((clients.start + 1) / rate, parameters.crew.size / rate)

    monkeypatch.setattr(benchmark, "instants", evenly)
