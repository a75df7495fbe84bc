"""What a crew and a client say to each other.

One order is answered by one report, whatever lies between them: a queue, a pipe, a network.
Everything here can be pickled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from zodbshootout.client.progress import Progress
from zodbshootout.client.recorder import Latencies
from zodbshootout.client.storage_info import Cache


@dataclass(frozen=True)
class Prepare:
    """Get ready for a stretch of so many iterations; answered by :class:`Ready`."""

    iterations: int
    counts: bool = True
    """Whether it is a part of a value, and not of calibration: then a client goes on until the last
    has done its iterations."""


@dataclass(frozen=True)
class Start:
    """Start at an instant of the crew's clock; answered by :class:`Finished`."""

    instant: float


@dataclass(frozen=True)
class Stop:
    """Do no other iteration, for all have finished; answered by a :class:`Stretch`."""


@dataclass(frozen=True)
class CloseDatabase:
    """Close the database; answered by :class:`Closed`."""


@dataclass(frozen=True)
class ReopenDatabase:
    """Open the database again; answered by :class:`Ready`."""


@dataclass(frozen=True)
class Verify:
    """Check what is in the database; answered by :class:`Verified`."""


@dataclass(frozen=True)
class Audit:
    """Check what all clients have done together; answered by :class:`Audited`."""

    accounts: Sequence[Any]


@dataclass(frozen=True)
class Leave:
    """Close everything and end; answered by :class:`Left`."""


@dataclass(frozen=True)
class Ready:
    """The client has done what was ordered, or is set up: then nobody has ordered it."""


@dataclass(frozen=True)
class Finished:
    """The client has done the iterations that count, and goes on with others."""


@dataclass(frozen=True)
class Stretch:
    """What a client measured between a start and a stop."""

    progress: Progress
    latencies: Latencies
    """Of the iterations that count."""
    pause: float
    """Seconds between iterations, up to the last one that counts."""
    late: float
    """Seconds after the agreed instant in which the client came to wait for it."""
    waited: float
    """Seconds after the agreed instant in which it was given a processor."""
    done: int
    """Iterations, uncounted ones included."""
    counts: Mapping[str, int]
    """Loads, stores and whatever else the benchmark counts, of all iterations."""
    cleared: tuple[Cache, ...]
    """The caches that were emptied before."""


@dataclass(frozen=True)
class Closed:
    """The client has closed its database."""


@dataclass(frozen=True)
class Verified:
    """The database holds what the client has left there."""

    account: Any
    """What it did, for the audit."""


@dataclass(frozen=True)
class Audited:
    """What the clients did adds up."""


@dataclass(frozen=True)
class Left:
    """The client has closed its database and ends."""


class Channel(Protocol):
    """A client's end of the connection to its crew."""

    def send(self, report: Any) -> None:
        """Send a report."""

    def receive(self) -> Any:
        """Wait for the next order."""

    def poll(self) -> bool:
        """Say whether an order has come; let other clients run meanwhile."""
