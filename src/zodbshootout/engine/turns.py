"""The contenders of a row in turn: all are ready at once, and take slices one after the other.

Slice k of one contender and slice k of another lie within the time that all of them need for one
slice each, so that they are a pair: what the machine did at that time it did to both.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from zodbshootout.client.outcome import Failure
from zodbshootout.engine.calibration import MOST_LOOPS, choose_loops, choose_values

C = TypeVar("C", bound=Hashable)


class WorkerFailed(Exception):  # noqa: N818
    """A worker that did not do what it was told; ``failure`` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.cause)
        self.failure = failure


class Taken(Protocol):
    """What a slice came to."""

    @property
    def value(self) -> float:
        """Seconds per iteration."""

    @property
    def on_clock(self) -> float:
        """Seconds from the start until the last client had done what counts."""


class Worker(Protocol):
    """A crew that is set up, and does nothing until it is its turn.

    Every method raises :class:`WorkerFailed` when something went wrong; the worker then ends.
    """

    def attempt(self, loops: int, *, whole: bool = False) -> Taken:
        """Take a slice that does not count; a *whole* one takes as long as one that does."""

    def begin(self, loops: int, values: int, warmups: int) -> None:
        """Get ready for the slices that count."""

    def take_slice(self, number: int) -> Taken:
        """Take the next slice that counts."""

    def finish(self) -> Any:
        """Check everything; return the run."""

    def abandon(self) -> None:
        """End it at once, whatever it is doing."""


RUN_TIME = 1.8
"""Seconds that the slices of a run take for each contender, unless told otherwise."""


@dataclass(frozen=True)
class Effort:
    """How long and how often a cell is measured, in pyperf's terms."""

    processes: int
    """Runs (pyperf workers) of a cell."""
    values: int
    """Values of a run, each of which is a slice; 0 takes as many as fit into :attr:`run_time`."""
    warmups: int
    """Values of a run that are measured first and not counted."""
    loops: int
    """Iterations of a value; 0 calibrates."""
    min_time: float
    """Seconds that a value should take at least, which calibration aims at."""
    run_time: float = RUN_TIME
    """Seconds that the slices of a run take for each contender, on average over these."""


@dataclass
class Course(Generic[C]):
    """What was decided for the contenders of a row, in its first run, and holds for the others."""

    effort: Effort
    fewest_loops: int = 1
    loops: dict[C, int] = field(default_factory=dict)
    values: int = 0

    def __post_init__(self) -> None:
        self.values = self.effort.values

    @property
    def slices(self) -> int:
        """Return how many slices each contender takes in a run."""
        return self.effort.warmups + self.values


@dataclass
class Turns(Generic[C]):
    """Workers of several contenders, measured in turn."""

    workers: dict[C, Worker]
    failed: Callable[[C, Failure], None]
    """Called when a worker has failed, after which it takes no part any more."""
    clock: Callable[[], float] = time.monotonic
    before_slice: Callable[[C], None] = lambda _: None
    """Called before each slice; it may raise :class:`WorkerFailed`."""

    def run(
        self, course: Course[C], order: random.Random, first: int = 0
    ) -> Iterator[tuple[C, Any]]:
        """Take all slices of a run, numbered from *first* on.

        Return the runs of those that did not fail, each as soon as it is finished.
        """
        # What a process does once, such as opening its first connections, is done by now.
        took = self._each(lambda key: self.workers[key].attempt(1).value)
        self._decide(course, took)
        effort = course.effort
        self._each(
            lambda key: self.workers[key].begin(course.loops[key], course.values, effort.warmups)
        )
        for number in range(first, first + course.slices):
            keys = list(self.workers)
            order.shuffle(keys)
            for key in keys:
                self._one(key, partial(self._take, number=number))
        for key in list(self.workers):
            run = self._one(key, lambda key: self.workers[key].finish())
            if key in self.workers:
                yield key, run

    def _take(self, key: C, *, number: int) -> Taken:
        self.before_slice(key)
        return self.workers[key].take_slice(number)

    def _decide(self, course: Course[C], took: dict[C, float]) -> None:
        """Choose what has not been chosen yet."""
        undecided = [key for key in self.workers if key not in course.loops]
        if course.effort.loops:
            course.loops |= dict.fromkeys(undecided, course.effort.loops)
        elif undecided:
            seconds = {
                key: per_iteration
                for key in undecided
                if (per_iteration := self._one(key, self._seconds_of_more(took, course)))
                is not None
            }
            course.loops |= choose_loops(
                seconds, course.effort.min_time, course.fewest_loops, course.loops.values()
            )
        if not course.values:
            costs = self._each(lambda key: self._cost(key, course.loops[key]))
            if costs:
                course.values = choose_values(costs.values(), course.effort.run_time)

    def _seconds_of_more(self, took: dict[C, float], course: Course[C]) -> Callable[[C], float]:
        """Return what times more and more iterations, until they take long enough to tell."""

        def time_more(key: C) -> float:
            seconds, loops = took[key], 1
            while seconds * loops < course.effort.min_time / 2 and loops < MOST_LOOPS:
                wanted = course.effort.min_time / max(seconds, 1e-9)
                loops = min(MOST_LOOPS, loops * 16, max(loops * 2, int(wanted)))
                seconds = self.workers[key].attempt(loops).value
            return seconds

        return time_more

    def _cost(self, key: C, loops: int) -> float:
        """Return the seconds that a slice takes, with what lies off the clock."""
        began = self.clock()
        self.workers[key].attempt(loops, whole=True)
        return self.clock() - began

    def _each(self, action: Callable[[C], Any]) -> dict[C, Any]:
        """Do something with every worker; return what came of it for those that did not fail."""
        found = {}
        for key in list(self.workers):
            result = self._one(key, action)
            if key in self.workers:
                found[key] = result
        return found

    def _one(self, key: C, action: Callable[[C], Any]) -> Any:
        try:
            return action(key)
        except WorkerFailed as error:
            self.workers.pop(key).abandon()
            self.failed(key, error.failure)
            return None
