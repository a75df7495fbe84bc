"""A client's session: in a process, thread or greenlet, it carries out the orders of a crew."""

from __future__ import annotations

import gc
import itertools
import math
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from statistics import fmean
from typing import Any

from zodbshootout.client import protocol
from zodbshootout.client.benchmarks.benchmark import Benchmark, Nothing
from zodbshootout.client.connections import Peer, Socket, peers, sockets
from zodbshootout.client.finish import Finish
from zodbshootout.client.protocol import Call, Channel, Clock
from zodbshootout.client.recovery import Recovered, Recovery
from zodbshootout.client.throughput import Progress, kept_indices
from zodbshootout.client.usage import helpers_now, memory_now, usage_now
from zodbshootout.model.arrivals import lead
from zodbshootout.model.latencies import Latencies
from zodbshootout.model.outcome import failure_of
from zodbshootout.model.specification import RESTARTS, Address
from zodbshootout.model.storage_facts import DiskSize
from zodbshootout.model.usage import Period, Usage

POLL_INTERVAL = 0.0005
"""Seconds between checks for orders during uncounted iterations; a check interrupts the load.  Also
the longest wait for an iteration of a schedule, for each client."""
MAX_NOTED = 2**17
"""The maximum number of end times that a timer keeps for uncounted iterations.  If the timer
has more end times, it drops every second end time."""
CALLS = frozenset(
    {"verify", "audit", "disk_size", "memory", "peers", "sockets", "recovered", "leave"}
)
"""The methods of a :class:`Session` that its crew may call."""


def follow_orders(
    channel: Channel,
    open_benchmark: Callable[[], Benchmark],
    clock: Clock,
    finish: Finish | None = None,
) -> None:
    """Open a benchmark, and carry out orders until the order to leave.

    A client without a *finish* goes on after its counted iterations until the order to stop.

    After an exception, the last report is a :class:`~zodbshootout.model.outcome.Failure`.
    """
    try:
        benchmark = open_benchmark()
        benchmark.set_up()
        channel.send(None)
        Session(channel, benchmark, clock, finish).follow_orders()
    except threading.BrokenBarrierError as error:
        channel.send(failure_of(error, secondary=True))
    except BaseException as error:  # noqa: BLE001 - only this cell may fail
        channel.send(failure_of(error))


