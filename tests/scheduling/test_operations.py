"""Slices before, during and after an operation, with workers of which only the times are real."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyperf
import pytest

from tests.runs import contender, run
from tests.scheduling.faked_laps import carry_out
from zodbshootout.model.outcome import Failed, Failure
from zodbshootout.model.specification import (
    PHASES,
    BenchmarkWords,
    CrewShape,
    Parameters,
    Specification,
    Storage,
)
from zodbshootout.model.storage_facts import Limit, Sharing
from zodbshootout.results.cell import Cell
from zodbshootout.scheduling.calibration import Effort, RowCalibration
from zodbshootout.scheduling.interleaved_run import InterleavedRun
from zodbshootout.scheduling.operations import (
    MOST_AFTER,
    Phases,
    Restart,
    is_elsewhere,
    loops_of_phase,
    operation_refusal,
    slices_before,
)
from zodbshootout.servers import ServerFailed
from zodbshootout.workers.measuring import Slice

AT_A_RATE = Parameters(CrewShape(2), rate=100.0, during="pack", phase="before")
USUAL = 0.005
"""The usual 99th percentile, in seconds."""


@dataclass
class Stalling:
    """A worker whose slices take 2 seconds, and that packs from one instant to another.

    What lies between two slices takes a tenth of a second.
    """

    lasts: float
    """Seconds that packing takes."""
    p99: Callable[[float], float]
    """The 99th percentile of a slice, by the seconds since packing has ended."""
    now: float = 0.0
    began: float = 1e9
    calls: list[str] = field(default_factory=list)
    taken: list[Slice] = field(default_factory=list)

    def start(self, name: str, *args: Any) -> None:
        self.calls.append(f"{name} {args[0]}" if name == "finish" else name)

    def call(self, name: str, *args: Any) -> Any:
        self.start(name, *args)
        if name == "start_operation":
            self.began = self.now
        elif name == "operation_times":
            ended = self.began + self.lasts
            return (self.began, ended) if ended <= self.now else None
        elif name == "finish_operation":
            return {"operation_freed_objects": 7}
        return None

    def wait(self) -> list[Slice]:
        return self.taken[-1:]

    def attempt(self, loops: int) -> Slice:
        self.calls.append("attempt")
        return Slice(0.001, 0.001 * loops)

    def begin(self, loops: int, values: int, warmups: int, expected: float = 0.0) -> None:
        assert (loops, values, warmups) == (100, 1, 0)
        self.calls.append("begin")

    def take(self, number: int) -> None:
        self.calls.append(f"slice of {number}")
        began = self.now + 0.1
        self.now = began + 2
        since = began - self.began - self.lasts
        self.taken.append(Slice(0.001, 2.0, start=began, end=self.now, p99=self.p99(since)))

    def finish(self) -> pyperf.Benchmark:
        return run(0.001)

    def abandon(self) -> None:
        self.calls.append("abandon")


def phases(worker: Any, parameters: Parameters = AT_A_RATE) -> dict[str, Any]:
    """Return the metadata of the run of each phase."""
    cells = [
        Cell("add", "a", replace(parameters, phase=phase), BenchmarkWords("Add"))
        for phase in PHASES
    ]
    specification = Specification(Storage(), "pack", parameters)
    runs = Phases(cells, worker, worker, specification)
    effort = Effort(processes=1, values=1, warmups=0, loops=0, min_time=0.01)
    calibration = RowCalibration(effort, loops={cells[0]: 100}, tries_first=False)

    def fail(_: Cell, failure: Failure) -> None:
        raise AssertionError(failure)

    taking = InterleavedRun({cells[0]: worker}, fail, carry_out=carry_out, runs=runs)
    made = {}
    for number in (7, 8, 9):
        ((cell, one),) = taking.run(calibration, random.Random(0), number)
        labelled = runs.labelled(cell, one)
        made[labelled.parameters.phase] = one.get_metadata()
    assert runs.has_ended
    return made


def steady(since: float) -> float:
    return USUAL


def test_slices_are_taken_before_while_and_after_the_operation_lasts() -> None:
    worker = Stalling(5.0, steady)
    taken = phases(worker)
    assert list(taken) == ["before", "during", "after"]
    assert taken["during"]["operation_s"] == pytest.approx(5.0)
    again = ["prepare_lap", "slice of 8", "end_lap", "operation_times"]
    assert worker.calls == [
        "prepare_operation", "attempt",
        "begin", *["prepare_lap", "slice of 7", "end_lap"] * 3, "finish False",
        "begin", "prepare_lap", "start_operation", *again[1:], *again * 2, "finish False",
        "begin", *["prepare_lap", "slice of 9", "end_lap"] * 3, "finish_operation", "finish True",
    ]  # fmt: skip


def test_an_operation_that_ends_at_once_has_one_slice() -> None:
    worker = Stalling(0.001, steady)
    assert phases(worker)["during"]["operation_s"] == pytest.approx(0.001)
    assert len(worker.taken) == 3 + 1 + 3


def test_what_lies_between_slices_is_reported() -> None:
    taken = phases(Stalling(5.0, steady))
    assert [taken[phase]["unobserved_s"] for phase in taken] == pytest.approx([0.2] * 3)


def test_latencies_that_are_back_at_once_take_no_time_to_recover() -> None:
    assert phases(Stalling(5.0, steady))["after"]["recovered_s"] == 0


def test_the_time_is_measured_until_latencies_are_what_they_were_before() -> None:
    def slow_for_a_while(since: float) -> float:
        return USUAL if since < -20 or since > 9 else 20 * USUAL

    worker = Stalling(5.0, slow_for_a_while)
    after = phases(worker)["after"]
    assert after["recovered_s"] == pytest.approx(9, abs=2.1)
    assert after["recovered_s"] > 9
    assert after["operation_freed_objects"] == 7


def test_latencies_that_do_not_come_back_are_waited_for_up_to_a_limit() -> None:
    def slow_ever_after(since: float) -> float:
        return USUAL if since < -20 else 2 * USUAL

    worker = Stalling(5.0, slow_ever_after)
    after = phases(worker)["after"]
    assert "recovered_s" not in after
    assert after["not_recovered_s"] == pytest.approx(2.1 * MOST_AFTER, abs=3)


@pytest.mark.parametrize(
    ("rate", "clients", "loops", "before"), [(100, 2, 100, 3), (20, 2, 20, 8), (1, 4, 2, 15)]
)
def test_a_slice_lasts_two_seconds_and_there_are_enough_of_them(
    rate: float, clients: int, loops: int, before: int
) -> None:
    parameters = Parameters(CrewShape(clients), rate=rate)
    assert (loops_of_phase(parameters), slices_before(parameters)) == (loops, before)


class SlowServers:
    """Servers that need some time to end, after which an error may be raised."""

    def __init__(self, error: Exception | None = None) -> None:
        self.did: list[str] = []
        self._error = error

    def halt_for(self, contender: str, *, by_force: bool) -> None:
        time.sleep(0.05)
        self.did.append(f"{'kill' if by_force else 'halt'} {contender}")
        if self._error is not None:
            raise self._error

    def resume_for(self, contender: str) -> None:
        self.did.append(f"resume {contender}")


def restart(servers: Any) -> Restart:
    return Restart(servers, "a", Stalling(0.0, steady), by_force=True)


def test_a_restart_that_was_begun_ends_before_it_is_left() -> None:
    servers = SlowServers()
    with restart(servers):
        pass
    assert servers.did == []
    with pytest.raises(Failed), restart(servers) as operator:
        operator.call("start_operation")
        raise Failed(Failure("a client"))
    assert servers.did == ["kill a", "resume a"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ServerFailed("it is on fire"), "it is on fire"),
        (OSError("disk full"), "OSError: disk full"),
    ],
)
def test_whatever_a_restart_raises_is_its_failure(error: Exception, reason: str) -> None:
    with restart(SlowServers(error)) as operator:
        operator.call("start_operation")
    with pytest.raises(Failed) as caught:
        operator.call("operation_times")
    assert caught.value.failure.cause == reason


ONE_AT_A_TIME = Limit("its cache serves one process", databases=2)


@pytest.mark.parametrize(
    ("facts", "elsewhere"),
    [
        ({}, True),
        ({"sharing": Sharing.EXCLUSIVE}, False),
        ({"sharing": Sharing.VOLATILE}, False),
        ({"limits": (ONE_AT_A_TIME,)}, False),
        ({"stores_blobs": False}, True),
    ],
)
def test_a_process_of_its_own_packs_what_several_can_open(
    facts: dict[str, Any], elsewhere: bool
) -> None:
    one = contender("a", **facts)
    assert is_elsewhere(one, replace(AT_A_RATE, blobs=True)) == elsewhere
    advice = "only the process that has it open can pack it; use --threads shared"
    alone = Parameters(CrewShape(1), rate=1.0, during="pack", phase="before", garbage=0.3)
    reason = operation_refusal(one, alone)
    assert (reason is None) if elsewhere else (reason is not None and advice in reason)


def test_what_cannot_be_packed_is_not_measured_during_a_pack() -> None:
    flawed = contender("a", pack_flaw="it cannot be packed")
    assert operation_refusal(flawed, AT_A_RATE) == "it cannot be packed"
    assert operation_refusal(flawed, Parameters(CrewShape(2), rate=1.0)) is None
