"""Crews of clients, and samples of their measurements.

All clients of a crew start at the same time.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from zodbshootout.client.benchmarks.benchmark import MAX_AT_ONCE
from zodbshootout.client.protocol import Call, Clock, Pacing, Prepare, Report, Start, Stop, Stretch
from zodbshootout.client.throughput import throughput
from zodbshootout.model.latencies import Latencies
from zodbshootout.model.specification import Address, Endpoint
from zodbshootout.model.usage import Used

T = TypeVar("T")

NOTICE_PER_CLIENT = 0.0001
"""Seconds by which the order to start precedes the start of several clients, for each client.  A
single client starts at once."""
MAX_LATENESS = 0.25
"""The maximum number of seconds to add because clients were late."""
LATENESS_KEPT = 0.95
"""The factor by which the seconds added for lateness are multiplied after a start in time."""
LATENESS_ADDED = 0.3
"""The part of a client's lateness that is added: less than all of it, because most clients that are
very late were kept from a processor only once."""
EMPTY_ITERATIONS = 5000
"""The number of iterations that each client does for :meth:`Crew.sendable_rate`."""


class Crew(ABC):
    """Clients that communicate by orders and reports.

    Every method raises :class:`~zodbshootout.model.outcome.Failed` if a client fails or is gone.
    """

    def __init__(self, size: int, clock: Clock) -> None:
        self.size = size
        self._clock = clock
        self._notice = NOTICE_PER_CLIENT * size if size > 1 else 0.0
        self._lateness = 0.0
        """Seconds added to the notice, because clients were late for recent starts."""
        self.most_at_once = MAX_AT_ONCE
        """The maximum number of counted iterations of a client between a start and a stop."""
        self._prepared: Prepare | None = None
        self.hosts: Mapping[str, Sequence[int]] = {}
        """The indices of each host's clients, by the host's name; empty without Dask workers."""
        self.delivered: Callable[[], Mapping[Endpoint, float]] = dict
        """A function that returns the mean round-trip time so far, in seconds, by server."""
        self.servers: Mapping[Address, str] = {}
        """The names of the servers to which clients connect, by address."""
        self.database: Any = None
        """The :class:`~zodbshootout.client.database.Database` that the clients share, if it is in
        this process."""
        self.clock_uncertainty = 0.0
        """The maximum error, in seconds, that any host's clock may have had at any start."""

    @abstractmethod
    def start(self) -> None:
        """Start the clients, and wait until every one is set up."""

    @abstractmethod
    def ask(self, order: Any, *, first_only: bool = False) -> list[Any]:
        """Send an order to all clients, or only to the first; return reports sorted by client."""

    def call(self, name: str, *args: Any, first_only: bool = False) -> list[Any]:
        """Call a method of all clients, or only of the first; return results sorted by client."""
        return self.ask(Call(name, args), first_only=first_only)

    def leave(self) -> None:
        """Have every client close everything and exit."""
        self.call("leave")

    def join(self) -> None:  # noqa: B027
        """Wait until every client has ended by itself.

        A crew on hosts does nothing: the process that leads a host's clients waits for them.
        """

    def abandon(self) -> None:  # noqa: B027
        """End the clients without waiting for their answer.

        A crew on hosts does nothing: the process that leads a host's clients ends them when the
        connection to the host is closed.
        """

    @contextmanager
    def started(self) -> Iterator[Crew]:
        """Start the clients; when the context ends, have them leave, and wait for their end.

        After a failure, end the clients without waiting for their answer.
        """
        try:
            self.start()
            yield self
            self.leave()
        except BaseException:
            self.abandon()
            raise
        self.join()

    def prepare(
        self, iterations: int, first: int | None = None, rate: float = 0.0, *,
        continues: bool = False, stretches: int = 1,
    ) -> None:  # fmt: skip
        """Have every client prepare for a call of :meth:`measure` with the same arguments.

        For several *stretches*, call :meth:`take` instead.
        """
        at_once = min(iterations, self.most_at_once)
        self._prepare(
            Prepare(at_once, first=first, rate=rate, continues=continues, stretches=stretches)
        )

    def take(self, turns: Iterator[AbstractContextManager[object]]) -> None:
        """Have every client take the prepared stretches, each in the context of one of *turns*.

        Call :meth:`samples` afterwards.
        """
        assert self._prepared is not None
        for _ in range(self._prepared.stretches):
            with next(turns):
                self._take_stretch()

    def samples(self) -> list[Sample]:
        """Have every client check its iterations; return a sample for each prepared stretch."""
        assert self._prepared is not None
        samples = []
        for stretches in self._reported():
            samples.append(Sample(self.size))
            samples[-1].add(stretches, self._prepared.iterations)
        self._prepared = None
        return samples

    def measure(
        self, iterations: int, first: int | None = None, rate: float = 0.0, *,
        counts: bool = True, continues: bool = False,
    ) -> Sample:  # fmt: skip
        """Have every client do *iterations*, all clients at the same time.

        Each client numbers its iterations from *first* on; ``None`` continues the numbers of the
        previous call.  Without a *rate*, a client begins an iteration when the previous one has
        ended.  A *rate* is the number of iterations that all clients together begin in a second.
        A call with a rate begins with uncounted iterations, unless it *continues* the previous
        call's schedule.

        Without *counts*, the iterations are not profiled, and a client that has finished stays idle
        until the others have finished.

        Iterations beyond :attr:`most_at_once` are done in further stretches.
        """
        sample = Sample(self.size)
        left = iterations
        while left:
            counted = min(left, self.most_at_once)
            order = Prepare(counted, counts, first, rate, continues=continues)
            sample.add(self._stretch(order), counted)
            left -= counted
            first = None
        return sample

    def single(self, look: Callable[[], T]) -> tuple[T, T]:
        """Have every client do one unmeasured iteration.

        Return what *look* returns right before and right after the iteration.
        """
        self._prepare(Prepare(1, counts=False))
        before = look()
        self.ask(Start(self._clock.now()))
        after = look()
        self._reported()
        self._prepared = None
        return before, after

    def sendable_rate(self) -> float:
        """Return how many empty iterations per second all clients together can do."""
        sample = Sample(self.size)
        # The rate is so high that all iterations are due immediately.
        order = Prepare(EMPTY_ITERATIONS, rate=EMPTY_ITERATIONS * 1e9, empty=True)
        sample.add(self._stretch(order), EMPTY_ITERATIONS)
        done = sample.iterations + sample.uncounted
        return done / sample.on_clock if sample.on_clock else math.inf

    def _stretch(self, prepare: Prepare) -> list[Stretch]:
        if self._prepared != prepare:
            self._prepare(prepare)
        self._take_stretch()
        self._prepared = None
        (stretches,) = self._reported()
        return stretches

    def _take_stretch(self) -> None:
        """Have every client start and stop."""
        answers = self.ask(Start(self._clock.now() + self._notice + self._lateness))
        late = max(self.ask(Stop()) if None in answers else answers)
        if not late:
            self._lateness *= LATENESS_KEPT
        else:
            self._lateness = min(MAX_LATENESS, self._lateness + LATENESS_ADDED * late)

    def _reported(self) -> list[list[Stretch]]:
        """Return the reports about each stretch since the preparation, sorted by client."""
        return [list(reports) for reports in zip(*self.ask(Report()))]

    def _prepare(self, order: Prepare) -> None:
        self.ask(order)
        self._prepared = order

    def verify(self) -> None:
        """Have each client check its own work; then have the first client check all the work."""
        self.call("audit", self.call("verify"), first_only=True)


