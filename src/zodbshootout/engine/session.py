"""What a client does, from its first word to its last.  It runs wherever the client lives."""

from __future__ import annotations

import math
import threading
from array import array
from collections.abc import Callable
from itertools import pairwise

from zodbshootout.benchmarks.benchmark import Benchmark
from zodbshootout.engine import protocol
from zodbshootout.engine.protocol import Channel
from zodbshootout.engine.sample import ClientSample

Clock = Callable[[], float]
"""Returns seconds; only differences count."""


def attend(channel: Channel, open_benchmark: Callable[[], Benchmark], clock: Clock) -> None:
    """Open a benchmark and follow orders until told to leave.

    Whatever goes wrong is reported as :class:`~.protocol.Failed`, after which nothing more comes.
    """
    try:
        benchmark = open_benchmark()
        benchmark.set_up()
        session = Session(channel, benchmark, clock)
        channel.send(protocol.Arrived())
        session.follow_orders()
    except threading.BrokenBarrierError as error:
        channel.send(protocol.failed(error, secondary=True))
    except BaseException as error:  # noqa: BLE001 - the cell's isolation begins here
        channel.send(protocol.failed(error))


class Session:
    """One client at work on one benchmark."""

    def __init__(self, channel: Channel, benchmark: Benchmark, clock: Clock) -> None:
        self._channel = channel
        self._benchmark = benchmark
        self._clock = clock
        client = benchmark.client
        self._keeps_step = benchmark.in_step and client.parameters.crew.shared

    def follow_orders(self) -> None:
        """Do what is ordered, up to and including the order to leave."""
        while True:
            order = self._channel.receive()
            if isinstance(order, protocol.Measure):
                self._measure(order)
            elif isinstance(order, protocol.Verify):
                self._benchmark.verify()
                self._channel.send(protocol.Verified(self._benchmark.account()))
            elif isinstance(order, protocol.Audit):
                self._benchmark.audit(order.accounts)
                self._channel.send(protocol.Audited())
            elif isinstance(order, protocol.Leave):
                self._benchmark.tear_down()
                self._channel.send(protocol.Left())
                return

    def _measure(self, order: protocol.Measure) -> None:
        self._benchmark.begin()
        self._iterate(order.batch)
        self._benchmark.counts.clear()
        self._channel.send(protocol.Ready())
        self._await_start()
        self._channel.send(protocol.Finished(self._clocked_iterations(order)))
        self._go_on_until_told(order)
        self._channel.send(protocol.Resting())

    def _await_start(self) -> None:
        """Follow orders until that to go."""
        client = self._benchmark.client
        while not isinstance(order := self._channel.receive(), protocol.Go):
            if isinstance(order, protocol.Part):
                client.part()
                self._channel.send(protocol.Parted())
            elif isinstance(order, protocol.ComeBack):
                client.come_back()
                self._channel.send(protocol.Ready())

    def _clocked_iterations(self, order: protocol.Measure) -> ClientSample:
        starts, durations, sizes = array("d"), array("d"), array("q")
        benchmark = self._benchmark
        benchmark.clocked = True
        left = order.loops
        while left:
            size = min(order.batch, left)
            moments = self._iterate(size)
            starts.extend(moments[:-1])
            durations.extend(end - start for start, end in pairwise(moments))
            sizes.extend([1] * size if benchmark.timed_singly else [size])
            left -= size
        benchmark.clocked = False
        return ClientSample(
            starts,
            durations,
            sizes,
            dict(benchmark.counts),
            benchmark.cleared,
            benchmark.uncleared,
        )

    def _go_on_until_told(self, order: protocol.Measure) -> None:
        """Keep the load up while others are still on the clock.

        Where clients keep step they all finish together, and one alone would wait for ever.  Where
        they can keep each other from getting through, none goes on for longer than it was measured:
        it could be the one that the others wait for.
        """
        benchmark = self._benchmark
        left = order.loops if benchmark.obstructs else math.inf
        while not self._keeps_step and left > 0 and not self._channel.poll():
            self._iterate(order.batch)
            left -= order.batch
        self._channel.receive()

    def _iterate(self, size: int) -> list[float]:
        """Do a batch of iterations; return when it started and ended, in seconds.

        Where iterations are timed singly, the ends of all of them are returned.  Each is the start
        of the next.
        """
        benchmark, clock = self._benchmark, self._clock
        run, batch = benchmark.run, range(size)
        benchmark.prepare()
        # Those who keep step begin at one instant.  Who then has to wait for a processor, or the
        # interpreter's lock, waits on the clock, as whoever waits for an answer would.
        moments = [benchmark.client.together(clock) if self._keeps_step else clock()]
        if benchmark.timed_singly:
            # But not in the first of many: it would bear that for all of them.
            benchmark.approach()
            moments = [clock()]
            for _ in batch:
                run()
                moments.append(clock())
        else:
            for _ in batch:
                run()
            moments.append(clock())
        benchmark.check()
        return moments
