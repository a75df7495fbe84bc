"""The contenders of a row in turn: all are ready at once, and take slices one after the other.

Slices of different contenders in the same turn lie within the time that all of them need for one
slice each, so that they are a pair: what the machine did at that time it did to both.  Whoever
needs much longer than the others for a slice takes part in fewer turns.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from zodbshootout.client.outcome import Failed, Failure
from zodbshootout.scheduling.calibration import (
    MAX_LOOPS,
    choose_loops,
    choose_turns,
    turn_strides,
)

C = TypeVar("C", bound=Hashable)


class Taken(Protocol):
    """What a slice came to."""

    @property
    def value(self) -> float:
        """Seconds per iteration."""

    @property
    def on_clock(self) -> float:
        """Seconds from the start until the last client had done what counts."""


class Worker(Protocol):
    """A crew that is set up, and does nothing until it is told to.

    Every method raises :class:`Failed` when something went wrong; the worker then ends.
    """

    def start_attempt(self, loops: int) -> None:
        """Begin with :meth:`attempt`, and return at once."""

    def start_preparing(self) -> None:
        """Begin to prepare the next slice that counts, and return at once."""

    def wait(self) -> None:
        """Wait until what was begun is done."""

    def attempt(self, loops: int) -> Taken:
        """Take a slice that does not count."""

    def begin(self, loops: int, values: int, warmups: int) -> None:
        """Get ready for the slices that count."""

    def take_slice(self, number: int) -> Taken:
        """Take the next slice that counts, which has been prepared."""

    def start_finishing(self) -> None:
        """Begin to check everything, and return at once."""

    def finish(self) -> Any:
        """Wait until everything is checked; return the run."""

    def abandon(self) -> None:
        """End it at once, whatever it is doing."""


RUN_TIME = 1.8
"""Seconds that the slices of a run take for each contender, unless told otherwise."""


@dataclass(frozen=True)
class Effort:
    """How long and how often a cell is measured, in pyperf's terms."""

    processes: int
    """Runs (pyperf workers) of a cell; with a :attr:`precision` the fewest of them."""
    values: int
    """Values of a run, each of which is a slice; 0 takes as many as fit into :attr:`run_time`, and
    fewer of those who need longer for one."""
    warmups: int
    """Values of a run that are measured first and not counted."""
    loops: int
    """Iterations of a value; 0 calibrates."""
    min_time: float
    """Seconds that a value should take at least, which calibration aims at."""
    run_time: float = RUN_TIME
    """Seconds that the slices of a run take for each contender, on average over these."""
    precision: float = 0.0
    """Half of the width of intervals, as a part of a figure, that ends a row; 0 does not."""
    limit: float = 0.0
    """Seconds that everything takes at most, with a :attr:`precision`, unless it is 0."""
    cell_limit: float = 0.0
    """Seconds that a cell takes at most, on average, where there is no :attr:`limit`."""


