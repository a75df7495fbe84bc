"""The turn that the workers of a row pass to each other."""

from __future__ import annotations

import threading
from contextlib import closing
from multiprocessing import Pipe
from pathlib import Path

import pytest

from zodbshootout.workers.baton import Baton

PLAN = [0, 1, 2, 2, 0, 1]


@pytest.fixture
def directory(tmp_path: Path) -> str:
    Baton.create(str(tmp_path), 3)
    return str(tmp_path)


def test_holders_have_their_turns_in_the_order_of_the_plan(directory: str) -> None:
    taken: list[int] = []

    def hold(own: int) -> None:
        ours, theirs = Pipe()
        with ours, theirs, closing(Baton(directory)) as baton:
            for turn in baton.turns(PLAN * 50, own, ours):
                with turn:
                    taken.append(own)

    threads = [threading.Thread(target=hold, args=[own]) for own in range(3)]
    for thread in threads:
        thread.start()
    assert taken == []  # until somebody begins
    with closing(Baton(directory)) as baton:
        baton.pass_on(PLAN * 50)
        for thread in threads:
            thread.join(30)
        assert taken == PLAN * 50
        assert baton.current == len(taken)


def test_the_turns_of_holders_that_have_ended_are_left_out(directory: str) -> None:
    with closing(Baton(directory)) as baton:
        baton.mark_ended(1)
        baton.pass_on(PLAN, 0)
        assert baton.current == 2
        baton.pass_on(PLAN, 4)
        assert baton.current == len(PLAN)


def test_the_turn_of_a_holder_that_has_ended_is_passed_on(directory: str) -> None:
    with closing(Baton(directory)) as baton:
        baton.mend(PLAN)
        assert baton.current == -1  # nobody has begun
        baton.pass_on(PLAN)
        baton.pass_on(PLAN, 0)
        baton.mend(PLAN)
        assert baton.current == 1
        baton.mark_ended(1)
        baton.mend(PLAN)
        assert baton.current == 2


def test_a_holder_whose_wake_up_was_lost_is_woken_again(directory: str) -> None:
    ours, theirs = Pipe()
    with ours, theirs, closing(Baton(directory)) as baton, closing(Baton(directory)) as other:
        baton.pass_on(PLAN)
        baton.clear(0)  # as if the holder before had ended before it woke the next one
        baton.mend(PLAN)
        with next(other.turns(PLAN, 0, ours)):
            assert other.current == 0


def test_a_holder_does_not_wait_for_a_coordinator_that_has_ended(directory: str) -> None:
    ours, theirs = Pipe()
    theirs.close()
    with ours, closing(Baton(directory)) as baton, pytest.raises(EOFError):
        next(baton.turns(PLAN, 1, ours)).__enter__()
