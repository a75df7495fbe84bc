"""A crew on several hosts: with exact clocks, and in a real Dask cluster on this host."""

from __future__ import annotations

import math
import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from zodbshootout.client import protocol
from zodbshootout.client.preparation import Preparation, prepare
from zodbshootout.client.protocol import Call
from zodbshootout.client.throughput import Progress
from zodbshootout.crews.cluster import Cluster, DaskWorker
from zodbshootout.crews.hosts import (
    MAX_UNCERTAIN,
    ROUND_TRIPS,
    ClientGroup,
    HostsCrew,
    Offset,
    StartCrew,
)
from zodbshootout.crews.logs import LogSettings
from zodbshootout.guardian import Guardian
from zodbshootout.model.latencies import Latencies
from zodbshootout.model.outcome import Failed, Failure
from zodbshootout.model.specification import (
    ClientKind,
    CrewShape,
    Endpoint,
    Parameters,
    Specification,
    Storage,
)
from zodbshootout.servers import dask as clusters
from zodbshootout.servers.dask import cluster_for
from zodbshootout.workers.agent import equipment, hosts_crew
from zodbshootout.workers.histograms import histogram

TRIP = 0.001
WORK = 0.25
"""Seconds that the clients of an exact host take for a stretch."""


class ExactClock:
    """A clock that only explicit delays move."""

    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time

    def wait_until(self, instant: float) -> None:
        self.time = max(self.time, instant)


@dataclass
class Answered:
    value: Any

    def result(self) -> Any:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


@dataclass
class ExactActor:
    """A stand-in for clients that carry out their orders on a clock that is *ahead*."""

    clock: ExactClock
    ahead: float = 0.0
    there: float = TRIP / 2
    """Seconds that a message takes to arrive; the answer then takes *back*."""
    back: float = TRIP / 2
    answers: dict[type, Any] = field(default_factory=dict)
    """Answers to some orders, in place of the correct ones."""
    asked: list[Any] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    clients: Sequence[int] = ()
    delivered: float = 0.0
    """The round-trip time in seconds that its relay has delivered."""

    def now(self) -> Answered:
        self.clock.time += self.there
        time = self.clock.time + self.ahead
        self.clock.time += self.back
        return Answered(time)

    def ask(self, message: Any) -> Answered:
        self.clock.time += TRIP
        assert isinstance(message, Call)
        if message.name == "start_crew":
            (start_crew,) = message.args
            assert isinstance(start_crew, StartCrew)
            self.clients = start_crew.clients
            return Answered(self.clock.time + self.ahead)
        if message.name == "delivered":
            return Answered({SERVER: self.delivered})
        assert message.name == "ask"
        order, first_only = message.args
        self.asked.append(order)
        if type(order) in self.answers:
            return Answered(self.answers[type(order)])
        return Answered([self._report(order) for _ in self.clients[: 1 if first_only else None]])

    def _report(self, order: Any) -> Any:
        if isinstance(order, protocol.Start):
            self.starts.append(order.instant)
        if isinstance(order, protocol.Stop):
            return 0.0
        if isinstance(order, protocol.Report):
            start = self.starts[-1]
            progress = Progress(start, [start + WORK], [1])
            return [protocol.Stretch(progress, Latencies(), 0, 0, 0, 1, {}, ())]
        return None


SERVER = Endpoint("main", ("db", 1), 0.002)
SPECIFICATION = Specification(Storage("x"), "add", Parameters(CrewShape(3), objects=10))


def cluster_of(*rooms: int | None) -> Cluster:
    """Return a cluster whose workers have room for these numbers of clients."""
    workers = [DaskWorker(str(number), "", room) for number, room in enumerate(rooms)]
    return Cluster("", workers, here=True)


def exact(clock: ExactClock, *actors: ExactActor) -> HostsCrew:
    shares = cluster_of(*[None] * len(actors)).shares(3)
    groups = [
        ClientGroup(f"host-{number}", actor, clients)
        for number, (actor, clients) in enumerate(zip(actors, shares, strict=True))
    ]
    crew = HostsCrew(clock, groups, SPECIFICATION)
    crew.start()
    return crew


