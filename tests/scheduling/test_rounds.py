"""The choice of the row for the next round, and the end of all rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from zodbshootout.scheduling.calibration import Effort
from zodbshootout.scheduling.rounds import Rounds


class Machine:
    """A clock on which every round takes the seconds of its row."""

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self.now = 100.0
        self.seconds = seconds
        self.closed: list[str] = []
        self.left: list[float] = []
        self.expected: list[int] = []

    def rounds(
        self,
        needed: Callable[[str], int],
        precision: float = 0.05,
        limit: float = 1e9,
        assured: Callable[[str], int] = lambda row: 0,
    ) -> str:
        """Make all rounds; return the rows in the order of their rounds."""
        effort = Effort(3, 0, 0, 0, 0.1, precision=precision)
        rounds = Rounds(
            list(self.seconds), effort, limit, needed, self.closed.append, lambda: self.now,
            assured=assured,
        )  # fmt: skip
        order = ""
        for row, number in rounds:
            self.left.append(rounds.seconds_left)
            self.expected.append(rounds.expected(row))
            assert number == order.count(row)
            order += row
            self.now += self.seconds[row]
        assert sorted(self.closed) == sorted(self.seconds)
        return order


def test_each_row_has_its_rounds_one_after_the_other_with_a_fixed_effort() -> None:
    machine = Machine({"a": 1.0, "b": 2.0})
    assert machine.rounds(lambda row: 3, precision=0.0, limit=1.0) == "aaabbb"
    # At first no duration is known; then a round of a takes one second, and one of b takes two.
    assert machine.left == [0, 5, 4, 3, 4, 2]


def test_rows_take_turns_until_each_is_precise_enough() -> None:
    machine = Machine({"a": 1.0, "b": 1.0, "c": 1.0})
    order = machine.rounds({"a": 4, "b": 1, "c": 6}.__getitem__)
    # The first row soon has a verdict.
    assert order == "aaa" + "bcabc" + "bccc" + "c"
    assert machine.closed == ["a", "b", "c"]


@pytest.mark.parametrize(("limit", "order"), [(18.0, "aaababab"), (11.0, "abababab")])
def test_the_first_row_has_its_first_rounds_at_once_only_if_there_is_ample_time(
    limit: float, order: str
) -> None:
    machine = Machine({"a": 1.0, "b": 1.0})
    assert machine.rounds(lambda row: 1000, limit=limit).startswith(order)


def test_steady_rows_leave_their_time_to_the_others() -> None:
    machine = Machine({"a": 1.0, "b": 1.0})
    order = machine.rounds({"a": 3, "b": 1000}.__getitem__, limit=20.0)
    assert (order.count("a"), order.count("b")) == (3, 17)
    assert machine.now == 120.0


def test_no_more_rounds_are_expected_than_time_allows() -> None:
    machine = Machine({"a": 1.0, "b": 1.0})
    assert machine.rounds(lambda row: 351, limit=10.0) == "ab" * 5
    # At first the duration of a round is unknown.
    assert machine.expected == [351, 5, 5, 5, 5, 5, 5, 5, 5, 5]


def test_all_rounds_are_expected_with_a_fixed_effort() -> None:
    machine = Machine({"a": 1.0})
    assert machine.rounds(lambda row: 3, precision=0.0, limit=0.5) == "aaa"
    assert machine.expected == [3, 3, 3]


def test_a_round_that_would_not_end_in_time_is_not_begun() -> None:
    machine = Machine({"a": 5.0, "b": 1.0})
    order = machine.rounds(lambda row: 1000, limit=19.0)
    # Three rounds of each row take 18 seconds; another one of b fits, but none of a.
    assert order == "ababab" + "b"
    assert machine.now == 119.0


def test_the_seconds_left_follow_from_earlier_rounds_and_stay_within_the_limit() -> None:
    machine = Machine({"a": 2.0})
    machine.rounds(lambda row: 10, limit=1000.0)
    assert machine.left == [0, 18, 16, 14, 12, 10, 8, 6, 4, 2]
    machine = Machine({"a": 2.0})
    machine.rounds(lambda row: 10, limit=9.0)
    assert machine.left == [0, 7, 5, 3]


def test_what_is_spent_once_is_not_taken_for_the_time_of_later_rounds() -> None:
    now = [0.0]
    effort = Effort(3, 0, 0, 0, 0.1, precision=0.05)
    rounds = Rounds(["a", "b"], effort, 36.0, lambda _: 3, clock=lambda: now[0])
    shares = []
    for row, number in rounds:
        if number == 0:
            now[0] += 9.0
            rounds.spend_once(row, 9.0)
            shares.append(rounds.affordable(row, rounds.effort.processes))
        now[0] += shares["ab".index(row)]
    # Of the seconds, 18 are spent once; a tenth of what is left is not planned for.
    assert shares == pytest.approx([0.9 * 18 / 6, 0.9 * (18 - 3 * 2.7) / 3])
    assert rounds.took == pytest.approx(dict(zip("ab", shares, strict=True)))
    assert rounds.made == {"a": 3, "b": 3}


@pytest.mark.parametrize("precision", [0.0, 0.05])
def test_a_row_has_no_more_rounds_once_it_needs_none(precision: float) -> None:
    left = {"a": 3, "b": 3}
    machine = Machine({"a": 1.0, "b": 1.0})

    def needed(row: str) -> int:
        if machine.now >= 102.0:
            left["a"] = 0
        return left[row]

    assert machine.rounds(needed, precision).count("a") < 3


@pytest.mark.slow
@pytest.mark.parametrize("precision", [0.0, 0.05])
def test_the_estimate_of_the_time_left_is_not_quadratic(
    precision: float,
) -> None:
    asked: list[str] = []

    def needed(row: str) -> int:
        asked.append(row)
        return 4

    machine = Machine({chr(0x4E00 + number): 1.0 for number in range(500)})
    rounds = machine.rounds(needed, precision)
    assert len(asked) <= 2 * len(rounds)
    assert machine.left[1:] == [2000.0 - made for made in range(1, 2000)]


def test_assured_rounds_are_made_beyond_the_limit_and_leave_it_to_the_others() -> None:
    machine = Machine({"long": 100.0, "short": 1.0})
    assured = {"long": 3, "short": 0}
    order = machine.rounds(lambda row: 1000, limit=10.0, assured=assured.__getitem__)
    assert (order.count("long"), order.count("short")) == (3, 10)
    assert machine.expected == [1000, 1000, 3, 10, 3, 10, *[10] * 7]
    assert machine.left[2] == 2 * 100 + 9


def test_assured_rounds_take_nothing_of_what_the_others_can_afford() -> None:
    now = [0.0]
    effort = Effort(3, 0, 0, 0, 0.1, precision=0.05)
    assured = {"long": 3, "a": 0, "b": 0}
    rounds = Rounds(
        list(assured), effort, 60.0, lambda _: 3, clock=lambda: now[0],
        assured=assured.__getitem__,
    )  # fmt: skip
    shares = {}
    for row, number in rounds:
        now[0] += 100.0 if row == "long" else 1.0
        if number == 0:
            rounds.spend_once(row, 90.0 if row == "long" else 0.0)
            shares[row] = rounds.affordable(row, rounds.effort.processes)
    # The rounds of both others have the same shares, and those of a take a second.
    assert shares["a"] == pytest.approx(0.9 * 59 / 6)
    assert shares["b"] == pytest.approx(0.9 * (58 - 2) / 3)
    assert rounds.made == {"long": 3, "a": 3, "b": 3}
