"""Crews whose clients live in other processes, each of which leads the clients of a host.

The hosts are the workers of a Dask cluster, or this one: then another Python has the clients.
Between a start and a stop nothing is sent: the clients of each host start at an instant of its own
clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.outcome import Failed, Failure, failure_of
from zodbshootout.client.protocol import Call, Clock, Prepare, Start, Stretch
from zodbshootout.client.specification import Specification
from zodbshootout.crews.crew import Crew

DRIFT = 1e-3
"""Seconds per second by which two clocks may drift apart: NTP slews them by up to 0.05 %."""
ROUND_TRIPS = 10
"""Requests for the time of a host before a slice, at most; the shortest round trip counts."""
CLOSE = 0.001
"""Seconds of uncertainty at which a clock is known well enough: it is not asked again."""
CLOSELY = 1.5
"""A round trip is short enough if it took at most this many times as long as the shortest one."""
MAX_UNCERTAIN = 0.1
"""A slice is worthless if a clock is uncertain by more than this part of its length."""
ATTEMPTS = 3
"""Attempts at a slice that is worthless."""
SETTING_UP = 60.0
"""Seconds that a host may take to start its interpreter; a lost worker never starts one."""


@dataclass(frozen=True)
class Offset:
    """How far another clock is ahead of the one that is read here."""

    at: float
    """The instant of the measurement, in seconds of the clock here."""
    seconds: float
    uncertainty: float
    """Half of the measurement's round trip: the offset is wrong by no more."""

    def uncertainty_at(self, time: float) -> float:
        """Return the uncertainty of the offset at some *time* of the clock here."""
        return self.uncertainty + DRIFT * abs(time - self.at)

    def contradicts(self, other: Offset) -> bool:
        """Return whether drift alone cannot explain the difference between two measurements."""
        drift = DRIFT * abs(self.at - other.at)
        return abs(self.seconds - other.seconds) > self.uncertainty + other.uncertainty + drift


@dataclass(frozen=True)
class StartCrew:
    """The crew that the process of a host starts."""

    specification: Specification
    profiles: str | None = None
    """The directory that profiles of the clients go to, if they do."""
    clients: Sequence[int] = ()
    """The numbers of the clients that live there."""


@dataclass
class Host:
    """Some of the clients of a crew."""

    name: str
    """Its name in messages; empty if its clients are on this host."""
    actor: Any
    """The process that leads them.  Its ``ask(call)`` returns a future, whose ``result()`` is
    the answer or a :class:`Failure`; that of another host also has ``now()``, its time."""
    clients: Sequence[int]
    offset: Offset = Offset(0.0, 0.0, 0.0)

    def on_its_clock(self, order: Any) -> Any:
        """Return an order with times of the clock there."""
        return Start(order.instant + self.offset.seconds) if isinstance(order, Start) else order

    def on_our_clock(self, report: Any) -> Any:
        """Return a report with times of the clock here."""
        if not isinstance(report, Stretch):
            return report
        ahead, progress = self.offset.seconds, report.progress
        times = [time - ahead for time in progress.times]
        return replace(
            report, progress=replace(progress, start=progress.start - ahead, times=times)
        )


class HostsCrew(Crew):
    """Passes orders on, each in one message for all clients of a host.

    The hosts read the clock that is read here.
    """

    def __init__(self, clock: Clock, hosts: Sequence[Host], start_crew: StartCrew) -> None:
        """Prepare the crew of *start_crew*; *hosts* have its clients, in their order."""
        specification = start_crew.specification
        super().__init__(specification.parameters.crew.size, clock)
        benchmark = benchmarks()[specification.benchmark]
        self.most_at_once = benchmark.most_at_once(specification.parameters)
        self._hosts = hosts
        self._start_crew = start_crew

    def start(self) -> None:
        """Start the clients, and wait until every one is set up.

        :raises Failed: if one cannot be, or does not read the clock that is read here
        """
        before = self._clock.now()
        times = self._start_clients()
        after = self._clock.now()
        if not all(before <= time <= after for time in times):
            cause = "its clock is not the one that is read here, so no start can be agreed on"
            raise Failed(Failure(cause))

    def _start_clients(self) -> list[float]:
        """Start the clients; return the time that each host has then."""
        starts = [replace(self._start_crew, clients=host.clients) for host in self._hosts]
        return self._answers(self._hosts, [Call("start_crew", (start,)) for start in starts])

    def ask(self, order: Any, *, first_only: bool = False) -> list[Any]:
        hosts = self._hosts[:1] if first_only else self._hosts
        calls = [Call("ask", (host.on_its_clock(order), first_only)) for host in hosts]
        return [
            host.on_our_clock(report)
            for host, reports in zip(hosts, self._answers(hosts, calls), strict=True)
            for report in reports
        ]

    def leave(self) -> None:
        self._answers(self._hosts, [Call("leave")] * len(self._hosts))

    def _answers(self, hosts: Sequence[Host], calls: Sequence[Call]) -> list[Any]:
        """Return the answers of *hosts* to a call of each; all are called at once.

        :raises Failed: naming the host
        """
        futures = []
        for host, call in zip(hosts, calls, strict=True):
            with failures_of(host.name):
                futures.append(host.actor.ask(call))
        return [result(host.name, future) for host, future in zip(hosts, futures, strict=True)]