@pytest.mark.parametrize(
    ("rooms", "clients", "shares"),
    [
        ([None] * 4, 64, [16] * 4),
        ([None] * 2, 3, [2, 1]),
        ([None] * 3, 2, [1, 1, 0]),
        ([None], 5, [5]),
        ([None] * 3, 11, [4, 4, 3]),
        ([2, 8, 8], 12, [2, 5, 5]),
        ([2, 8, 8], 18, [2, 8, 8]),
        ([1, 1], 1, [1, 0]),
    ],
)
def test_clients_are_spread_evenly(
    rooms: list[int | None], clients: int, shares: list[int]
) -> None:
    spread = cluster_of(*rooms).shares(clients)
    assert [len(clients_there) for clients_there in spread] == shares
    assert [number for clients_there in spread for number in clients_there] == list(range(clients))


def test_clients_that_exceed_the_room_of_the_hosts_are_refused() -> None:
    with pytest.raises(Failed, match="the hosts have room for 3 clients only"):
        cluster_of(1, 2).shares(4)


def test_all_clients_start_at_one_instant_whatever_their_clocks_say() -> None:
    clock = ExactClock()
    early, late = ExactActor(clock, ahead=-3.0), ExactActor(clock, ahead=1000.0)
    crew = exact(clock, early, late)
    crew.prepare(1)
    sample = crew.measure(1)
    assert early.starts[-1] + 3.0 == pytest.approx(late.starts[-1] - 1000.0)
    # Their instants are converted to the time of the local clock.
    assert sample.start == pytest.approx(early.starts[-1] + 3.0)
    assert sample.on_clock == pytest.approx(WORK)
    assert sample.shares == [1, 1, 1]


def test_orders_arrive_before_the_start() -> None:
    clock = ExactClock()
    slow = ExactActor(clock, there=0.01, back=0.01)
    crew = exact(clock, slow, ExactActor(clock))
    crew.prepare(1)
    before = clock.now()
    crew.measure(1)
    assert slow.starts[-1] - before >= 2 * 0.01


def test_the_shortest_round_trip_determines_the_clock_offset() -> None:
    class Uneven(ExactActor):
        """An actor all but one of whose answers are late, as if its clock were behind."""

        calls = 0

        def now(self) -> Answered:
            self.calls += 1
            self.back = TRIP / 2 if self.calls % ROUND_TRIPS == 3 else 0.05
            return super().now()

    clock = ExactClock()
    actor = Uneven(clock, ahead=5.0)
    crew = exact(clock, actor)
    (group,) = crew._groups
    assert group.offset.seconds == pytest.approx(5.0)
    assert group.offset.uncertainty == pytest.approx(TRIP / 2)


def test_a_clock_that_jumps_fails_the_cell() -> None:
    clock = ExactClock()
    steady, jumping = ExactActor(clock), ExactActor(clock)
    crew = exact(clock, steady, jumping)
    crew.prepare(1)
    crew.measure(1)
    jumping.ahead = 0.5
    with pytest.raises(Failed, match=r"host host-1: its clock jumped by \+500.0 ms"):
        crew.prepare(1)


def test_a_clock_that_drifts_like_quartz_is_followed() -> None:
    clock = ExactClock()
    drifting = ExactActor(clock)
    crew = exact(clock, drifting)
    for _ in range(5):
        clock.time += 60
        drifting.ahead += 60 * 2e-5
        crew.prepare(1)
        crew.measure(1)
    assert crew._groups[0].offset.seconds == pytest.approx(5 * 60 * 2e-5)


def test_offsets_contradict_each_other_if_neither_error_nor_drift_explains_it() -> None:
    assert not Offset(0, 1.0, 0.001).contradicts(Offset(1, 1.0015, 0.001))
    assert not Offset(0, 1.0, 0.001).contradicts(Offset(100, 1.090, 0.001))
    assert Offset(0, 1.0, 0.001).contradicts(Offset(1, 1.0035, 0.001))
    assert Offset(10.0, 1.0, 0.001).uncertainty_at(12.0) == pytest.approx(0.003)


