"""Crews on several hosts, each of which has a process that leads a group of clients.

No message is sent between a start and a stop: the clients of each host start at an instant of the
host's own clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.protocol import Call, Clock, Prepare, Report, Start, Stretch
from zodbshootout.crews.crew import Crew
from zodbshootout.crews.traffic import crew_at_distance
from zodbshootout.model.latencies import Latencies
from zodbshootout.model.outcome import Failed, Failure, failure_of
from zodbshootout.model.specification import Endpoint, Specification
from zodbshootout.network.calibration import Calibration

DRIFT = 1e-3
"""The maximum drift of two clocks, in seconds per second: NTP may change the rate of each by
0.05 %."""
ROUND_TRIPS = 10
"""The maximum number of requests for a host's time; the request with the fastest answer counts."""
LOW_UNCERTAINTY = 0.001
"""An uncertainty, in seconds, that is low enough to send no further request."""
UNCERTAINTY_RATIO = 1.5
"""A multiple of a host's previous uncertainty.  An uncertainty up to this multiple is also low
enough to send no further request."""
MAX_UNCERTAIN = 0.1
"""The limit for a clock's uncertainty and for a client's lateness, as a fraction of a stretch."""
ATTEMPTS = 3
"""The maximum number of times to measure a stretch until it meets :data:`MAX_UNCERTAIN`."""
START_TIMEOUT = 60.0
"""Seconds to wait for a Dask worker to start a process for clients.  If the worker is lost, the
process never starts."""
LEADING_CALLS = frozenset({"start_crew", "ask", "delivered", "leave"})
"""The methods of :class:`Leading` that the crew may call."""


@dataclass(frozen=True)
class Offset:
    """The measured difference between another host's clock and the clock here."""

    instant: float
    """The time of the measurement, in seconds of the clock here."""
    seconds: float
    """The seconds by which the other clock is ahead."""
    uncertainty: float
    """The maximum error in seconds: half of the measurement's round trip."""

    def uncertainty_at(self, instant: float) -> float:
        """Return the maximum error at an *instant* of the clock here, including drift."""
        return self.uncertainty + DRIFT * abs(instant - self.instant)

    def contradicts(self, other: Offset) -> bool:
        """Return whether two measurements differ too much for their uncertainties and the drift."""
        drift = DRIFT * abs(self.instant - other.instant)
        return abs(self.seconds - other.seconds) > self.uncertainty + other.uncertainty + drift


@dataclass(frozen=True)
class StartCrew:
    """An order that makes a host start its share of a crew's clients."""

    specification: Specification
    clients: Sequence[int] = ()
    """The numbers of the clients on the host."""
    calibrations: Mapping[float, Calibration] = field(default_factory=dict)
    """The calibrations of the host's relay, by round-trip time in seconds."""


@dataclass
class Leading:
    """Passes the crew's orders on to a host's clients, which end when *stack* is closed."""

    stack: ExitStack
    crew: Crew | None = None

    def start_crew(self, start: StartCrew) -> None:
        """Start the clients, and wait until all are set up."""
        self.crew = self.stack.enter_context(
            crew_at_distance(start.specification, start.calibrations, clients=start.clients)
        )

    def ask(self, order: Any, first_only: bool) -> list[Any]:
        """Pass an order on to all clients, or only the first; return their reports."""
        assert self.crew is not None
        reports = self.crew.ask(order, first_only=first_only)
        return _latencies_together(reports) if isinstance(order, Report) else reports

    def delivered(self) -> Mapping[Endpoint, float]:
        """Return the mean round-trip time so far, in seconds, for each server."""
        assert self.crew is not None
        return self.crew.delivered()

    def leave(self) -> None:
        """Have all clients leave, and wait until they have ended."""
        self.stack.close()


def _latencies_together(reports: Sequence[Sequence[Stretch]]) -> list[list[Stretch]]:
    """Move all latencies into the first client's report: the crew would add them up anyway."""
    first, *others = reports
    together = []
    for stretch, *same in zip(first, *others):
        latencies = Latencies()
        for one in (stretch, *same):
            latencies.merge(one.latencies)
        together.append(replace(stretch, latencies=latencies))
    emptied = [[replace(one, latencies=Latencies()) for one in stretches] for stretches in others]
    return [together, *emptied]


@dataclass
class ClientGroup:
    """The clients of a crew on one host."""

    host: str
    """The host's name in messages."""
    actor: Any
    """The host's end of the connection, whose methods return futures.  ``ask(call)`` yields the
    answer of :class:`Leading` or a :class:`Failure`; ``now()`` yields the host's time."""
    clients: Sequence[int]
    calibrations: Mapping[float, Calibration] = field(default_factory=dict)
    """The calibrations of the host's relay, by round-trip time in seconds."""
    offset: Offset = Offset(0.0, 0.0, 0.0)

    def on_its_clock(self, order: Any) -> Any:
        """Return an order with its instant converted to the host's clock."""
        return Start(order.instant + self.offset.seconds) if isinstance(order, Start) else order

    def on_our_clock(self, report: Any) -> Any:
        """Return a report with its times converted to the clock here."""
        if not isinstance(report, list):
            return report
        return [self._on_our_clock(stretch) for stretch in report]

    def _on_our_clock(self, stretch: Stretch) -> Stretch:
        ahead, progress = self.offset.seconds, stretch.progress
        times = [time - ahead for time in progress.times]
        progress = replace(progress, start=progress.start - ahead, times=times)
        return replace(stretch, progress=progress)