@dataclass
class Sample:
    """A crew's measurements for one value.  Stretches are added up, which saves memory."""

    clients: int
    start: float = 0.0
    """The instant at which the first stretch started, in seconds of the crew's clock."""
    end: float = 0.0
    """The instant at which the last client had done its counted iterations."""
    done: float = 0
    """Iterations that all clients together did in :attr:`seconds`; see
    :mod:`~zodbshootout.client.throughput`."""
    seconds: float = 0.0
    shares: list[int] = field(default_factory=list)
    """The iterations that each client did until all clients had done their counted ones."""
    on_clock: float = 0.0
    """Seconds from each stretch's start to the end of its last counted iteration, in total."""
    paused: float = 0.0
    """Seconds that clients paused between counted iterations, in total."""
    iterations: int = 0
    """Iterations that were timed, one by one or in batches."""
    uncounted: int = 0
    """The number of uncounted iterations.  Clients do uncounted iterations after the counted ones.
    If the iterations have a rate, clients also do some before the counted ones."""
    start_spread: float = 0.0
    """The largest number of seconds by which a client was late for a start."""
    start_delay: float = 0.0
    """The largest number of seconds that a client waited for a processor after a start."""
    latencies: Latencies = field(default_factory=Latencies)
    latencies_of: dict[str, Latencies] = field(default_factory=dict)
    """The latencies of each kind of iteration, such as read-only, if there are several kinds."""
    lags: Latencies | None = None
    """The delays of counted iterations after their scheduled start; ``None`` if not scheduled."""
    lag_growth: float = 0.0
    """Seconds by which the mean lag grew from the first half of the iterations to the second."""
    scheduled: float = 0.0
    """Seconds from each client's first scheduled start to its last one, in total."""
    taken: float = 0.0
    """Seconds from the end of each client's first iteration to the end of its last, in total."""
    counts: Counter[str] = field(default_factory=Counter)
    """The numbers of loads, stores and so on, including those of uncounted iterations."""
    cleared: tuple[str, ...] = ()
    used: Used = field(default_factory=Used)
    """The use of the machine by the clients, including uncounted iterations."""

    @property
    def value(self) -> float:
        """Seconds per iteration: clients divided by throughput; with a rate, the mean latency."""
        return self.clients * self.seconds / self.done

    @property
    def part_of_schedule(self) -> float:
        """The scheduled time of the iterations divided by the actual time; 1 without a rate."""
        return part_of_schedule([self])

    @property
    def smallest_share(self) -> float:
        """Iterations of the slowest client, relative to the mean of all clients."""
        return min(self.shares) * self.clients / sum(self.shares)

    def add(self, stretches: Sequence[Stretch], counted: int) -> None:
        """Add the measurements of a stretch in which each client did *counted* iterations."""
        progress = [stretch.progress for stretch in stretches]
        start = min(client.start for client in progress)
        end = max(client.end(counted) for client in progress)
        self.start, self.end = self.start or start, end
        pacings = [stretch.pacing for stretch in stretches if stretch.pacing is not None]
        if pacings:
            self._add_paced(pacings, counted)
        else:
            total = throughput(progress, counted)
            self.done += total.iterations
            self.seconds += total.seconds
        self.on_clock += end - start
        before = self.shares or [0] * self.clients
        self.shares = [share + client.iterations(end) for share, client in zip(before, progress)]
        for stretch in stretches:
            self.paused += stretch.pause
            self.iterations += counted
            self.uncounted += stretch.done - counted
            self.start_spread = max(self.start_spread, stretch.late)
            self.start_delay = max(self.start_delay, stretch.waited)
            self.latencies.merge(stretch.latencies)
            for label, latencies in stretch.latencies_of.items():
                self.latencies_of.setdefault(label, Latencies()).merge(latencies)
            self.counts.update(stretch.counts)
        self.cleared = stretches[0].cleared
        self.used.add(stretch.period for stretch in stretches)

    def _add_paced(self, pacings: Sequence[Pacing], counted: int) -> None:
        self.done += counted * self.clients
        self.seconds += sum(pacing.responses for pacing in pacings) / self.clients
        self.lags = self.lags or Latencies()
        for pacing in pacings:
            self.lags.merge(pacing.lags)
            self.lag_growth += pacing.lag_growth / self.clients
            self.scheduled += pacing.scheduled
            self.taken += pacing.taken


def part_of_schedule(samples: Collection[Sample]) -> float:
    """Return the scheduled time of the iterations divided by the time that they took.

    The result is at most 1, even if iterations catch up with the schedule after a stall.
    """
    taken = sum(sample.taken for sample in samples)
    return min(1.0, sum(sample.scheduled for sample in samples) / taken) if taken else 1.0
