"""The instants at which iterations are due."""

from __future__ import annotations

import heapq
import statistics
from itertools import islice, pairwise
from typing import Any

import pytest

from tests.fakes import parameters
from zodbshootout.model.arrivals import instants, lead


def gaps(rate: float, name: str = "update/0", **more: Any) -> list[float]:
    """Return the intervals between the arrivals of all clients together."""
    params = parameters(size=4, **more)
    arrivals = heapq.merge(
        *(instants(params, range(client, client + 1), rate, name) for client in range(4))
    )
    return [later - earlier for earlier, later in pairwise(islice(arrivals, 20_001))]


def test_arrivals_are_a_poisson_process() -> None:
    intervals = gaps(50)

    assert statistics.fmean(intervals) == pytest.approx(1 / 50, rel=0.02)
    assert statistics.stdev(intervals) == pytest.approx(1 / 50, rel=0.03)
    assert sum(gap > 2 / 50 for gap in intervals) / len(intervals) == pytest.approx(0.135, rel=0.05)


def test_clients_that_share_arrivals_have_the_sum_of_their_rates() -> None:
    arrivals = instants(parameters(size=4), range(3), 50, "replay/0")
    *_, last = islice(arrivals, 20_000)
    assert last == pytest.approx(20_000 / (50 * 3 / 4), rel=0.02)


def test_equal_seeds_and_names_give_equal_arrivals() -> None:
    assert gaps(50) == gaps(50)
    assert gaps(50) != gaps(50, name="update/1")
    assert gaps(50) != gaps(50, seed=1)


def test_the_lead_is_a_quarter_of_the_iterations_but_at_least_one() -> None:
    assert lead(400) == 100
    assert lead(1) == 1
