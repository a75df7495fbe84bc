"""The orders of a crew to its clients, the reports of the clients, and their common clock.

A client answers each order with one report, over a queue, a pipe or a network.  Orders and reports
can be pickled.  In addition, a client reports ``None`` once it is set up.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from zodbshootout.client.throughput import Progress
from zodbshootout.model.latencies import Latencies
from zodbshootout.model.usage import Period

SPIN = 0.0003
"""Seconds at the end of a wait during which the clock is polled, because a sleep is imprecise."""


class Clock(Protocol):
    """The clock of all clients on a host, in seconds since an arbitrary instant."""

    def now(self) -> float:
        """Return the time."""

    def wait_until(self, instant: float) -> None:
        """Wait until *instant*; return at once if it has passed."""


class SystemClock:
    """The clock of this host; on Linux and macOS, all processes share it."""

    now = staticmethod(time.perf_counter)

    def wait_until(self, instant: float) -> None:
        while (left := instant - self.now()) > 0:
            # Even a sleep of 0 seconds lets other threads and processes use this processor.
            time.sleep(max(0.0, left - SPIN))


@dataclass(frozen=True)
class Prepare:
    """Get ready for one or more stretches, each with iterations from a start to a stop.

    The answer is ``None``.
    """

    iterations: int
    """The number of counted iterations in each stretch."""
    counts: bool = True
    """Whether the stretch contributes to a value.  If so, clients that are done early go on with
    uncounted iterations until the last client is done."""
    first: int | None = None
    """The number of the first iteration; ``None`` to continue from the previous stretch."""
    rate: float = 0.0
    """The arrival rate of all clients together, in iterations per second; 0 for no rate."""
    empty: bool = False
    """Whether the iterations do nothing, to show the rates that the harness can reach."""
    continues: bool = False
    """Whether the stretch continues the schedule of the previous stretch as if no time lay between
    them.  If so, no uncounted iterations come first."""
    stretches: int = 1
    """The number of stretches, each with its own start and stop."""


@dataclass(frozen=True)
class Start:
    """Start at an instant of the crew's clock.

    A client answers when its counted iterations are done.  The answer is ``None`` if the client
    then goes on with uncounted iterations until the order to stop.  Otherwise, no such order
    follows, and the answer is that to :class:`Stop`.
    """

    instant: float


@dataclass(frozen=True)
class Stop:
    """Begin no more iterations, because all clients are done.

    The answer is the number of seconds by which the client was late for the start.
    """


@dataclass(frozen=True)
class Report:
    """Check all iterations since the preparation; the answer is a list of :class:`Stretch`."""


@dataclass(frozen=True)
class Pacing:
    """How a client kept to the schedule of its counted iterations; all times are in seconds."""

    responses: float
    """The sum of the latencies; see :class:`.session.PacedStretchTimer`."""
    lags: Latencies
    """For each iteration, the time from its scheduled start to its actual start."""
    lag_growth: float
    """The mean lag in the second half of the iterations minus the mean lag in the first half."""
    scheduled: float
    """The time from the scheduled start of the first iteration to that of the last one."""
    taken: float
    """The time from the end of the first iteration to that of the last one."""


@dataclass(frozen=True)
class Stretch:
    """The measurements of a client between a start and a stop."""

    progress: Progress
    latencies: Latencies
    """Latencies of the counted iterations."""
    pause: float
    """Seconds of all pauses before the last counted iteration."""
    late: float
    """Seconds from ``Start.instant`` until the client was ready; 0 if it was in time."""
    waited: float
    """Seconds from ``Start.instant`` until the client got a processor."""
    done: int
    """The number of iterations, including uncounted ones."""
    counts: Mapping[str, int]
    """The numbers of loads, stores and so on, in all iterations since the preparation; empty for
    all stretches but the last."""
    cleared: tuple[str, ...]
    """The caches that were emptied before the stretch."""
    latencies_of: Mapping[str, Latencies] = field(default_factory=dict)
    """Latencies of the counted iterations by kind of iteration, if there are several kinds."""
    pacing: Pacing | None = None
    """How the client kept to the schedule; ``None`` if there was no schedule."""
    period: Period = field(default_factory=Period)
    """The resources that the client's process had used at the start and at the stop."""


@dataclass(frozen=True)
class Call:
    """Call a method while nothing is timed; the answer is the method's result."""

    name: str
    args: tuple[Any, ...] = ()

    def on(self, target: object, allowed: Collection[str]) -> Any:
        """Call the method of *target*; return the result.

        :raises ValueError: if the method's name is not in *allowed*
        """
        if self.name not in allowed:
            raise ValueError(f"{self.name!r} cannot be called here")
        return getattr(target, self.name)(*self.args)


class Channel(Protocol):
    """A client's connection to its crew, such as the ``Connection`` of a pipe."""

    def send(self, report: Any) -> None:
        """Send a report."""

    def recv(self) -> Any:
        """Wait for the next order."""

    def poll(self) -> bool:
        """Let other clients run, and return whether an order has come."""
