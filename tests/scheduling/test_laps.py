"""Laps of real workers, which pass the turn to each other."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.workers.place import Place
from zodbshootout.client.preparation import Preparation
from zodbshootout.guardian import Guardian
from zodbshootout.model.outcome import Failed
from zodbshootout.model.specification import ClientKind, CrewShape
from zodbshootout.scheduling.laps import Meter, carry_out
from zodbshootout.workers.coordinator import TimeLimit, Worker
from zodbshootout.workers.measuring import Measure, Slice

LAP = [("a", 0), ("b", 0), ("c", 0), ("c", 1), ("a", 1), ("b", 1), ("b", 2), ("c", 2), ("a", 2)]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Guardian() as guardian:
        yield Place(tmp_path, guardian)


@dataclass
class Noting(Meter[str]):
    """A meter that notes its calls, and has every slice of some contenders read."""

    each: Collection[str] = ()
    calls: list[str] = field(default_factory=list)

    def begin(self, keys: Collection[str]) -> Collection[str]:
        self.calls.append(f"begin {' '.join(keys)}")
        return self.each

    def read(self, key: str) -> None:
        self.calls.append(f"read {key}")


@dataclass
class Team:
    """Workers that have prepared a lap, and what happened to those that failed."""

    workers: dict[str, Worker]
    failures: dict[str, str] = field(default_factory=dict)

    def carry_out(self, meter: Meter[str] | None = None) -> None:
        carry_out(self.workers, LAP, meter or Meter(), self._answered)

    def _answered(self, name: str) -> None:
        try:
            self.workers[name].wait()
        except Failed as error:
            self.workers.pop(name).abandon()
            self.failures[name] = error.failure.cause

    def slices(self) -> dict[str, list[Slice]]:
        for worker in self.workers.values():
            worker.start("end_lap")
        return {name: worker.wait() for name, worker in self.workers.items()}

    def finish(self) -> None:
        for worker in self.workers.values():
            worker.start("finish", True)
            assert len(worker.finish().get_values()) == 3


@contextmanager
def team(place: Place, names: str = "abc", size: int = 1, **options: Any) -> Iterator[Team]:
    """Start workers of ``hot`` with the names that a lap has; let them prepare it."""
    crew = CrewShape(size, ClientKind.THREAD, shared=True)
    with ExitStack() as stack:
        fork_server = stack.enter_context(place.launcher.fork_server())
        workers = {}
        for name in names:
            hot = place.specification("hot", unit=ClientKind.THREAD)
            specification = replace(
                hot,
                storage=place.storage(name, **options.get(name, {})),
                parameters=replace(hot.parameters, crew=crew),
            )
            fork_server.prepare(Preparation(specification))
            worker = stack.enter_context(
                fork_server.measure(Measure(specification, {"contender": name}))
            )
            worker.wait()
            worker.begin(loops=4, values=3, warmups=0)
            worker.call("prepare_lap", [0, 1, 2])
            workers[name] = worker
        yield Team(workers)
    place.assert_tidy()


def order(slices: dict[str, list[Slice]]) -> Sequence[tuple[str, int]]:
    """Return the contender and the number of each slice, by the instants of their starts."""
    starts = {
        (name, number): one.start
        for name, taken in slices.items()
        for number, one in enumerate(taken)
    }
    return sorted(starts, key=starts.__getitem__)


@pytest.mark.parametrize("size", [1, 3])
def test_workers_take_slices_in_the_order_of_the_lap_and_one_at_a_time(
    place: Place, size: int
) -> None:
    with team(place, size=size) as workers:
        workers.carry_out()
        slices = workers.slices()
        assert order(slices) == LAP
        periods = [(slices[name][number].start, slices[name][number].end) for name, number in LAP]
        assert [at for period in periods for at in period] == sorted(sum(periods, ()))
        assert all(one.done >= 4 * size for taken in slices.values() for one in taken)
        workers.finish()


def test_servers_of_several_contenders_are_read_after_each_slice(place: Place) -> None:
    meter = Noting(each=("a", "c"))
    with team(place) as workers:
        workers.carry_out(meter)
        assert meter.calls == [
            "begin a b c", *(f"read {name}" for name, _ in LAP if name in "ac"), "read b",
        ]  # fmt: skip
        assert order(workers.slices()) == LAP


def test_a_worker_that_is_killed_in_its_turn_or_before_fails_alone(place: Place) -> None:
    with team(place) as workers:
        os.kill(workers.workers["b"].pid, signal.SIGKILL)
        workers.carry_out()
        assert workers.failures == {"b": "the worker was killed by SIGKILL"}
        slices = workers.slices()
        assert order(slices) == [one for one in LAP if one[0] != "b"]
        workers.finish()


def test_a_worker_that_hangs_in_its_turn_exceeds_its_time_limit_and_others_go_on(
    place: Place,
) -> None:
    with team(place) as workers:
        workers.workers["c"].limit = TimeLimit(1.0, "--timeout")
        os.kill(workers.workers["c"].pid, signal.SIGSTOP)
        workers.carry_out()
        assert workers.failures == {"c": "not done within its time limit of 1 s (--timeout)"}
        assert order(workers.slices()) == [one for one in LAP if one[0] != "c"]


def test_if_all_workers_end_the_lap_ends(place: Place) -> None:
    with team(place) as workers:
        for worker in workers.workers.values():
            os.kill(worker.pid, signal.SIGKILL)
        workers.carry_out(Noting(each=("a", "b", "c")))
        assert set(workers.failures) == {"a", "b", "c"}
