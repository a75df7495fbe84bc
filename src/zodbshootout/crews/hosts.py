"""Crews on several hosts, or in another Python on this one; one process leads a host's clients.

Other hosts are workers of a Dask cluster.  Between a start and a stop nothing is sent: the clients
of each host start at an instant of its own clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.protocol import Call, Clock, Prepare, Start, Stretch
from zodbshootout.crews.crew import Crew
from zodbshootout.model.outcome import Failed, Failure, failure_of
from zodbshootout.model.specification import Specification

DRIFT = 1e-3
"""Seconds per second by which two clocks may drift apart: NTP slews them by up to 0.05 %."""
ROUND_TRIPS = 10
"""The maximum number of requests for a host's time; the one with the shortest round trip counts."""
LOW_UNCERTAINTY = 0.001
"""Seconds of uncertainty at which no further request is needed."""
UNCERTAINTY_RATIO = 1.5
"""No further request is needed at this multiple of the previous measurement's uncertainty."""
MAX_UNCERTAIN = 0.1
"""The largest uncertainty of a clock, and lateness of a client, as a fraction of a slice."""
ATTEMPTS = 3
"""Attempts at a slice that exceeds :data:`MAX_UNCERTAIN`."""
START_TIMEOUT = 60.0
"""Seconds that a host may take to start its interpreter; a lost worker never starts one."""


@dataclass(frozen=True)
class Offset:
    """The difference between another host's clock and the clock here, as it was measured."""

    instant: float
    """When it was measured, in seconds of the clock here."""
    seconds: float
    """The seconds by which the other clock is ahead."""
    uncertainty: float
    """The maximum error: half of the measurement's round trip, in seconds."""

    def uncertainty_at(self, instant: float) -> float:
        """Return the maximum error at an *instant* of the clock here, drift included."""
        return self.uncertainty + DRIFT * abs(instant - self.instant)

    def contradicts(self, other: Offset) -> bool:
        """Return whether two measurements differ by more than uncertainty and drift explain."""
        drift = DRIFT * abs(self.instant - other.instant)
        return abs(self.seconds - other.seconds) > self.uncertainty + other.uncertainty + drift


@dataclass(frozen=True)
class StartCrew:
    """The order to the process of a host to start its part of a crew."""

    specification: Specification
    profiles: str | None = None
    """The directory for profiles of the clients; ``None`` for no profiles."""
    clients: Sequence[int] = ()
    """The numbers of the host's clients."""


@dataclass
class Host:
    """A host, and the clients of a crew that it has."""

    name: str
    """Its name in messages; empty for this host."""
    actor: Any
    """The process that leads the clients.  Its ``ask(call)`` returns a future, whose ``result()``
    is the answer or a :class:`Failure`; on another host it also has ``now()``, its time."""
    clients: Sequence[int]
    offset: Offset = Offset(0.0, 0.0, 0.0)

    def on_its_clock(self, order: Any) -> Any:
        """Return an order with its instant converted to the host's clock."""
        return Start(order.instant + self.offset.seconds) if isinstance(order, Start) else order

    def on_our_clock(self, report: Any) -> Any:
        """Return a report with its times converted to the clock here."""
        if not isinstance(report, Stretch):
            return report
        ahead, progress = self.offset.seconds, report.progress
        times = [time - ahead for time in progress.times]
        progress = replace(progress, start=progress.start - ahead, times=times)
        return replace(report, progress=progress)


class HostsCrew(Crew):
    """Sends each order once to every host, for all of its clients.

    All hosts read the clock that is read here.
    """

    def __init__(self, clock: Clock, hosts: Sequence[Host], start_crew: StartCrew) -> None:
        """Prepare the crew of *start_crew*, whose clients are those of *hosts*, in this order."""
        specification = start_crew.specification
        super().__init__(specification.parameters.crew.size, clock)
        benchmark = benchmarks()[specification.benchmark]
        self.most_at_once = benchmark.most_at_once(specification.parameters)
        self._hosts = hosts
        self._start_crew = start_crew

    def start(self) -> None:
        """Start the clients, and wait until every one is set up.

        :raises Failed: if one cannot be set up, or a host reads another clock than this process
        """
        before = self._clock.now()
        times = self._start_clients()
        after = self._clock.now()
        if not all(before <= time <= after for time in times):
            cause = "its clock is not the one that is read here, so no start can be agreed on"
            raise Failed(Failure(cause))

    def _start_clients(self) -> list[float]:
        """Start the clients; return the time of each host after that."""
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
        """Send each of *hosts* its call, then return the answers of all.

        :raises Failed: naming the host
        """
        futures = []
        for host, call in zip(hosts, calls, strict=True):
            with failures_of(host.name):
                futures.append(host.actor.ask(call))
        return [result(host.name, future) for host, future in zip(hosts, futures, strict=True)]


class ClusterCrew(HostsCrew):
    """A crew on other hosts, whose clocks are compared with the clock here."""

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
        # Two messages may have to arrive one after the other; each takes at most a round trip.
        round_trip = 2 * max(host.offset.uncertainty for host in self._hosts)
        self._notice = max(self._shortest_notice, 2 * round_trip)

    def _compare_clocks(self) -> None:
        """Measure the offsets of all hosts again.

        :raises Failed: if a clock has jumped
        """
        for host in self._hosts:
            offset = self._offset(host)
            if offset.contradicts(host.offset):
                jump = 1000 * (offset.seconds - host.offset.seconds)
                cause = f"host {host.name}: its clock has jumped by {jump:+.1f} ms"
                raise Failed(Failure(cause))
            host.offset = offset

    def _offset(self, host: Host) -> Offset:
        """Measure the offset of a host (Cristian, "Probabilistic clock synchronization", 1989)."""
        offsets = []
        enough = max(LOW_UNCERTAINTY, UNCERTAINTY_RATIO * host.offset.uncertainty)
        for _ in range(ROUND_TRIPS):
            before = self._clock.now()
            with failures_of(host.name):
                other = host.actor.now().result()
            after = self._clock.now()
            offsets.append(Offset(after, other - (before + after) / 2, (after - before) / 2))
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
        """Return why a stretch is worthless, or ``None``; the offsets are those of its start."""
        if not prepare.counts or prepare.empty:
            return None
        start = min(stretch.progress.start for stretch in stretches)
        end = max(stretch.progress.end(prepare.iterations) for stretch in stretches)
        length = end - start
        # If a stretch has one iteration only, more iterations do not make it longer.
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
    """Turn exceptions in the context into failures of the host with this *name*.

    If *name* is empty, the host is this one, and exceptions pass unchanged.

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
        cause = f"host {name} has started no process for its clients within {START_TIMEOUT:g} s"
        raise Failed(Failure(cause)) from error
    except Exception as error:
        # An error on the host itself has a number; a connection that is gone has none.
        on_host = isinstance(error, OSError) and error.errno is not None
        lost = not on_host or isinstance(error, ConnectionError)
        cause = f"host {name}{' was lost' if lost else ''}: {failure_of(error).cause}"
        raise Failed(Failure(cause)) from error


def result(name: str, future: Any) -> Any:
    """Wait for a host's answer.

    :raises Failed: if the answer is a failure, or the host is lost
    """
    with failures_of(name):
        answer = future.result()
        if isinstance(answer, Failure):
            raise Failed(answer)
        return answer