class ClusterCrew(HostsCrew):
    """Has clients on other hosts, whose clocks it compares with the one here."""

    def __init__(self, clock: Clock, hosts: Sequence[Host], start_crew: StartCrew) -> None:
        super().__init__(clock, hosts, start_crew)
        self.hosts = {host.name: host.clients for host in hosts}
        self._shortest_notice = self._notice

    def start(self) -> None:
        self._start_clients()
        for host in self._hosts:
            host.offset = self._offset(host)

    def _prepare(self, order: Prepare) -> None:
        super()._prepare(order)
        self._compare_clocks()
        # Orders arrive one after the other, and each takes a trip.
        trip = 2 * max(host.offset.uncertainty for host in self._hosts)
        self._notice = max(self._shortest_notice, 2 * trip)

    def _compare_clocks(self) -> None:
        """Measure the offsets of all hosts.

        :raises Failed: if one is not what it was
        """
        for host in self._hosts:
            offset = self._offset(host)
            if offset.contradicts(host.offset):
                jump = 1000 * (offset.seconds - host.offset.seconds)
                cause = f"host {host.name}: its clock has jumped by {jump:+.1f} ms"
                raise Failed(Failure(cause))
            host.offset = offset

    def _offset(self, host: Host) -> Offset:
        """Ask a host for the time (Cristian, "Probabilistic clock synchronization", 1989)."""
        offsets = []
        enough = max(CLOSE, CLOSELY * host.offset.uncertainty)
        for _ in range(ROUND_TRIPS):
            before = self._clock.now()
            with failures_of(host.name):
                there = host.actor.now().result()
            after = self._clock.now()
            offsets.append(Offset(after, there - (before + after) / 2, (after - before) / 2))
            if offsets[-1].uncertainty <= enough:
                break
        return min(offsets, key=lambda offset: offset.uncertainty)

    def _stretch(self, prepare: Prepare) -> list[Stretch]:
        for _ in range(ATTEMPTS):
            stretches = super()._stretch(prepare)
            refusal = self._refusal(stretches, prepare)
            self._compare_clocks()
            if refusal is None:
                return stretches
        raise Failed(Failure(f"{refusal}; in {ATTEMPTS} attempts"))

    def _refusal(self, stretches: Sequence[Stretch], prepare: Prepare) -> str | None:
        """Return why a stretch, started with the present offsets, is worthless, if it is."""
        if not prepare.counts or prepare.empty:
            return None
        start = min(stretch.progress.start for stretch in stretches)
        end = max(stretch.progress.end(prepare.iterations) for stretch in stretches)
        length = end - start
        # If each iteration has a start of its own, more of them make a stretch no longer.
        time = "more time with --min-time, or " if self.most_at_once > 1 else ""
        advice = f"give slices {time}more objects with --object-counts"
        unsure = {host.name: host.offset.uncertainty_at(start) for host in self._hosts}
        worst = max(unsure, key=unsure.__getitem__)
        late = max(stretch.late for stretch in stretches)
        if unsure[worst] > MAX_UNCERTAIN * length:
            return (
                f"host {worst}: its clock is known within {1000 * unsure[worst]:.1f} ms, and a "
                f"slice took only {1000 * length:.1f} ms; {advice}"
            )
        if late > MAX_UNCERTAIN * length:
            return (
                f"a client started {1000 * late:.1f} ms late, and a slice took only "
                f"{1000 * length:.1f} ms; {advice}"
            )
        self.clock_uncertainty = max(self.clock_uncertainty, unsure[worst])
        return None


@contextmanager
def failures_of(name: str) -> Iterator[None]:
    """Raise any exception of the context as the failure of a host.

    Without a *name* the host is this one, and exceptions pass unchanged.

    :raises Failed: naming the host
    """
    if not name:
        yield
        return
    try:
        yield
    except Failed as error:
        cause = f"host {name}: {error.failure.cause}"
        raise Failed(replace(error.failure, cause=cause)) from error
    except TimeoutError as error:
        cause = f"host {name} has started no process for its clients within {SETTING_UP:g} s"
        raise Failed(Failure(cause)) from error
    except Exception as error:
        # An error on the host itself has a number; a connection that is gone has none.
        on_host = isinstance(error, OSError) and error.errno is not None
        lost = not on_host or isinstance(error, ConnectionError)
        cause = f"host {name}{' was lost' if lost else ''}: {failure_of(error).cause}"
        raise Failed(Failure(cause)) from error


def result(name: str, future: Any) -> Any:
    """Wait for the answer of a host.

    :raises Failed: if that is a failure, or the host is lost
    """
    with failures_of(name):
        answer = future.result()
        if isinstance(answer, Failure):
            raise Failed(answer)
        return answer
