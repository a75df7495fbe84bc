"""The instants at which iterations are due."""

from __future__ import annotations

import heapq
import statistics
from itertools import islice, pairwise
from typing import Any

import pytest

from tests.fakes import parameters
from zodbshootout.client.arrivals import instants, lead


def gaps(rate: float, name: str = "update/0", **more: Any) -> list[float]:
    """Return the gaps between the arrivals of all clients together."""
    of = parameters(size=4, **more)
    arrivals = heapq.merge(*(instants(of, client, rate, name) for client in range(4)))
    return [later - earlier for earlier, later in pairwise(islice(arrivals, 20_001))]


def test_arrivals_are_a_poisson_process() -> None:
    of_all = gaps(50)

    assert statistics.fmean(of_all) == pytest.approx(1 / 50, rel=0.02)
    assert statistics.stdev(of_all) == pytest.approx(1 / 50, rel=0.03)
    assert sum(gap > 2 / 50 for gap in of_all) / len(of_all) == pytest.approx(0.135, rel=0.05)


def test_even_arrivals_come_at_equal_intervals() -> None:
    of_all = gaps(50, even_arrivals=True)

    assert of_all == pytest.approx([1 / 50] * len(of_all))


def test_equal_seeds_and_names_give_equal_arrivals() -> None:
    assert gaps(50) == gaps(50)
    assert gaps(50) != gaps(50, name="update/1")
    assert gaps(50) != gaps(50, seed=1)


def test_some_iterations_come_before_those_that_count() -> None:
    assert lead(400) == 100
    assert lead(1) == 1