def test_a_slice_too_short_for_the_uncertainty_of_clocks_is_refused() -> None:
    clock = ExactClock()
    actor = ExactActor(clock, there=0.04, back=0.04)
    crew = exact(clock, actor)
    crew.prepare(1)
    with pytest.raises(Failed, match=r"host host-0: its clock is known to within 4\d\.\d ms") as no:
        crew.measure(1)
    assert "a slice took only 250.0 ms; give slices more time with --min-time" in str(no.value)
    assert str(no.value).startswith("3 attempts failed: ")
    assert len(set(actor.starts)) == 3


def test_a_slice_in_which_a_client_started_late_is_measured_again() -> None:
    class LateOnce(ExactActor):
        """An actor whose first start is late by most of the slice."""

        def _report(self, order: Any) -> Any:
            report = super()._report(order)
            if isinstance(order, protocol.Report) and len(set(self.starts)) == 1:
                return [replace(stretch, late=0.8 * WORK) for stretch in report]
            return report

    clock = ExactClock()
    actor = LateOnce(clock)
    crew = exact(clock, actor, ExactActor(clock))
    sample = crew.measure(1)
    assert len(set(actor.starts)) == 2
    assert sample.start_spread == 0


def test_a_clock_that_jumps_during_the_only_slice_fails_the_cell() -> None:
    class Jumping(ExactActor):
        def _report(self, order: Any) -> Any:
            if isinstance(order, protocol.Stop):
                self.ahead += 0.5
            return super()._report(order)

    clock = ExactClock()
    crew = exact(clock, ExactActor(clock), Jumping(clock))
    with pytest.raises(Failed, match="host host-1: its clock jumped by "):
        crew.measure(1)


def test_a_slice_is_measured_again_if_the_clock_offset_is_old() -> None:
    clock = ExactClock()
    actor = ExactActor(clock)
    crew = exact(clock, actor)
    crew.prepare(1)
    clock.time += 60  # other contenders are measured meanwhile
    crew.measure(1)
    assert len(set(actor.starts)) == 2
    assert 0 < crew.clock_uncertainty < MAX_UNCERTAIN * WORK


def test_percentiles_are_taken_over_all_latencies_and_not_averaged() -> None:
    clock = ExactClock()
    chance = random.Random(3)
    raw = [[chance.lognormvariate(-7, 1) * factor for _ in range(500)] for factor in (1, 2, 9)]
    recorded = [Latencies() for _ in raw]
    for latencies, durations in zip(recorded, raw, strict=True):
        latencies.record(durations)
    stretches = [
        [protocol.Stretch(Progress(0.0, [WORK], [1]), latencies, 0, 0, 0, 1, {}, ())]
        for latencies in recorded
    ]
    first = ExactActor(clock, answers={protocol.Report: stretches[:2]})
    second = ExactActor(clock, answers={protocol.Report: stretches[2:]})
    crew = exact(clock, first, second)
    sample = crew.measure(1, counts=False)
    together = sorted(duration for durations in raw for duration in durations)
    merged = histogram(sample.latencies)
    assert merged.get_total_count() == len(together)
    for percentile in (50, 90, 99, 99.9):
        exactly = together[math.ceil(percentile / 100 * len(together)) - 1]
        assert merged.get_value_at_percentile(percentile) / 1e9 == pytest.approx(exactly, rel=2e-3)
    assert sample.latencies.longest == together[-1]


def test_reports_come_in_the_order_of_the_clients() -> None:
    clock = ExactClock()
    first = ExactActor(clock, answers={Call: ["a", "b"]})
    second = ExactActor(clock, answers={Call: ["c"]})
    crew = exact(clock, first, second)
    accounts = crew.call("verify")
    assert accounts == ["a", "b", "c"]
    first.answers = {Call: [None]}
    crew.call("audit", accounts, first_only=True)
    audit = Call("audit", (["a", "b", "c"],))
    assert audit in first.asked
    assert audit not in second.asked