class HostsCrew(Crew):
    """Sends each order once to every host, and compares each host's clock with the clock here."""

    def __init__(
        self, clock: Clock, groups: Sequence[ClientGroup], specification: Specification
    ) -> None:
        """Prepare a crew of the clients in all *groups*, in this order; start no client."""
        super().__init__(specification.parameters.crew.size, clock)
        benchmark = benchmarks()[specification.benchmark]
        self.most_at_once = benchmark.shape(specification.parameters).most_at_once
        self.hosts = {group.host: group.clients for group in groups}
        self._groups = groups
        self._specification = specification
        self._shortest_notice = self._notice
        self.delivered = self._delivered

    def start(self) -> None:
        starts = [
            StartCrew(self._specification, group.clients, group.calibrations)
            for group in self._groups
        ]
        self._answers(self._groups, [Call("start_crew", (start,)) for start in starts])
        for group in self._groups:
            group.offset = self._offset(group)

    def ask(self, order: Any, *, first_only: bool = False) -> list[Any]:
        groups = self._groups[:1] if first_only else self._groups
        calls = [Call("ask", (group.on_its_clock(order), first_only)) for group in groups]
        return [
            group.on_our_clock(report)
            for group, reports in zip(groups, self._answers(groups, calls))
            for report in reports
        ]

    def leave(self) -> None:
        self._answers(self._groups, [Call("leave")] * len(self._groups))

    def _delivered(self) -> dict[Endpoint, float]:
        """Return the mean round-trip time on all hosts, in seconds, for each server."""
        of_hosts = self._answers(self._groups, [Call("delivered")] * len(self._groups))
        return {
            server: fmean(delivered[server] for delivered in of_hosts) for server in of_hosts[0]
        }

    def _answers(self, groups: Sequence[ClientGroup], calls: Sequence[Call]) -> list[Any]:
        """Send one of *calls* to each group, and return all answers; failures name the host."""
        futures = []
        for group, call in zip(groups, calls):
            with failures_of(group.host):
                futures.append(group.actor.ask(call))
        return [_result(group.host, future) for group, future in zip(groups, futures)]

    def _prepare(self, order: Prepare) -> None:
        super()._prepare(order)
        self._compare_clocks()
        # Two messages may have to arrive before a start; each takes at most a round trip.
        round_trip = 2 * max(group.offset.uncertainty for group in self._groups)
        self._notice = max(self._shortest_notice, 2 * round_trip)

    def _compare_clocks(self) -> None:
        """Measure the offsets of all hosts again, and refuse a clock that has jumped."""
        for group in self._groups:
            offset = self._offset(group)
            if offset.contradicts(group.offset):
                jump = 1000 * (offset.seconds - group.offset.seconds)
                cause = f"host {group.host}: its clock jumped by {jump:+.1f} ms"
                raise Failed(Failure(cause))
            group.offset = offset

    def _offset(self, group: ClientGroup) -> Offset:
        """Measure a host's offset (Cristian, "Probabilistic clock synchronization", 1989)."""
        offsets = []
        enough = max(LOW_UNCERTAINTY, UNCERTAINTY_RATIO * group.offset.uncertainty)
        for _ in range(ROUND_TRIPS):
            before = self._clock.now()
            with failures_of(group.host):
                other = group.actor.now().result()
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
        raise Failed(Failure(f"{ATTEMPTS} attempts failed: {refusal}"))

    def _refusal(self, stretches: Sequence[Stretch], prepare: Prepare) -> str | None:
        """Return why a stretch is useless, or ``None``.

        Call this before the clocks are compared once more.
        """
        if not prepare.counts or prepare.empty:
            return None
        start = min(stretch.progress.start for stretch in stretches)
        end = max(stretch.progress.end(prepare.iterations) for stretch in stretches)
        length = end - start
        # Stretches that can have only one iteration do not become longer with --min-time.
        time = "more time with --min-time, or " if self.most_at_once > 1 else ""
        advice = f"give slices {time}more objects with --object-counts"
        unsure = {group.host: group.offset.uncertainty_at(start) for group in self._groups}
        worst = max(unsure, key=unsure.__getitem__)
        late = max(stretch.late for stretch in stretches)
        if unsure[worst] > MAX_UNCERTAIN * length:
            return (
                f"host {worst}: its clock is known to within {1000 * unsure[worst]:.1f} ms, and a "
                f"slice took only {1000 * length:.1f} ms; {advice}"
            )
        if late > MAX_UNCERTAIN * length:
            return (
                f"a client started {1000 * late:.1f} ms late, but a slice took only "
                f"{1000 * length:.1f} ms; {advice}"
            )
        self.clock_uncertainty = max(self.clock_uncertainty, unsure[worst])
        return None


@contextmanager
def failures_of(name: str) -> Iterator[None]:
    """Turn exceptions in the context into failures of the host with this *name*.

    :raises Failed: with the name of the host
    """
    try:
        yield
    except Failed as error:
        cause = f"host {name}: {error.failure.cause}"
        raise Failed(replace(error.failure, cause=cause)) from error
    except TimeoutError as error:
        cause = f"host {name} did not start a process for its clients within {START_TIMEOUT:g} s"
        raise Failed(Failure(cause)) from error
    except Exception as error:
        # A system error on the host has an errno; the error after a lost connection has none.
        on_host = isinstance(error, OSError) and error.errno is not None
        lost = not on_host or isinstance(error, ConnectionError)
        cause = f"host {name}{' was lost' if lost else ''}: {failure_of(error).cause}"
        raise Failed(Failure(cause)) from error


def _result(name: str, future: Any) -> Any:
    """Wait for a host's answer; raise a failure, or the loss of the host, as an exception."""
    with failures_of(name):
        answer = future.result()
        if isinstance(answer, Failure):
            raise Failed(answer)
        return answer
