"""Every transaction of a window is dealt to one client, and all clients get equally many."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zodbshootout.client.data.dealer import Dealer
from zodbshootout.client.data.trace import ReplayedTransaction
from zodbshootout.model.specification import CrewShape, Parameters, ReplayedWorkload


class FakeTrace:
    """A trace of empty transactions on the given connections, one starting every nanosecond."""

    def __init__(self, connections: list[int]) -> None:
        self._transactions = [
            ReplayedTransaction(started, connection, [])
            for started, connection in enumerate(connections)
        ]

    def transactions(self, first: int, last: int) -> list[ReplayedTransaction]:
        return self._transactions[first:last]


def dealers(connections: list[int], clients: int, **more: float) -> list[Dealer]:
    workload = ReplayedWorkload(
        "x",
        transactions=len(connections),
        connections=len(set(connections)),
        **more,  # type: ignore[arg-type]
    )
    parameters = Parameters(CrewShape(clients), workload=workload)
    return [Dealer(parameters, client) for client in range(clients)]


RECORDED = st.lists(st.integers(0, 3), min_size=1, max_size=30).map(
    lambda numbers: [sorted(set(numbers)).index(number) for number in numbers]
)


@pytest.mark.slow
@given(RECORDED, st.integers(1, 9), st.integers(0, 20), st.integers(1, 12))
def test_a_window_is_dealt_completely_and_evenly(
    connections: list[int], clients: int, first: int, iterations: int
) -> None:
    trace: Any = FakeTrace(connections)
    windows: dict[int, list[tuple[int, int]]] = {}
    dealt: dict[int, list[tuple[int, int]]] = {}
    for dealer in dealers(connections, clients):
        of_copy, own = dealer.deal(trace, first, iterations)
        assert len(own) == iterations
        assert len(of_copy) == iterations * dealer.members
        window = [(turn, transaction.started) for turn, transaction in of_copy]
        assert windows.setdefault(dealer.copy, window) == window
        dealt.setdefault(dealer.copy, []).extend(
            (turn, transaction.started) for turn, transaction in own
        )
    assert {copy: sorted(own) for copy, own in dealt.items()} == windows


@pytest.mark.slow
@given(RECORDED, st.integers(1, 4), st.integers(1, 8))
def test_a_window_begins_at_the_end_of_the_previous_one(
    connections: list[int], clients: int, iterations: int
) -> None:
    trace: Any = FakeTrace(connections)
    (dealer, *_) = dealers(connections, clients)
    places = [
        turn * len(connections) + transaction.started
        for number in range(5)
        for turn, transaction in dealer.deal(trace, number * iterations, iterations)[0]
    ]
    assert places == list(range(places[0], places[0] + len(places)))


def test_a_connection_stays_with_its_client_until_that_client_has_its_share() -> None:
    trace: Any = FakeTrace([0, 1, 0, 0, 1, 0])
    first, second = dealers([0, 1, 0, 0, 1, 0], 2)
    assert [transaction.started for _, transaction in first.deal(trace, 0, 3)[1]] == [0, 2, 3]
    assert [transaction.started for _, transaction in second.deal(trace, 0, 3)[1]] == [1, 4, 5]


def test_going_to_an_earlier_iteration_begins_another_pass_over_the_workload() -> None:
    trace: Any = FakeTrace([0] * 10)
    (dealer,) = dealers([0] * 10, 1)
    turns = {turn for turn, _ in dealer.deal(trace, 0, 25)[0]}
    dealer.go_to(25, 3)
    again = {turn for turn, _ in dealer.deal(trace, 3, 5)[0]}
    assert turns == {0, 1, 2}
    assert again == {3}


def test_transactions_are_due_at_their_recorded_times_but_not_before_their_predecessors() -> None:
    trace: Any = FakeTrace([0] * 4)
    (dealer,) = dealers([0] * 4, 1, seconds=10.0, speed=2.0)
    for transaction, started in zip(trace.transactions(0, 4), (0, 5, 4, 9), strict=True):
        object.__setattr__(transaction, "started", started * 10**9)
    of_copy, own = dealer.deal(trace, 1, 4)
    assert [transaction.started // 10**9 for _, transaction in own] == [5, 4, 9, 0]
    assert dealer.schedule(of_copy, own) == [0.5, 0.5, 2.5, 3.0]


def test_transactions_at_a_rate_are_due_in_the_order_of_the_workload() -> None:
    connections = [0] * 5 + [1] * 5 + [0, 1] * 20
    trace: Any = FakeTrace(connections)
    arrivals: dict[int, float] = {}
    for dealer in dealers(connections, 2):
        _, own = dealer.deal(trace, 0, 25)
        instants = dealer.arrivals(10, "replay")
        arrivals |= {
            transaction.started: at for (_, transaction), at in zip(own, instants, strict=True)
        }
    assert len(arrivals) == 50
    in_order = [arrivals[place] for place in range(50)]
    assert in_order == sorted(in_order)


def test_the_last_transaction_of_the_workload_precedes_its_first_one() -> None:
    trace: Any = FakeTrace([0, 1, 0, 1])
    first, second = dealers([0, 1, 0, 1], 2)
    assert [transaction.started for transaction in first.before(trace, 0, 100)] == [2, 0]
    assert [transaction.started for transaction in second.before(trace, 1, 3)] == [1, 3]