def test_what_relays_have_delivered_is_the_mean_over_the_hosts() -> None:
    clock = ExactClock()
    crew = exact(clock, *(ExactActor(clock, delivered=one) for one in (0.0021, 0.0023, 0.0025)))
    assert crew.delivered() == {SERVER: pytest.approx(0.0023)}


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (Failure("no route to the database"), "host host-1: no route to the database"),
        (OSError("gone"), "host host-1 was lost: OSError: gone"),
        (ConnectionResetError(104, "reset"), "host host-1 was lost: ConnectionResetError: "),
        (RuntimeError("Worker holding Actor was lost"), "host host-1 was lost: RuntimeError: "),
        (OSError(28, "No space left"), "host host-1: OSError: [Errno 28] No space left"),
        (TimeoutError(), "host host-1 did not start a process for its clients within 60 s"),
    ],
)
def test_a_failure_names_its_host(answer: Any, cause: str) -> None:
    clock = ExactClock()
    broken = ExactActor(clock, answers={protocol.Prepare: answer})
    crew = exact(clock, ExactActor(clock), broken)
    with pytest.raises(Failed) as failed:
        crew.prepare(1)
    assert failed.value.failure.cause.startswith(cause)


ITERATIONS = 80
"""Enough iterations to make a slice long compared with the uncertainty of clocks."""
SECTION = """%import relstorage
<zodb x>
    <relstorage>
        keep-history false
        <sqlite3>
            data-dir $here/sqlite
        </sqlite3>
    </relstorage>
</zodb>
"""


shares_cluster = pytest.mark.xdist_group("local hosts")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    place = tmp_path_factory.mktemp("cluster")
    with Guardian() as guardian, cluster_for("local:2", guardian, place) as started:
        assert started is not None
        yield started


def specified(place: Path, benchmark: str, shape: CrewShape) -> Specification:
    storage = Storage(SECTION, names={"here": str(place)})
    specification = Specification(storage, benchmark, Parameters(shape, objects=20))
    prepare(Preparation(specification))
    return specification


def ours() -> list[psutil.Process]:
    """Return the processes of the hosts that this process has started."""
    processes = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if any("zodbshootout.workers.fork_server" in word for word in process.cmdline()):
                processes += [process, *process.children(recursive=True)]
    return processes