@dataclass
class RowCalibration(Generic[C]):
    """What was decided for the contenders of a row, in its first run, and holds for the others."""

    effort: Effort
    fewest_loops: int = 1
    loops: dict[C, int] = field(default_factory=dict)
    turns: int = 0
    """Turns of a run, without those that warm up."""
    stride: dict[C, int] = field(default_factory=dict)
    """A contender takes a slice in one of so many turns; in each, where it is not named."""
    cheapest: float = 0.0
    """What the quickest contender's slice takes, with what lies off the clock, in seconds."""

    def __post_init__(self) -> None:
        self.turns = self.effort.values

    @property
    def all_turns(self) -> int:
        """Return how many turns a run has, with those that warm up."""
        return self.effort.warmups + self.turns

    def values(self, key: C) -> int:
        """Return how many values of a contender a run has."""
        return -(-self.turns // self.stride.get(key, 1))

    def takes_part(self, key: C, turn: int) -> bool:
        """Say whether a contender takes a slice in a turn, numbered from 0 on."""
        counting = turn - self.effort.warmups
        return counting < 0 or counting % self.stride.get(key, 1) == 0


def ordered(
    keys: Sequence[C], stride: Mapping[C, int], orders: dict[int, list[C]], chance: random.Random
) -> list[C]:
    """Return the order in which *keys* take their slices of a turn.

    Whoever is first in a turn finds the machine in another state than who is last.  So those that
    take part in the same turns do so in a random order one time, and in the reverse of it the next
    time: each of them comes before another one as often as after it.  *orders* has those of which
    the reverse is due, and is kept from one turn to the next.
    """
    by_stride: dict[int, list[C]] = {}
    for key in keys:
        by_stride.setdefault(stride.get(key, 1), []).append(key)
    for times, alike in by_stride.items():
        before = orders.pop(times, None)
        if before is not None and set(alike) <= set(before):
            alike[:] = [key for key in reversed(before) if key in alike]
        else:
            chance.shuffle(alike)
            orders[times] = list(alike)
    places = [times for times, alike in by_stride.items() for _ in alike]
    chance.shuffle(places)
    return [by_stride[times].pop(0) for times in places]


@dataclass(frozen=True)
class Timing:
    """What calibration found of a contender."""

    iteration: float
    """Seconds that an iteration takes."""
    off_clock: float
    """Seconds that a slice takes off the clock."""


@dataclass
class InterleavedRun(Generic[C]):
    """Workers of several contenders, measured in turn."""

    workers: dict[C, Worker]
    failed: Callable[[C, Failure], None]
    """Called when a worker has failed, after which it takes no part any more."""
    clock: Callable[[], float] = time.monotonic
    before_slice: Callable[[C], None] = lambda _: None
    """Called before each slice is prepared; it may raise :class:`Failed`."""

    def run(
        self, calibration: RowCalibration[C], order: random.Random, first: int = 0
    ) -> Iterator[tuple[C, Any]]:
        """Take all slices of a run; the turns are numbered from *first* on.

        Return the runs of those that did not fail, each as soon as it is finished.
        """
        self._decide(calibration, self._first_iterations(calibration))
        effort = calibration.effort
        self._each(
            lambda key: self.workers[key].begin(
                calibration.loops[key], calibration.values(key), effort.warmups
            )
        )
        orders: dict[int, list[C]] = {}
        for turn in range(calibration.all_turns):
            keys = [key for key in self.workers if calibration.takes_part(key, turn)]
            self._take_turn(ordered(keys, calibration.stride, orders, order), first + turn)
        self._each(lambda key: self.workers[key].start_finishing())
        for key in list(self.workers):
            run = self._one(key, lambda key: self.workers[key].finish())
            if key in self.workers:
                yield key, run

    def _take_turn(self, keys: Sequence[C], number: int) -> None:
        """Have *keys* prepare a slice each, all at the same time, and then take it one by one."""
        self._each(self.before_slice, keys)
        self._all_at_once(lambda key: self.workers[key].start_preparing(), keys)
        self._each(lambda key: self.workers[key].take_slice(number), keys)

    def _first_iterations(self, calibration: RowCalibration[C]) -> dict[C, float]:
        """Have each do an iteration; return the seconds it took, unless nobody asks.

        What a process does once, such as opening its first connections, is done by then.
        """
        if calibration.turns and all(key in calibration.loops for key in self.workers):
            self._all_at_once(lambda key: self.workers[key].start_attempt(1))
            return {}
        return self._each(lambda key: self.workers[key].attempt(1).value)

    def _decide(self, calibration: RowCalibration[C], first: dict[C, float]) -> None:
        """Choose what has not been chosen yet; *first* is what an iteration took each at first."""
        effort = calibration.effort
        undecided = [key for key in self.workers if key not in calibration.loops]
        if effort.loops and effort.values:
            calibration.loops |= dict.fromkeys(undecided, effort.loops)
            return
        found = self._each(lambda key: self._time(key, first[key], effort), undecided)
        if effort.loops:
            calibration.loops |= dict.fromkeys(found, effort.loops)
        else:
            seconds = {key: timing.iteration for key, timing in found.items()}
            calibration.loops |= choose_loops(
                seconds, effort.min_time, calibration.fewest_loops, calibration.loops.values()
            )
        if found and not effort.values:
            self._share_out(calibration, found)

    def _time(self, key: C, first: float, effort: Effort) -> Timing:
        """Take more and more iterations, until they take long enough to tell how long one does."""
        seconds, loops = first, effort.loops or 1
        while True:
            if not effort.loops:
                wanted = int(effort.min_time / max(seconds, 1e-9))
                loops = min(MAX_LOOPS, max(loops, min(8 * loops, wanted)))
            began = self.clock()
            taken = self.workers[key].attempt(loops)
            seconds = taken.value
            if effort.loops or loops == MAX_LOOPS or seconds * loops >= effort.min_time / 2:
                return Timing(seconds, self.clock() - began - taken.on_clock)
            loops *= 2

    def _share_out(self, calibration: RowCalibration[C], found: dict[C, Timing]) -> None:
        """Choose in which turns each takes a slice, and how many turns there are."""
        # At the end of a slice several clients have an iteration under way that does not count.
        further = 1 if calibration.fewest_loops > 1 else 0
        costs = {
            key: timing.iteration * (calibration.loops[key] + further) + timing.off_clock
            for key, timing in found.items()
        }
        calibration.cheapest = calibration.cheapest or min(costs.values())
        calibration.stride |= turn_strides(costs, calibration.cheapest)
        if not calibration.turns:
            calibration.turns = choose_turns(costs, calibration.stride, calibration.effort.run_time)

    def _all_at_once(self, start: Callable[[C], None], keys: Sequence[C] | None = None) -> None:
        """Have workers do something that is not timed, all at the same time."""
        self._each(start, keys)
        self._each(lambda key: self.workers[key].wait(), keys)

    def _each(self, action: Callable[[C], Any], keys: Sequence[C] | None = None) -> dict[C, Any]:
        """Do something with each worker, or those of some *keys*, that has not failed before.

        Return what came of it for those that have not failed now.
        """
        found = {}
        for key in list(self.workers) if keys is None else keys:
            if key not in self.workers:
                continue
            result = self._one(key, action)
            if key in self.workers:
                found[key] = result
        return found

    def _one(self, key: C, action: Callable[[C], Any]) -> Any:
        try:
            return action(key)
        except Failed as error:
            self.workers.pop(key).abandon()
            self.failed(key, error.failure)
            return None
