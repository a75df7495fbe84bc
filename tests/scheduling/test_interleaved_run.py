"""The order in which workers take slices, and the handling of workers that fail."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest

from tests.scheduling.faked_laps import carry_out
from zodbshootout.model.outcome import Failed, Failure
from zodbshootout.scheduling.calibration import Effort, RowCalibration
from zodbshootout.scheduling.interleaved_run import InterleavedRun
from zodbshootout.scheduling.laps import Meter
from zodbshootout.scheduling.stop_rules import Succession
from zodbshootout.workers.measuring import Slice

Event = tuple[str, str, int]
"""An order, the worker that got it, and the loops or the number of the slice."""


@dataclass
class Machine:
    """The clock and the event log that all workers of a test share."""

    now: float = 0.0
    events: list[Event] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def did(self, order: str) -> list[tuple[str, int]]:
        return [(name, number) for action, name, number in self.events if action == order]

    def slices(self) -> list[list[str]]:
        """Return the workers that took a slice in each turn."""
        turns: dict[int, list[str]] = {}
        for name, number in self.did("slice"):
            turns.setdefault(number, []).append(name)
        assert list(turns) == sorted(turns)
        return list(turns.values())


@dataclass
class FakeWorker:
    """A worker that notes its orders, takes exactly the given time, and may fail at one order."""

    name: str
    machine: Machine
    seconds: float = 0.01
    """Seconds of an iteration."""
    off_clock: float = 0.0
    """Seconds of a slice off the clock, in addition to its iterations."""
    first: float | None = None
    """Seconds of the very first iteration, if they differ."""
    fails_at: tuple[str, int] | None = None
    """The order at which it fails, and the number of such orders before that one."""
    searches: int = 0
    """Slices that it takes before the last one of its first value."""
    abandoned: int = 0
    _begun: list[Callable[[], Any]] = field(default_factory=list)
    _taken: list[Slice] = field(default_factory=list)

    def start(self, name: str, *args: Any) -> None:
        if name == "attempt":
            self._begun = [lambda: self._slice(name, *args, *args)]
        elif name == "prepare_lap":
            self._taken = []
            self._begun = [lambda: self._note("prepare", len(*args))]
        elif name == "end_lap":
            self._begun = [lambda: self._taken]
        else:
            self._begun = [lambda: self._note(name, 0)]

    def wait(self) -> Any:
        return self._begun.pop()()

    def call(self, name: str, *args: Any) -> None:
        self.start(name, *args)
        self.wait()

    def attempt(self, loops: int) -> Slice:
        return self._slice("attempt", loops, loops)

    def begin(self, loops: int, values: int, warmups: int, expected: float = 0.0) -> None:
        self._note("begin", loops)
        self.loops = loops
        self._note("values", values)
        self._note("warmups", warmups)

    def take(self, number: int) -> None:
        """Take a slice of the lap; a failure is raised by :meth:`wait`."""
        try:
            taken = self._slice("slice", number, self.loops)
        except Failed as error:
            self._begun = [partial(_raise, error)]
            raise
        self.searches -= 1
        self._taken.append(replace(taken, goes_on=self.searches >= 0))
        self._begun = [lambda: None]

    def spend(self, seconds: float) -> None:
        pass

    def finish(self) -> str:
        self.wait()
        return f"run of {self.name}"

    def abandon(self) -> None:
        self.abandoned += 1

    def _slice(self, action: str, number: int, loops: int) -> Slice:
        self._note(action, number)
        is_first = len([event for event in self.machine.events if event[1] == self.name]) == 1
        took = self.first if is_first and self.first is not None else self.seconds
        self.machine.now += took * loops + self.off_clock
        return Slice(took, took * loops)

    def _note(self, action: str, number: int) -> None:
        nth = sum(event[:2] == (action, self.name) for event in self.machine.events)
        self.machine.events.append((action, self.name, number))
        if self.fails_at == (action, nth):
            raise Failed(Failure(f"{self.name} broke"))


def _raise(error: Exception) -> None:
    raise error


EFFORT = Effort(processes=1, values=5, warmups=0, loops=4, min_time=0.1)


def workers_of(machine: Machine, names: Sequence[str], **more: Any) -> dict[str, FakeWorker]:
    return {name: FakeWorker(name, machine, **more) for name in names}


@dataclass
class Outcome:
    """The outcome of a run."""

    runs: Mapping[str, str]
    failures: Mapping[str, str]


def run(
    machine: Machine,
    workers: dict[str, FakeWorker],
    calibration: RowCalibration[str],
    seed: int = 0,
    **more: Any,
) -> Outcome:
    failures: dict[str, str] = {}

    def failed(name: str, failure: Failure) -> None:
        assert name not in failures
        failures[name] = failure.cause

    taking: Any = dict(workers)
    turns = InterleavedRun[str](taking, failed, clock=machine.clock, carry_out=carry_out, **more)
    return Outcome(dict(turns.run(calibration, random.Random(seed))), failures)


def test_trap_13_every_worker_takes_one_slice_per_turn_before_the_next_turn() -> None:
    machine = Machine()
    outcome = run(machine, workers_of(machine, "abcd"), RowCalibration(EFFORT))
    # Slice k of every worker comes after all slices k-1 and before all slices k+1: the slices k
    # of two workers are a pair.
    assert [number for _, number in machine.did("slice")] == [k for k in range(5) for _ in "abcd"]
    assert all(sorted(turn) == list("abcd") for turn in machine.slices())
    assert outcome.runs == {name: f"run of {name}" for name in "abcd"}


def test_searching_workers_take_their_extra_slices_in_turn() -> None:
    machine = Machine()
    workers = workers_of(machine, "abc")
    workers["a"].searches, workers["b"].searches = 3, 1
    run(machine, workers, RowCalibration(replace(EFFORT, values=2)))
    first, second = machine.slices()
    assert (sorted(first[:3]), sorted(first[3:5]), first[5:]) == ([*"abc"], [*"ab"], [*"aa"])
    assert sorted(second) == ["a", "b", "c"]


def test_trap_13_no_worker_always_comes_first() -> None:
    machine = Machine()
    effort = Effort(processes=1, values=60, warmups=0, loops=1, min_time=0.1)
    run(machine, workers_of(machine, "abc"), RowCalibration(effort))
    firsts = Counter(turn[0] for turn in machine.slices())
    assert set(firsts) == set("abc")
    assert min(firsts.values()) >= 10


def test_workers_of_equal_stride_come_first_equally_often() -> None:
    machine = Machine()
    workers = workers_of(machine, "abcd")
    for name, seconds in {"a": 0.1, "b": 0.1, "c": 0.45, "d": 0.45}.items():
        workers[name].seconds = seconds
    effort = Effort(processes=1, values=0, warmups=0, loops=1, min_time=0.1, run_time=1.71)
    calibration = RowCalibration[str](effort)
    run(machine, workers, calibration)
    assert calibration.stride == {"a": 1, "b": 1, "c": 4, "d": 4}
    turns = machine.slices()
    assert len(turns) == 16
    for one, other in ("ab", "cd"):
        first = [turn.index(one) < turn.index(other) for turn in turns if one in turn]
        # In each pair of consecutive turns both orders occur once.
        assert all(now != then for now, then in zip(first[::2], first[1::2], strict=True))
        assert first[::2].count(True) not in {0, len(first) // 2} or len(first) < 8
    # Chance decides between workers of different strides.
    assert len({turn.index("a") < turn.index("c") for turn in turns if "c" in turn}) == 2


def test_the_order_of_slices_depends_on_the_seed_alone() -> None:
    def order(seed: int, **more: Any) -> list[list[str]]:
        machine = Machine()
        run(machine, workers_of(machine, "abcd", **more), RowCalibration(EFFORT), seed)
        return machine.slices()

    assert order(1) == order(1) == order(1, seconds=7.0, off_clock=3.0)
    assert order(1) != order(2)


def test_warm_ups_are_taken_in_turn_like_all_other_slices() -> None:
    machine = Machine()
    effort = Effort(processes=1, values=3, warmups=2, loops=1, min_time=0.1)
    run(machine, workers_of(machine, "ab"), RowCalibration(effort))
    assert [sorted(turn) for turn in machine.slices()] == [["a", "b"]] * 5
    assert machine.did("values") == [("a", 3), ("b", 3)]
    assert machine.did("warmups") == [("a", 2), ("b", 2)]


def test_all_workers_prepare_their_slices_before_the_first_of_a_turn_is_taken() -> None:
    machine = Machine()
    run(machine, workers_of(machine, "abc"), RowCalibration(EFFORT))
    actions = [action for action, _, _ in machine.events if action in {"prepare", "slice"}]
    assert actions == (["prepare"] * 3 + ["slice"] * 3) * 5


def test_slices_of_many_turns_are_prepared_at_once_as_far_as_there_is_room() -> None:
    machine = Machine()
    workers = workers_of(machine, "ab")
    calibration = RowCalibration[str](replace(EFFORT, warmups=1), at_once=9)
    run(machine, workers, calibration)
    # Nine iterations are two slices; warm-ups have a lap of their own.
    for name in "ab":
        assert [n for worker, n in machine.did("prepare") if worker == name] == [1, 2, 2, 1]
    assert [sorted(turn) for turn in machine.slices()] == [["a", "b"]] * 6


def test_a_worker_with_longer_slices_has_fewer_of_them_in_a_lap() -> None:
    machine = Machine()
    workers = workers_of(machine, "ab")
    workers["b"].seconds = 0.4
    effort = Effort(processes=1, values=0, warmups=0, loops=1, min_time=0.1, run_time=8.0)
    calibration = RowCalibration[str](effort, at_once=100)
    run(machine, workers, calibration)
    assert calibration.stride == {"a": 1, "b": 8}
    assert machine.did("prepare") == [
        ("a", calibration.turns), ("b", calibration.values("b")),
    ]  # fmt: skip


def test_a_worker_with_longer_slices_takes_part_in_fewer_turns() -> None:
    machine = Machine()
    workers = workers_of(machine, "abcd")
    for name, seconds in {"a": 0.1, "b": 0.13, "c": 0.45, "d": 60.0}.items():
        workers[name].seconds = seconds
    effort = Effort(processes=1, values=0, warmups=1, loops=1, min_time=0.1, run_time=1.0)
    calibration = RowCalibration[str](effort)
    run(machine, workers, calibration)
    assert calibration.stride == {"a": 1, "b": 1, "c": 4, "d": 8}
    # The slowest takes at least three values, not counting the warm-up.
    assert calibration.turns == 17
    assert dict(machine.did("values")) == {"a": 17, "b": 17, "c": 5, "d": 3}
    taken = {name: [n for worker, n in machine.did("slice") if worker == name] for name in workers}
    assert taken["a"] == taken["b"] == list(range(18))
    # Each slice of a slower worker is paired with one of the others.
    assert taken["c"] == [0, 1, 5, 9, 13, 17]
    assert taken["d"] == [0, 1, 9, 17]


def test_the_stride_of_a_later_worker_is_relative_to_the_fastest_earlier_one() -> None:
    effort = Effort(processes=1, values=0, warmups=0, loops=1, min_time=0.1, run_time=1.0)
    calibration = RowCalibration[str](effort)
    first, second = Machine(), Machine()
    run(first, workers_of(first, "a", seconds=0.1), calibration)
    turns = calibration.turns
    run(second, workers_of(second, "b", seconds=0.25), calibration)
    assert (calibration.stride, calibration.turns) == ({"a": 1, "b": 2}, turns)


def test_all_workers_begin_before_the_first_slice_and_finish_after_the_last() -> None:
    machine = Machine()
    run(machine, workers_of(machine, "abc"), RowCalibration(EFFORT))
    actions = [action for action, _, _ in machine.events if action in {"begin", "slice", "finish"}]
    assert actions == ["begin"] * 3 + ["slice"] * 15 + ["finish"] * 3


def test_trap_14_contenders_of_similar_speed_do_the_same_number_of_iterations() -> None:
    machine = Machine()
    workers = workers_of(machine, "abc")
    for name, seconds in {"a": 0.011, "b": 0.02, "c": 0.03}.items():
        workers[name].seconds = seconds
    calibration = RowCalibration[str](
        Effort(processes=1, values=2, warmups=0, loops=0, min_time=0.1)
    )
    run(machine, workers, calibration)
    assert machine.did("begin") == [("a", 16), ("b", 8), ("c", 8)]
    assert calibration.loops == {"a": 16, "b": 8, "c": 8}


def test_calibration_takes_no_counted_slice_and_ignores_its_first_attempt() -> None:
    machine = Machine()
    calibration = RowCalibration[str](
        Effort(processes=1, values=2, warmups=0, loops=0, min_time=0.1)
    )
    # The first iteration opens connections, so it would make the worker look slow.
    run(machine, workers_of(machine, "a", seconds=0.001, first=0.04), calibration)
    attempts = [loops for _, loops in machine.did("attempt")]
    assert attempts[0] == 1
    assert attempts == sorted(attempts)
    assert calibration.loops == {"a": 128}
    assert len(machine.did("slice")) == 2


def test_calibration_continues_until_an_attempt_takes_long_enough() -> None:
    machine = Machine()
    calibration = RowCalibration[str](
        Effort(processes=1, values=1, warmups=0, loops=0, min_time=0.1)
    )
    run(machine, workers_of(machine, "a", seconds=2.0**-20), calibration)
    attempts = [loops for _, loops in machine.did("attempt")]
    assert attempts[-1] * 2.0**-20 >= 0.1 / 2 or attempts[-1] == 2**16
    assert all(more <= 16 * less for less, more in itertools.pairwise(attempts))


def test_given_loops_apply_to_all_workers() -> None:
    machine = Machine()
    workers = workers_of(machine, "ab")
    workers["b"].seconds = 100.0
    run(machine, workers, RowCalibration(EFFORT, fewest_loops=32))
    assert machine.did("begin") == [("a", 4), ("b", 4)]
    assert machine.did("attempt") == [("a", 1), ("b", 1)]


def test_a_benchmark_may_need_more_iterations_than_the_minimum_time_does() -> None:
    machine = Machine()
    calibration = RowCalibration[str](
        Effort(processes=1, values=1, warmups=0, loops=0, min_time=0.1), fewest_loops=32
    )
    run(machine, workers_of(machine, "a", seconds=0.09), calibration)
    assert machine.did("begin") == [("a", 32)]


def test_a_run_has_as_many_slices_as_fit_including_their_off_clock_time() -> None:
    machine = Machine()
    effort = Effort(processes=1, values=0, warmups=0, loops=4, min_time=0.1, run_time=2.0)
    calibration = RowCalibration[str](effort)
    run(machine, workers_of(machine, "ab", seconds=0.015, off_clock=0.04), calibration)
    # A slice takes 4 * 0.015 + 0.04 seconds, and each contender has 2 seconds.
    assert calibration.turns in {19, 20}
    assert len(machine.slices()) == calibration.turns


def test_later_runs_keep_the_loops_strides_and_turns_of_the_first() -> None:
    calibration = RowCalibration[str](
        Effort(processes=2, values=0, warmups=0, loops=0, min_time=0.1)
    )
    first, second = Machine(), Machine()
    run(first, workers_of(first, "ab", seconds=0.01), calibration)
    decided = dict(calibration.loops), dict(calibration.stride), calibration.turns
    run(second, workers_of(second, "ab", seconds=5.0), calibration)
    assert (calibration.loops, calibration.stride, calibration.turns) == decided
    assert second.did("begin") == first.did("begin")
    assert second.did("attempt") == [("a", 1), ("b", 1)]


def test_a_contender_measured_later_does_as_many_iterations_as_earlier_ones() -> None:
    """Measure a contender by itself, after the others of its row."""
    calibration = RowCalibration[str](
        Effort(processes=1, values=1, warmups=0, loops=0, min_time=0.1)
    )
    first, second = Machine(), Machine()
    run(first, workers_of(first, "a", seconds=0.0120), calibration)
    run(second, workers_of(second, "b", seconds=0.0130), calibration)
    assert calibration.loops == {"a": 16, "b": 16}


POINTS = [
    ("attempt", 0), ("attempt", 1), ("attempt", 2), ("begin", 0), ("prepare", 0),
    ("slice", 0), ("slice", 1), ("prepare", 2), ("slice", 2), ("finish", 0),
]  # fmt: skip


@pytest.mark.parametrize("point", POINTS)
def test_trap_15_a_worker_that_fails_at_any_point_fails_alone(point: tuple[str, int]) -> None:
    machine = Machine()
    workers = workers_of(machine, "abc", seconds=0.001)
    workers["b"].fails_at = point
    effort = Effort(processes=1, values=0, warmups=0, loops=0, min_time=0.1, run_time=0.5)
    outcome = run(machine, workers, RowCalibration(effort))
    assert outcome.failures == {"b": "b broke"}
    assert outcome.runs == {"a": "run of a", "c": "run of c"}
    assert {name: worker.abandoned for name, worker in workers.items()} == {"a": 0, "b": 1, "c": 0}
    turns = machine.slices()
    assert all({"a", "c"} <= set(turn) for turn in turns)
    # The failed worker gets no more orders.
    last = max(number for number, event in enumerate(machine.events) if event[1] == "b")
    action, nth = point
    assert machine.events[last][0] == action
    assert (
        len(machine.did(action)) - len([x for x in machine.did(action) if x[0] != "b"]) == nth + 1
    )


@pytest.mark.parametrize("point", POINTS)
def test_there_is_no_run_and_no_other_error_if_all_workers_fail(point: tuple[str, int]) -> None:
    machine = Machine()
    workers = workers_of(machine, "ab", seconds=0.001, fails_at=point)
    calibration = RowCalibration[str](
        Effort(processes=1, values=0, warmups=0, loops=0, min_time=0.1, run_time=0.5)
    )
    outcome = run(machine, workers, calibration)
    assert outcome.runs == {}
    assert outcome.failures == {"a": "a broke", "b": "b broke"}


def test_a_contender_is_calibrated_afresh_if_all_earlier_ones_failed() -> None:
    calibration = RowCalibration[str](
        Effort(processes=1, values=0, warmups=0, loops=0, min_time=0.1, run_time=0.5)
    )
    first, second = Machine(), Machine()
    run(first, workers_of(first, "a", fails_at=("attempt", 0)), calibration)
    assert (calibration.loops, calibration.turns) == ({}, 0)
    run(second, workers_of(second, "b", seconds=0.1), calibration)
    assert calibration.loops == {"b": 1}
    assert calibration.turns == 5


def test_an_interrupt_propagates_without_further_slices() -> None:
    machine = Machine()

    class Interrupting(Meter[str]):
        def begin(self, keys: Collection[str]) -> Collection[str]:
            if len(machine.did("slice")) == 4:
                raise KeyboardInterrupt
            return super().begin(keys)

    with pytest.raises(KeyboardInterrupt):
        run(machine, workers_of(machine, "ab"), RowCalibration(EFFORT), meter=Interrupting())
    assert len(machine.did("slice")) == 4


def test_workers_stay_for_another_run_until_the_last() -> None:
    class Two(Succession[str]):
        def wanted(self) -> int:
            return 2

    machine = Machine()
    workers: Any = workers_of(machine, "ab")
    turns = InterleavedRun(workers, lambda *_: None, runs=Two(), carry_out=carry_out)
    calibration = RowCalibration[str](replace(EFFORT, loops=0, values=3))
    made = [list(turns.run(calibration, random.Random(1), first)) for first in (0, 3)]
    assert made == [[("a", "run of a"), ("b", "run of b")]] * 2
    assert [len(turn) for turn in machine.slices()] == [2] * 6
    # Calibration is that of the first run.
    attempts = [at for at, (order, *_) in enumerate(machine.events) if order == "attempt"]
    assert max(attempts) < next(
        at for at, (order, *_) in enumerate(machine.events) if order == "slice"
    )