def gone(processes: Sequence[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=10)
    return not alive


@pytest.mark.servers
@shares_cluster
@pytest.mark.parametrize(
    ("benchmark", "shape"),
    [
        ("conflicts", CrewShape(3)),
        ("conflicts", CrewShape(3, ClientKind.THREAD, shared=True)),
        ("cold", CrewShape(3, ClientKind.THREAD)),
        ("cold", CrewShape(1)),
        ("cold", CrewShape(2, ClientKind.GREENLET, shared=True)),
    ],
    ids=str,
)
def test_a_crew_on_hosts_does_all_iterations_and_leaves_no_process(
    benchmark: str, shape: CrewShape, cluster: Cluster, tmp_path: Path
) -> None:
    specification = specified(tmp_path, benchmark, shape)
    with hosts_crew(cluster, specification, LogSettings(), {}) as crew:
        crew.measure(2, counts=False)
        crew.prepare(ITERATIONS)
        sample = crew.measure(ITERATIONS)
        crew.verify()
        processes = ours()
    assert sample.iterations == ITERATIONS * shape.size
    assert len(sample.shares) == shape.size
    assert processes
    assert gone(processes)


@contextmanager
def at_work(cluster: Cluster, tmp_path: Path) -> Iterator[tuple[Any, list[psutil.Process]]]:
    specification = specified(tmp_path, "add", CrewShape(4))
    with hosts_crew(cluster, specification, LogSettings(), {}) as crew:
        yield crew, ours()


@pytest.mark.servers
@shares_cluster
def test_local_hosts_are_process_groups_of_one_session_with_equal_addresses(
    cluster: Cluster, tmp_path: Path
) -> None:
    with at_work(cluster, tmp_path) as (_, processes):
        sessions = {os.getsid(process.pid) for process in processes}
        groups = {os.getpgid(process.pid) for process in processes}
        maps = [Path(f"/proc/{process.pid}/maps").read_text() for process in processes]
    assert sessions == {os.getsid(0)}
    assert len(groups) == 4  # of two fork servers, and of a worker of each
    assert os.getpgrp() not in groups
    addresses = {line.split()[0] for line in maps}
    # The addresses of two programs differ if setarch is missing or not permitted.
    assert len(addresses) == (1 if clusters.fixed_addresses() else 2)


@pytest.mark.servers
@shares_cluster
def test_a_process_killed_on_a_host_fails_the_cell(cluster: Cluster, tmp_path: Path) -> None:
    with pytest.raises(Failed) as failed, at_work(cluster, tmp_path) as (crew, processes):
        leaders = [process for process in processes if process.children()]
        os.kill(leaders[0].pid, signal.SIGKILL)
        crew.measure(2)
    assert str(failed.value).startswith("host local-")
    assert gone(processes)


@pytest.mark.servers
@shares_cluster
def test_clients_end_if_the_process_that_holds_the_crew_is_interrupted(
    cluster: Cluster, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt), at_work(cluster, tmp_path) as (crew, processes):
        crew.prepare(2)
        for group in crew._groups:
            instant = time.perf_counter()
            group.actor.ask(Call("ask", (protocol.Start(instant), False)))
        raise KeyboardInterrupt
    assert gone(processes)


@pytest.mark.servers
@shares_cluster
def test_clients_on_hosts_get_the_environment_variables(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setenv("SHOOTOUT_PLACE", str(tmp_path))
    storage = Storage(SECTION.replace("$here", "$(SHOOTOUT_PLACE)"))
    specification = Specification(storage, "add", Parameters(CrewShape(2), objects=20))
    prepare(Preparation(specification))
    with hosts_crew(
        cluster, specification, LogSettings(), {"SHOOTOUT_PLACE": str(tmp_path)}
    ) as crew:
        crew.measure(ITERATIONS)
        crew.verify()


@pytest.mark.servers
@shares_cluster
def test_hosts_that_share_no_files_have_directories_of_their_own(
    cluster: Cluster, tmp_path: Path
) -> None:
    scratch, certificate = tmp_path / "scratch", tmp_path / "certificate"
    scratch.mkdir()
    certificate.write_text("a certificate")
    section = "<zodb x>\n<filestorage>\npath $scratch/x.fs\n</filestorage>\n</zodb>\n"
    names = {"scratch": str(scratch), "x_certificate": str(certificate), "x_port": "1"}
    storage = Storage(section, names=names)
    specification = Specification(storage, "ex_commit", Parameters(CrewShape(2)))
    with hosts_crew(replace(cluster, here=False), specification, LogSettings(), {}) as crew:
        sample = crew.measure(ITERATIONS, counts=False)
    # On one host the second client would be refused, since the file is locked.
    assert sample.iterations == 2 * ITERATIONS
    assert list(scratch.iterdir()) == []


def test_the_files_and_directories_that_a_host_needs_are_unpacked_there(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "key.pem").write_bytes(b"secret")
    names = {
        "scratch": str(tmp_path / "scratch"),
        "main_key": str(tmp_path / "key.pem"),
        "main": "10.0.0.5:8100",
        "main_password": "/not/a/path",
    }
    elsewhere = Cluster("", [], here=False)
    sent = equipment(names, {"PGPASSWORD": "x"}, elsewhere)
    assert (sent.files, sent.directories) == ({"main_key": b"secret"}, ["scratch"])
    place = tmp_path / "there"
    place.mkdir()
    paths = sent.unpacked(place)
    assert paths == {"main_key": str(place / "main_key"), "scratch": str(place / "scratch")}
    assert (place / "main_key").read_bytes() == b"secret"
    assert (place / "scratch").is_dir()
    assert equipment(names, {}, replace(elsewhere, here=True)).files == {}
