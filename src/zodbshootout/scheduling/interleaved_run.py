"""A run in which contenders take turns: all are ready, and one after another takes a slice.

Slices of different contenders in the same turn form pairs, since they are so close in time that
the machine treats them alike.  A contender with much longer slices takes part in fewer turns.

The turns of a run are divided into laps.  Before a lap, all contenders prepare their slices of the
lap; then they take them in turn; then they check them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic

from zodbshootout.model.outcome import Failed, Failure
from zodbshootout.scheduling.calibration import (
    MAX_LOOPS,
    C,
    Effort,
    RowCalibration,
    choose_loops,
    choose_turns,
    equal_loops,
    turn_strides,
)
from zodbshootout.scheduling.laps import Lap, Meter, carry_out
from zodbshootout.scheduling.stop_rules import Succession
from zodbshootout.workers.coordinator import Worker
from zodbshootout.workers.measuring import Slice


def ordered(
    keys: Sequence[C], stride: Mapping[C, int], orders: dict[int, list[C]], chance: random.Random
) -> list[C]:
    """Return the order in which *keys* take their slices of a turn.

    The machine may be in another state for the first slice in a turn than for the last.  So
    contenders with the same stride have a random order in one turn and the reverse order in the
    next: of any two, each comes first equally often.  *orders* maps a stride to the order that the
    next turn reverses; the caller passes the same dictionary for each turn.
    """
    by_stride: dict[int, list[C]] = {}
    for key in keys:
        by_stride.setdefault(stride.get(key, 1), []).append(key)
    for turns, alike in by_stride.items():
        previous = orders.pop(turns, None)
        if previous is not None and set(alike) <= set(previous):
            alike[:] = [key for key in reversed(previous) if key in alike]
        else:
            chance.shuffle(alike)
            orders[turns] = list(alike)
    places = [turns for turns, alike in by_stride.items() for _ in alike]
    chance.shuffle(places)
    return [by_stride[turns].pop(0) for turns in places]


@dataclass(frozen=True)
class Timing:
    """The durations that calibration measures."""

    iteration: float
    """Seconds that an iteration takes."""
    off_clock: float
    """Seconds of a slice that are off the clock."""
    waiting: float = 0.0
    """Seconds that clients wait for the scheduled start of an iteration, on average."""


@dataclass
class InterleavedRun(Generic[C]):
    """Workers of several contenders, measured in turn."""

    workers: dict[C, Worker]
    failed: Callable[[C, Failure], None]
    """A function that handles the failure of a worker; the run goes on without this worker."""
    has_tried: bool = False
    """Whether the workers do their first iterations without being told to."""
    clock: Callable[[], float] = time.monotonic
    meter: Meter[C] = field(default_factory=Meter)
    """Reads what the contenders' servers use."""
    carry_out: Callable[..., None] = carry_out
    """A function that has workers take the slices of a lap; see :func:`~.laps.carry_out`."""
    runs: Succession[C] = field(default_factory=Succession)
    """The runs that the workers make one after another."""
    while_checked: Callable[[], None] = lambda: None
    """A function that is called while contenders check the last run."""
    run_time: Callable[[], float] | None = None
    """A function that returns how many seconds a contender's slices in a run may take; without it,
    the run time of the effort applies."""
    _orders: dict[int, list[C]] = field(default_factory=dict)

    def run(
        self, calibration: RowCalibration[C], order: random.Random, first: int = 0
    ) -> Iterator[tuple[C, Any]]:
        """Take all slices of a run; *first* is the number of the first turn.

        Yield the run of each contender that did not fail, as soon as the run is finished.
        """
        if not self.runs.made:
            self._decide(calibration, self._first_iterations(calibration))
            self._for_each(self.runs.begin)
        effort = calibration.effort
        self._for_each(
            lambda key: self.workers[key].begin(
                calibration.loops[key],
                calibration.values(key),
                effort.warmups,
                calibration.latest.get(key, 0.0),
            )
        )
        for turns in calibration.laps():
            slices = self._take_lap(self._planned(turns, calibration, order, first))
            calibration.latest |= {key: taken[-1].value for key, taken in slices.items()}
            while going_on := self._going_on(slices):
                again = self._ordered(going_on, calibration, order)
                slices = self._take_lap([(key, first + turns[0]) for key in again])
        is_last = self.runs.is_last()
        self._for_each(lambda key: self.workers[key].start("finish", is_last))
        if is_last and self.workers:
            self.while_checked()
        for key in list(self.workers):
            run = self._one(key, lambda key: self.workers[key].finish())
            if key in self.workers:
                yield key, run

    def _going_on(self, slices: Mapping[C, Sequence[Slice]]) -> list[C]:
        """Return the contenders whose latest value needs another slice."""
        answers = self._for_each(lambda key: self.runs.goes_on(slices[key]), list(slices))
        return [key for key, goes_on in answers.items() if goes_on]

    def _planned(
        self, turns: Sequence[int], calibration: RowCalibration[C], order: random.Random, first: int
    ) -> Lap[C]:
        """Return the contender and the number of each slice of some *turns*, in order."""
        lap: list[tuple[C, int]] = []
        for turn in turns:
            keys = [key for key in self.workers if calibration.takes_part(key, turn)]
            lap += [(key, first + turn) for key in self._ordered(keys, calibration, order)]
        return lap

    def _take_lap(self, lap: Lap[C]) -> dict[C, Sequence[Slice]]:
        """Let contenders prepare their slices of a lap, take them in turn, and check them."""
        numbers: dict[C, list[int]] = {}
        for key, number in lap:
            numbers.setdefault(key, []).append(number)
        keys = list(numbers)
        self._for_each(lambda key: self.workers[key].start("prepare_lap", numbers[key]), keys)
        self._for_each(lambda key: self.workers[key].wait(), keys)
        self._for_each(self.runs.prepared, keys)
        self.carry_out(
            self.workers, [slice_ for slice_ in lap if slice_[0] in self.workers], self.meter,
            lambda key: self._one(key, lambda key: self.workers[key].wait()),
        )  # fmt: skip
        self._for_each(lambda key: self.workers[key].start("end_lap"), keys)
        slices = self._for_each(lambda key: self.workers[key].wait(), keys)
        for key, taken in slices.items():
            if len(keys) > 1:  # a single worker was waited for
                self.workers[key].spend(sum(one.on_clock for one in taken))
            self.meter.note(key, taken)
        return slices

    def _ordered(
        self, keys: Sequence[C], calibration: RowCalibration[C], order: random.Random
    ) -> list[C]:
        return ordered(keys, calibration.stride, self._orders, order)

    def _first_iterations(self, calibration: RowCalibration[C]) -> dict[C, float]:
        """Let each contender do a first, slow iteration; return the seconds if they are needed."""
        if self.has_tried:
            self._for_each(lambda key: self.workers[key].wait())
        if self.has_tried or not calibration.tries_first:
            return {}
        return self._for_each(lambda key: self.workers[key].attempt(1).value)

    def _decide(self, calibration: RowCalibration[C], first: dict[C, float]) -> None:
        """Choose loops and turns; *first* are the seconds of each contender's first iteration."""
        effort = calibration.effort
        undecided = [key for key in self.workers if key not in calibration.loops]
        if effort.loops and effort.values:
            calibration.loops |= dict.fromkeys(undecided, effort.loops)
            return
        timings = self._for_each(lambda key: self._time(key, first[key], effort), undecided)
        if effort.loops:
            calibration.loops |= dict.fromkeys(timings, effort.loops)
        else:
            seconds = {key: timing.iteration for key, timing in timings.items()}
            choose = equal_loops if calibration.numbered else choose_loops
            calibration.loops |= choose(
                seconds, effort.min_time, calibration.fewest_loops, calibration.loops.values()
            )
        if timings and not effort.values:
            self._share_out(calibration, timings)

    def _time(self, key: C, first: float, effort: Effort) -> Timing:
        """Increase the number of iterations until all together take long enough to be timed."""
        seconds, loops = first, effort.loops or 1
        while True:
            if not effort.loops:
                wanted = int(effort.min_time / max(seconds, 1e-9))
                loops = min(MAX_LOOPS, max(loops, min(8 * loops, wanted)))
            began = self.clock()
            taken = self.workers[key].attempt(loops)
            seconds = taken.value
            if effort.loops or loops == MAX_LOOPS or seconds * loops >= effort.min_time / 2:
                waiting = max(0.0, taken.on_clock / loops - seconds)
                return Timing(seconds, self.clock() - began - taken.on_clock, waiting)
            loops *= 2

    def _share_out(self, calibration: RowCalibration[C], timings: dict[C, Timing]) -> None:
        """Choose the turns in which each contender takes a slice, and the number of turns."""
        # Each of several clients goes on until all are done, which takes about one more iteration.
        uncounted = 1 if calibration.fewest_loops > 1 else 0
        costs = {
            key: timing.iteration * (calibration.loops[key] + uncounted) + timing.off_clock
            for key, timing in timings.items()
        }
        if calibration.numbered:
            costs = {
                key: cost + timings[key].waiting * calibration.loops[key]
                for key, cost in costs.items()
            }
        calibration.cheapest = calibration.cheapest or min(costs.values())
        if calibration.numbered:
            calibration.stride |= dict.fromkeys(costs, 1)
        else:
            calibration.stride |= turn_strides(costs, calibration.cheapest)
        if not calibration.turns:
            run_time = self.run_time() if self.run_time else calibration.effort.run_time
            calibration.effort = replace(calibration.effort, run_time=run_time)
            calibration.turns = choose_turns(costs, calibration.stride, run_time)

    def _for_each(
        self, action: Callable[[C], Any], keys: Sequence[C] | None = None
    ) -> dict[C, Any]:
        """Apply *action* to all *keys* whose workers have not failed; return the results."""
        results = {}
        for key in list(self.workers) if keys is None else keys:
            if key not in self.workers:
                continue
            result = self._one(key, action)
            if key in self.workers:
                results[key] = result
        return results

    def _one(self, key: C, action: Callable[[C], Any]) -> Any:
        try:
            return action(key)
        except Failed as error:
            self.workers.pop(key).abandon()
            self.failed(key, error.failure)
            return None