class Session:
    """One client that runs one benchmark."""

    def __init__(
        self, channel: Channel, benchmark: Benchmark, clock: Clock, finish: Finish | None = None
    ) -> None:
        self._channel = channel
        self._finish = finish
        self._benchmark = benchmark
        self._clock = clock
        benchmark.pace.now = clock.now
        self._in_rounds = benchmark.shape(benchmark.client.parameters).in_rounds
        self._order = protocol.Prepare(0)
        """The latest order to prepare."""
        self._schedule: Iterator[float] | None = None
        self._stretches = itertools.count()
        """A counter of stretches, which starts again at 0 if an order sets ``first``."""
        self._taken: list[StretchTimer] = []
        """The stretches since the latest order to prepare."""
        self._frozen = ExitStack()
        """Objects are frozen from the first start after a preparation until the report."""
        self._lead = self._supply = 0
        self._behind = 0.0
        """Seconds from when the latest iteration was due until it ended."""
        self._has_left = False
        restarts = benchmark.client.parameters.during in RESTARTS
        self._recovery = Recovery(benchmark, lambda: self._supply) if restarts else None

    def follow_orders(self) -> None:
        """Carry out orders, up to and including the order to leave."""
        while not self._has_left:
            self._channel.send(self._carry_out(self._channel.recv()))

    def _carry_out(self, order: Any) -> Any:
        if isinstance(order, protocol.Prepare):
            self._prepare(order)
            return None
        if isinstance(order, protocol.Start):
            return self._run_stretch(order)
        if isinstance(order, protocol.Report):
            return self._report()
        call: Call = order
        return call.on(self, CALLS)

    def _prepare(self, order: protocol.Prepare) -> None:
        benchmark = Nothing(self._benchmark.client) if order.empty else self._benchmark
        self._order, self._taken = order, []
        self._lead = lead(order.iterations) if order.rate and not order.continues else 0
        if not order.empty:
            self._prepare_benchmark(order)
        pace = benchmark.pace
        self._schedule = iter(pace.schedule) if pace.schedule else None
        if order.rate:
            if order.first is not None:
                self._stretches = itertools.count()
            name = f"{benchmark.name}/{order.first}/{next(self._stretches)}"
            self._schedule = pace.arrivals(order.rate, name)

    def _prepare_benchmark(self, order: protocol.Prepare) -> None:
        benchmark = self._benchmark
        benchmark.first = order.first
        if self._recovery is not None:
            self._recovery.begin()
        benchmark.prepare()
        benchmark.counts.clear()
        counted = (self._lead + order.iterations) * order.stretches
        # Supply some uncounted iterations as well, so that they begin without a pause.
        spare = max(2, order.iterations // 4) * order.stretches if self._goes_on else 0
        self._supply = benchmark.supply(counted + spare)
        if self._supply < counted:
            raise RuntimeError(f"{benchmark.name}: prepared for {self._supply} iterations only")
        benchmark.client.transfers()

    @property
    def _goes_on(self) -> bool:
        """Whether to keep the load up for other clients after the counted iterations."""
        alone = self._benchmark.client.parameters.crew.size == 1
        counts = self._order.counts and not self._order.empty
        return counts and not alone and not self._in_rounds

    def _run_stretch(self, order: protocol.Start) -> float:
        """Carry out an order to start, and the order to stop if one follows; return the answer."""
        if not self._taken:
            self._frozen.enter_context(_objects_frozen())
        stretch = self._stretch_timer()
        stretch.start(order.instant)
        self._benchmark.timed = self._order.counts
        stretch.run_counted()
        self._benchmark.timed = False
        if not self._goes_on:
            stretch.stop()
        elif self._finish is not None:
            self._finish.arrive()
            self._go_on(stretch, self._finish.all_arrived, 0.0)
            stretch.stop()
        else:
            self._channel.send(None)
            self._go_on(stretch, self._channel.poll, POLL_INTERVAL)
            stretch.stop()
            self._channel.recv()
        if not self._order.empty:
            self._benchmark.check_latest()
        self._taken.append(stretch)
        if len(self._taken) < self._order.stretches and self._benchmark.between is not None:
            self._benchmark.between()  # while no other contender is measured
        return stretch.late

    def _report(self) -> list[protocol.Stretch]:
        """Check all iterations since the preparation; return the stretches."""
        self._frozen.close()
        if not self._order.empty:
            self._behind = self._taken[-1].behind
            since = self._recovery.since if self._recovery is not None else 0
            self._benchmark.check(sum(stretch.done for stretch in self._taken) - since)
        reports = [stretch.report() for stretch in self._taken]
        return [*reports[:-1], replace(reports[-1], counts=dict(self._benchmark.counts))]

    def _stretch_timer(self) -> StretchTimer:
        benchmark, iterations = self._benchmark, self._order.iterations
        if self._order.empty:
            benchmark = Nothing(benchmark.client)
        if self._schedule is None:
            return StretchTimer(benchmark, self._clock, iterations)
        timer = PacedStretchTimer(benchmark, self._clock, iterations, self._schedule, self._lead)
        if self._order.continues:
            timer.delayed = self._behind
        if self._recovery is not None and not self._order.empty:
            timer.run = self._recovery.run
        return timer

    def _go_on(self, stretch: StretchTimer, is_over: Callable[[], bool], interval: float) -> None:
        """Keep the load up while other clients still have counted iterations to do.

        At most once in *interval* seconds, *is_over* is called, which tells whether they have.

        If clients can block each other, a client does at most as many uncounted iterations as
        counted ones; more might keep the other clients from finishing.
        """
        benchmark = self._benchmark
        most = stretch.done + self._order.iterations if benchmark.traits.obstructs else math.inf
        # The supplies for the counted iterations of later stretches are not to be used up here.
        later = self._order.stretches - len(self._taken) - 1
        reserved = sum(taken.done for taken in self._taken) + later * self._order.iterations
        next_poll = 0.0
        while stretch.done < most:
            now = self._clock.now()
            if now >= next_poll:
                if is_over():
                    return
                next_poll = now + interval
            if not stretch.wait_until_due():
                continue
            if reserved + stretch.done >= self._supply:
                more = benchmark.supply(max(stretch.batch, self._order.iterations))
                if not more:
                    return
                self._supply += more
            stretch.run_uncounted()

    def disk_size(self) -> DiskSize:
        """Return the bytes that the database takes on disk, as far as they are known."""
        client = self._benchmark.client
        return client.database.disk_size(blobs=client.parameters.blobs)

    def recovered(self, gone: float) -> Recovered:
        """Describe how this client came through a restart; see :meth:`Recovery.recovered`."""
        assert self._recovery is not None
        return self._recovery.recovered(gone)

    def peers(self) -> frozenset[Peer]:
        """Return the peers of all connections of this process."""
        return peers()

    def sockets(self) -> dict[Socket, Address]:
        """Return the connections of this process; see :func:`.connections.sockets`."""
        return sockets()

    def memory(self) -> int:
        """Collect garbage, and return the bytes of memory that the process uses now.

        There may be much garbage: during a stretch, the collector skips all older objects.
        """
        gc.collect()
        return memory_now()

    def verify(self) -> Any:
        """Check the database; return what this client has done, for :meth:`audit`."""
        return self._benchmark.verify()

    def audit(self, accounts: Sequence[Any]) -> None:
        """Check the work of all clients; *accounts* are the results of their :meth:`verify`."""
        self._benchmark.audit(accounts)

    def leave(self) -> None:
        self._benchmark.tear_down()
        self._has_left = True


class StretchTimer:
    """Times the iterations of one client from a start to a stop."""

    def __init__(self, benchmark: Benchmark, clock: Clock, iterations: int) -> None:
        self._benchmark = benchmark
        self._pace = benchmark.pace
        self._clock = clock
        self._iterations = iterations
        self._shape = benchmark.shape(benchmark.client.parameters)
        self.batch = min(self._shape.batch, iterations)
        self.done = 0
        """The number of iterations so far, including uncounted ones."""
        self.late = 0.0
        """Seconds by which the client was late for the start."""
        self._origin = self._start = self._waited = 0.0
        self.behind = 0.0
        """Seconds from when the latest iteration was due until it ended; 0 without a schedule."""
        self._lead = 0
        """The number of uncounted iterations before the counted ones."""
        self._starts = array("d")
        self._ends = array("d")
        self._uncounted_ends = array("d")
        self._uncounted_done = array("q")
        self._skipped = self._since_noted = 0
        self._used_before = self._used_after = Usage()
        self._cpu_of_pauses = 0.0

    def start(self, instant: float) -> None:
        """Wait for the *instant* at which all clients start.

        A client's time starts at *instant* or, if the client is late, when it calls this method;
        waiting for a processor or the GIL is part of that time.  If there is only one client, its
        time starts when the wait is over.
        """
        now = self._clock.now
        alone = self._benchmark.client.parameters.crew.size == 1
        self.late = 0.0 if alone else max(0.0, now() - instant)
        helpers = helpers_now()  # this takes long if there are helpers
        self._clock.wait_until(instant)
        self._used_before = usage_now(helpers)
        began = now()
        self._waited = max(0.0, began - instant)
        self._origin = began if alone else instant
        self._start = began if alone else instant + self.late

    def run_counted(self) -> None:
        """Do the counted iterations, interrupted only by pauses of the benchmark itself."""
        between = self._benchmark.between
        whole, last = divmod(self._iterations, self.batch)
        if between is not None:
            self._with_pauses(between)
        elif self.batch == 1:
            self._without_pause()
        else:
            self._in_batches([self.batch] * whole + ([last] if last else []))
        self.done = self._iterations

    def stop(self) -> None:
        """Record what the process has used of the machine so far."""
        self._used_after = usage_now()

    def wait_until_due(self) -> bool:
        """Wait, but only briefly, for the next uncounted iteration; return whether it is due."""
        return True

    def _without_pause(self) -> None:
        run, now, note = self._benchmark.run, self._clock.now, self._ends.append
        for _ in range(self._iterations):
            run()
            note(now())

    def _with_pauses(self, between: Callable[[], None]) -> None:
        run, now = self._benchmark.run, self._clock.now
        note_start, note_end = self._starts.append, self._ends.append
        pace, start = self._pace, self._start
        for iteration in range(self._iterations):
            if iteration:
                self._pause_with(between)
                start = now()
            pace.waited_until = 0.0
            run()
            note_end(now())
            note_start(max(start, pace.waited_until))

    def _in_batches(self, sizes: list[int]) -> None:
        run, now, note = self._benchmark.run, self._clock.now, self._ends.append
        for size in sizes:
            for _ in range(size):
                run()
            note(now())

    def run_uncounted(self) -> None:
        """Do an uncounted iteration; if it ends a batch, note when."""
        benchmark = self._benchmark
        if benchmark.between is not None:
            self._pause_with(benchmark.between)
        benchmark.run()
        self.done += 1
        if not (self.done - self._iterations) % self.batch:
            self._note_uncounted()

    def _pause_with(self, action: Callable[[], None]) -> None:
        """Call *action* between two iterations, and add up its processor time."""
        before = time.thread_time()
        action()
        self._cpu_of_pauses += time.thread_time() - before

    def _note_uncounted(self) -> None:
        self._since_noted += 1
        if self._since_noted > self._skipped:
            self._since_noted = 0
            self._uncounted_ends.append(self._clock.now())
            self._uncounted_done.append(self.done - self._lead)
            if len(self._uncounted_ends) > MAX_NOTED:
                self._uncounted_ends = self._uncounted_ends[1::2]
                self._uncounted_done = self._uncounted_done[1::2]
                self._skipped = 2 * self._skipped + 1

    def report(self) -> protocol.Stretch:
        benchmark = self._benchmark
        return protocol.Stretch(
            progress=self._progress(),
            latencies=self._latencies(),
            latencies_of=self._latencies_of_labels(),
            pacing=self._pacing(),
            pause=self._pause(),
            late=self.late,
            waited=self._waited,
            done=self.done,
            counts={},
            cleared=benchmark.cleared,
            period=Period(self._used_before, self._used_after, self._cpu_of_pauses),
        )

    def _progress(self) -> Progress:
        ended = len(self._ends)
        if self._shape.in_rounds:
            return Progress(self._start, [self._ends[-1]], [self._iterations])
        total = ended + len(self._uncounted_ends)
        kept = kept_indices(ended, total, self._benchmark.client.parameters.crew.size)
        counted = [index for index in kept if index < ended]
        uncounted = [index - ended for index in kept if index >= ended]
        return Progress(
            self._start,
            [
                *(self._ends[index] for index in counted),
                *(self._uncounted_ends[index] for index in uncounted),
            ],
            [
                *(min(self._iterations, (index + 1) * self.batch) for index in counted),
                *(self._uncounted_done[index] for index in uncounted),
            ],
        )

    def _latencies(self) -> Latencies:
        # Record the durations one by one: a list of them would take much memory.
        latencies = Latencies()
        durations = self._durations()
        whole, last = divmod(self._iterations, self.batch)
        latencies.record(itertools.islice(durations, whole), self.batch)
        if last:
            latencies.record(durations, last)
        return latencies

    def _latencies_of_labels(self) -> dict[str, Latencies]:
        labels = self._pace.labels[self._lead :]
        latencies = {label: Latencies() for label in labels}
        for label, duration in zip(labels, self._durations()):
            latencies[label].record([duration])
        return latencies

    def _durations(self) -> Iterator[float]:
        """Yield the seconds that each counted iteration, or batch of them, took."""
        starts = self._starts or itertools.chain([self._start], self._ends)
        return (end - start for start, end in zip(starts, self._ends))

    def _pause(self) -> float:
        starts = itertools.islice(self._starts, 1, None)
        return sum(start - end for start, end in zip(starts, self._ends))

    def _pacing(self) -> protocol.Pacing | None:
        return None


class PacedStretchTimer(StretchTimer):
    """Times iterations that are due at the instants of a schedule.

    An iteration begins when it is due or, if that is later, when the previous one has ended.  If
    the iteration waits for another client, its latency counts from the end of this wait.  Otherwise
    its latency counts from the instant at which the iteration was due.
    """

    def __init__(
        self, benchmark: Benchmark, clock: Clock, iterations: int,
        schedule: Iterator[float], lead: int,
    ) -> None:  # fmt: skip
        super().__init__(benchmark, clock, iterations)
        self.batch = 1
        self.delayed = 0.0
        """Seconds by which the previous stretch ended behind schedule.  This stretch starts equally
        far behind."""
        self._schedule = schedule
        self.run = benchmark.run
        """A function that does an iteration."""
        self._lead = lead
        self._next: float | None = None
        """The instant at which the next iteration is due; ``None`` until it is computed."""
        self._scheduled = array("d")
        self._lags = array("d")

    def run_counted(self) -> None:
        for _ in range(self._lead):
            self._run_when_due()
        for _ in range(self._iterations):
            instant, began = self._run_when_due()
            self._ends.append(self._clock.now())
            self._starts.append(max(instant, self._pace.waited_until))
            self._scheduled.append(instant)
            self._lags.append(began - instant)
        self.behind = self._ends[-1] - self._scheduled[-1]

    def _run_when_due(self) -> tuple[float, float]:
        """Do the next iteration; return when it was due and when it began."""
        if self.done and self._benchmark.between is not None:
            self._pause_with(self._benchmark.between)
        instant = self._next_instant()
        self._pause_with(lambda: self._clock.wait_until(instant))
        self._pace.waited_until = 0.0
        began = self._clock.now()
        self.run()
        self.done += 1
        self._next = None
        return instant, began

    def _next_instant(self) -> float:
        if self._next is None:
            self._next = self._origin - self.delayed + next(self._schedule)
        return self._next

    def wait_until_due(self) -> bool:
        instant, now = self._next_instant(), self._clock.now
        # With shorter waits, the polls of hundreds of threads would use up a processor.
        interval = POLL_INTERVAL * self._benchmark.client.parameters.crew.size
        self._clock.wait_until(min(instant, now() + interval))
        return now() >= instant

    def run_uncounted(self) -> None:
        instant, _ = self._run_when_due()
        self.behind = self._clock.now() - instant
        self._note_uncounted()

    def _pause(self) -> float:
        return 0.0  # the schedule causes the gaps between iterations

    def _pacing(self) -> protocol.Pacing:
        lags = Latencies()
        lags.record(self._lags)
        half = len(self._lags) // 2
        growth = fmean(self._lags[half:]) - fmean(self._lags[:half]) if half else 0.0
        return protocol.Pacing(
            responses=sum(self._durations()),
            lags=lags,
            lag_growth=growth,
            scheduled=self._scheduled[-1] - self._scheduled[0],
            taken=self._ends[-1] - self._ends[0],
        )


@contextmanager
def _objects_frozen() -> Iterator[None]:
    """Keep the garbage collector from traversing the objects that the harness has prepared."""
    if not hasattr(gc, "freeze"):  # PyPy
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
