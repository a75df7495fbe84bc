"""Laps: slices of several contenders that are prepared together, and checked together.

In a lap, the workers of the contenders pass the turn to each other; see
:mod:`zodbshootout.workers.baton`.  The coordinator only waits, unless it has to read between two
slices what servers have used.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Generic

from zodbshootout.scheduling.calibration import C
from zodbshootout.workers.baton import Baton
from zodbshootout.workers.coordinator import Worker, wait_for_news
from zodbshootout.workers.measuring import Slice, Turns

Lap = Sequence[tuple[C, int]]
"""The contender and the number of each slice, in the order in which they are taken."""


class Meter(Generic[C]):
    """Reads what is used for slices; this one reads nothing."""

    def begin(self, keys: Collection[C]) -> Collection[C]:  # noqa: ARG002
        """Read before the slices of *keys*; return those of which each slice has to be read."""
        return ()

    def read(self, key: C) -> None:
        """Read what has been used for *key* since the latest reading."""

    def note(self, key: C, taken: Sequence[Slice]) -> None:
        """Note the slices for which the latest readings of a key are."""


def carry_out(
    workers: Mapping[C, Worker], lap: Lap[C], meter: Meter[C], answered: Callable[[C], object]
) -> None:
    """Have *workers* take the slices of a *lap*, which they have prepared.

    *answered* is called for each worker that has taken its slices, has failed or has ended.  It
    removes failed workers from *workers*.
    """
    keys = list(dict.fromkeys(key for key, _ in lap))
    read_each = meter.begin(keys)
    if len(keys) > 1:
        _Carrying(workers, lap, keys, read_each, meter, answered).carry_out()
    elif keys:
        workers[keys[0]].start("take_lap", Turns([0] * len(lap)))
        answered(keys[0])
    for key in keys:
        if key in workers and key not in read_each:
            meter.read(key)


@dataclass
class _Carrying(Generic[C]):
    workers: Mapping[C, Worker]
    lap: Lap[C]
    keys: Sequence[C]
    read_each: Collection[C]
    meter: Meter[C]
    answered: Callable[[C], object]
    _has_ended: bool = False
    _plan: list[int] = field(default_factory=list)
    """The index of the holder of each turn: a worker, or the coordinator, which comes last."""
    _of: list[C] = field(default_factory=list)
    """The contender of each turn; a turn of the coordinator is for the slice before."""

    def carry_out(self) -> None:
        ours = len(self.keys)
        for key, _ in self.lap:
            self._plan.append(self.keys.index(key))
            self._of.append(key)
            if key in self.read_each:
                self._plan.append(ours)
                self._of.append(key)
        place = self.workers[self.keys[0]].output.path.parent
        with tempfile.TemporaryDirectory(prefix="lap-", dir=place) as directory:
            Baton.create(directory, ours + 1)
            with closing(Baton(directory)) as baton:
                for holder, key in enumerate(self.keys):
                    self.workers[key].start("take_lap", Turns(self._plan, holder, directory))
                baton.pass_on(self._plan)
                self._wait(baton, ours)

    def _wait(self, baton: Baton, ours: int) -> None:
        waiting = list(self.keys)
        latest, since = 0, time.monotonic()
        while waiting or self._has_turn(ours, baton):
            wait_for_news([self.workers[key] for key in waiting], baton.pipe(ours))
            number, now = baton.current, time.monotonic()
            if number != latest:
                latest, since = number, now
            holder = self._plan[number] if number < len(self._plan) else -1
            if holder == ours:
                baton.clear(ours)
                self.meter.read(self._of[number])
                baton.pass_on(self._plan, number)
                continue
            for key in list(waiting):
                index = self.keys.index(key)
                if self.workers[key].has_news(now - since if index == holder else 0.0):
                    waiting.remove(key)
                    self.answered(key)
                    if key not in self.workers:
                        self._has_ended = True
                        baton.mark_ended(index)
            if self._has_ended:
                baton.mend(self._plan)

    def _has_turn(self, holder: int, baton: Baton) -> bool:
        number = baton.current
        return 0 <= number < len(self._plan) and self._plan[number] == holder
