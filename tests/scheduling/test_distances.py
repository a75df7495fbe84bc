"""The calibration of relays, here and on hosts, whose results the tests say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.runs import contender, plan_of
from zodbshootout.crews.cluster import Cluster, DaskWorker
from zodbshootout.errors import UserError
from zodbshootout.model.specification import Endpoint
from zodbshootout.network.calibration import Calibration
from zodbshootout.network.relays import Lateness, RelayError
from zodbshootout.scheduling import distances
from zodbshootout.scheduling.distances import calibrations_for
from zodbshootout.scheduling.plan import Plan
from zodbshootout.scheduling.result_store import Observer

WORKERS = [DaskWorker("alpha", "tcp://10.0.0.1:1"), DaskWorker("beta", "tcp://10.0.0.2:1")]
HOSTS = Cluster("tcp://10.0.0.1:2", WORKERS, here=False)


class Lines(Observer):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def relay(self, line: str) -> None:
        self.lines.append(line)


def plan(*rtts: float) -> Plan:
    one = contender("a")
    away = tuple(Endpoint(f"server{rtt}", ("db", 1), rtt) for rtt in rtts)
    return plan_of([replace(one, storage=replace(one.storage, servers=away))])


def delivering(factor: float, rtts: Sequence[float]) -> Mapping[float, Calibration]:
    """Return calibrations of a machine on which everything takes longer by a factor."""
    lateness = Lateness(1, 0.0, 0.0)
    times = {rtt: rtt * factor for rtt in rtts}
    return {rtt: Calibration(rtt, 0.0, time, time, lateness) for rtt, time in times.items()}


@dataclass
class Future:
    answer: Any

    def result(self, seconds: float) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@dataclass
class Client:
    """A client of Dask for hosts that deliver more than is asked for, or fail."""

    answers: Mapping[str, Any]
    """A factor or an error for the address of each host."""
    submitted: list[str] = field(default_factory=list)

    def scheduler_info(self, **_: Any) -> Any:
        return {"workers": {one.address: {"name": one.name} for one in WORKERS}}

    def submit(self, _: Any, rtts: Sequence[float], *, workers: list[str], **__: Any) -> Future:
        (address,) = workers
        self.submitted.append(address)
        answer = self.answers[address]
        return Future(answer if isinstance(answer, Exception) else delivering(answer, rtts))


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Any:
    def connect(*answers: Any) -> Client:
        client = Client({one.address: answer for one, answer in zip(WORKERS, answers, strict=True)})

        @contextmanager
        def connected(_: Cluster) -> Iterator[Client]:
            yield client

        monkeypatch.setattr(Cluster, "client", connected)
        return client

    return connect


def test_each_time_is_calibrated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distances, "calibrations", lambda rtts: delivering(1.0, rtts))
    lines = Lines()
    assert calibrations_for(plan(0.002, 0.0, 0.001, 0.002), None, lines).keys() == {""}
    assert list(calibrations_for(plan(0.002, 0.0, 0.001, 0.002), None, lines)[""]) == [0.001, 0.002]
    assert lines.lines == []


def test_nothing_is_calibrated_without_a_distance() -> None:
    assert calibrations_for(plan(0.0), HOSTS, Observer()) == {}


def test_a_machine_that_does_not_deliver_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distances, "calibrations", lambda rtts: delivering(1.5, rtts))
    lines = Lines()
    calibrations_for(plan(0.002), None, lines)
    assert lines.lines == [
        "round trips of 2ms take 3 ms: this machine is too slow or too busy to deliver them"
    ]


def test_a_host_that_does_not_deliver_is_named(connect: Any) -> None:
    client, lines = connect(1.0, 2.0), Lines()
    made = calibrations_for(plan(0.002), HOSTS, lines)
    assert {host: by_rtt[0.002].p50 for host, by_rtt in made.items()} == {
        "alpha (10.0.0.1)": 0.002,
        "beta (10.0.0.2)": 0.004,
    }
    assert client.submitted == [one.address for one in WORKERS]
    assert lines.lines == [
        "round trips of 2ms take 4 ms: beta (10.0.0.2) is too slow or too busy to deliver them"
    ]


def test_a_host_that_does_not_answer_is_named(connect: Any) -> None:
    connect(1.0, TimeoutError())
    wanted = r"^--hosts: host beta \(10.0.0.2\): its relay was not calibrated within 124\.8 s$"
    with pytest.raises(UserError, match=wanted):
        calibrations_for(plan(0.004), HOSTS, Observer())


@pytest.mark.parametrize("error", [RelayError("the relay has ended"), OSError("it is gone")])
def test_a_host_on_which_the_relay_fails_is_named(error: Exception, connect: Any) -> None:
    connect(1.0, error)
    with pytest.raises(UserError, match=rf"^--hosts: host beta \(10.0.0.2\) .*{error}"):
        calibrations_for(plan(0.002), HOSTS, Observer())


def test_a_relay_that_fails_here_is_an_error_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Sequence[float]) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(distances, "calibrations", fail)
    with pytest.raises(UserError, match=r"the relay between clients and servers: .*Too many open"):
        calibrations_for(plan(0.002), None, Observer())
