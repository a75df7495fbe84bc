"""What the engine and a client say to each other.

One order is answered by one report, whatever lies between them: a queue, a pipe, a network.
Everything here can be pickled.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from zodbshootout.benchmarks.benchmark import CheckFailed, Unsupported
from zodbshootout.engine.sample import ClientSample


@dataclass(frozen=True)
class Measure:
    """Get ready for a value of so many iterations; answered by :class:`Ready`."""

    loops: int
    batch: int


@dataclass(frozen=True)
class Part:
    """Close the database; answered by :class:`Parted`."""


@dataclass(frozen=True)
class ComeBack:
    """Open the database again; answered by :class:`Ready`."""


@dataclass(frozen=True)
class Go:
    """Start, now; answered by :class:`Finished`.  The client goes on, off the clock."""


@dataclass(frozen=True)
class Rest:
    """Stop, for all have finished; answered by :class:`Resting`."""


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
class Arrived:
    """The client is set up.  Nobody ordered this: it is the first that a client says."""


@dataclass(frozen=True)
class Ready:
    """The client stands at the start line."""


@dataclass(frozen=True)
class Parted:
    """The client has closed its database."""


@dataclass(frozen=True)
class Finished:
    """The client has done its clocked iterations."""

    sample: ClientSample


@dataclass(frozen=True)
class Resting:
    """The client does nothing any more."""


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
    """The client has closed its database."""


@dataclass(frozen=True)
class Failed:
    """What a client says instead of an answer when it cannot go on, and its last word."""

    cause: str
    """One line."""
    detail: str
    """The traceback."""
    unsupported: bool = False
    """Whether the contender is merely not made for this benchmark."""
    secondary: bool = False
    """Whether this client only stopped because another one had failed."""


class Channel(Protocol):
    """A client's end of the line."""

    def send(self, report: Any) -> None:
        """Send a report."""

    def receive(self) -> Any:
        """Wait for the next order."""

    def poll(self) -> bool:
        """Say whether an order has come; let other clients run meanwhile."""


def describe(error: BaseException) -> str:
    """Return an exception as one line: its class, unless the message says it all, and message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    message = " ".join(lines[:2])
    if isinstance(error, (CheckFailed, Unsupported)):
        return message
    name = type(error).__name__
    return f"{name}: {message}" if message else name


def failed(error: BaseException, *, secondary: bool = False) -> Failed:
    """Return the report of an exception."""
    detail = "".join(traceback.format_exception(error))
    return Failed(describe(error), detail, isinstance(error, Unsupported), secondary)
