"""The protocol between a crew and a client: orders, reports, and the clock that both read.

Each order is answered by one report, over a queue, a pipe or a network.  Orders and reports can be
pickled.  In addition, a client reports ``None`` once it is set up.
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
"""The clock is polled for this many seconds before an instant, because sleep is less precise."""


class Clock(Protocol):
    """A clock in seconds, of which only differences count; all clients on a host share it."""

    def now(self) -> float:
        """Return the time."""

    def wait_until(self, instant: float) -> None:
        """Return at *instant*, or at once if it has passed."""


class SystemClock:
    """The clock of this host, the same for all processes on Linux and macOS."""

    now = staticmethod(time.perf_counter)

    def wait_until(self, instant: float) -> None:
        while (left := instant - self.now()) > 0:
            # Other threads and processes that wait for this processor run meanwhile.
            time.sleep(max(0.0, left - SPIN))


@dataclass(frozen=True)
class Prepare:
    """Get ready for a stretch; the answer is ``None``."""

    iterations: int
    counts: bool = True
    """Whether it contributes to a value; if so, clients go on until the last one is done."""
    first: int | None = None
    """The number of its first iteration; ``None`` to continue from the previous stretch."""
    rate: float = 0.0
    """The arrival rate of all clients together, in iterations a second; 0 if none is given."""
    empty: bool = False
    """Whether its iterations do nothing, which shows the rates that the harness can reach."""
    continues: bool = False
    """Whether it continues the queue of the previous stretch: no uncounted iterations come
    first, and the schedule leaves out the time between the stretches."""


@dataclass(frozen=True)
class Start:
    """Start at an instant of the crew's clock; the answer is ``None``.

    The client answers when its counted iterations are done, then goes on with uncounted ones.
    """

    instant: float


@dataclass(frozen=True)
class Stop:
    """Begin no more iterations: all clients are done; the answer is a :class:`Stretch`."""


@dataclass(frozen=True)
class Pacing:
    """A client's schedule of its counted iterations, and its delays behind it, in seconds."""

    responses: float
    """The sum of their latencies, each from the instant at which an iteration was due."""
    lags: Latencies
    """The delays between the instants at which iterations were due and their starts."""
    lag_growth: float
    """The mean lag in the second half of the iterations minus that in the first half."""
    scheduled: float
    """The time from the scheduled start of the first iteration to that of the last one."""
    taken: float
    """The time from the end of the first iteration to that of the last one."""


@dataclass(frozen=True)
class Stretch:
    """Measurements of a client between a start and a stop."""

    progress: Progress
    latencies: Latencies
    """Latencies of the counted iterations."""
    pause: float
    """Seconds between iterations, up to the last counted one."""
    late: float
    """Seconds by which the client missed the agreed instant."""
    waited: float
    """Seconds from the agreed instant until the client got a processor."""
    done: int
    """Iterations, uncounted ones included."""
    counts: Mapping[str, int]
    """The numbers of loads, stores and so on, in all iterations."""
    cleared: tuple[str, ...]
    """The caches that were emptied before the stretch."""
    latencies_of: Mapping[str, Latencies] = field(default_factory=dict)
    """Latencies of the counted iterations by kind of iteration, if there are several kinds."""
    pacing: Pacing | None = None
    """``None`` if the iterations had no schedule."""
    period: Period = field(default_factory=Period)
    """The use of the machine by the client's process, at the start and at the stop."""


@dataclass(frozen=True)
class Call:
    """Call a method by its name, off the clock; the answer is its result."""

    name: str
    args: tuple[Any, ...] = ()

    def on(self, target: object, allowed: Collection[str]) -> Any:
        """Call the method of *target*, and return its result.

        :raises ValueError: if its name is not among those *allowed*
        """
        if self.name not in allowed:
            raise ValueError(f"{self.name!r} cannot be called here")
        return getattr(target, self.name)(*self.args)


class Channel(Protocol):
    """A client's end of the connection to its crew, such as the ``Connection`` of a pipe."""

    def send(self, report: Any) -> None:
        """Send a report."""

    def recv(self) -> Any:
        """Wait for the next order."""

    def poll(self) -> bool:
        """Return whether an order has come; let other clients run meanwhile."""
