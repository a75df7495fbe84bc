"""What a crew measured for one value, its clients together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from zodbshootout.client.progress import throughput
from zodbshootout.client.protocol import Stretch
from zodbshootout.client.recorder import Latencies
from zodbshootout.client.storage_info import Cache


@dataclass
class Sample:
    """The stretches of a value, added up: it takes the same memory however many there are."""

    clients: int
    start: float = 0.0
    """The instant at which the first stretch started, in seconds of the crew's clock."""
    done: float = 0
    """Iterations that all clients did in :attr:`seconds`; see :mod:`~.client.progress`."""
    seconds: float = 0.0
    shares: list[int] = field(default_factory=list)
    """Iterations of each client until the last of them had done what counts."""
    on_clock: float = 0.0
    """Seconds from each start until the last client had done what counts."""
    paused: float = 0.0
    """Seconds that clients spent between iterations meanwhile, added up."""
    iterations: int = 0
    """Iterations that were timed each by itself, or in batches."""
    uncounted: int = 0
    """Iterations that clients went on with until the last had finished."""
    start_spread: float = 0.0
    """The most seconds by which a client came late to a start."""
    start_delay: float = 0.0
    """The most seconds that a client had to wait for a processor after a start."""
    latencies: Latencies = field(default_factory=Latencies)
    counts: Counter[str] = field(default_factory=Counter)
    cleared: tuple[Cache, ...] = ()

    @property
    def value(self) -> float:
        """Seconds per iteration: clients / throughput, the throughput in iterations per second."""
        return self.clients * self.seconds / self.done

    @property
    def client_values(self) -> list[float]:
        """Seconds per iteration of each client; 0 where it did none."""
        return [self.on_clock / share if share else 0.0 for share in self.shares]

    @property
    def smallest_share(self) -> float:
        """What the slowest client did, as a part of what it would have if all did the same."""
        return min(self.shares) * self.clients / sum(self.shares)

    def add(self, stretches: Sequence[Stretch], counted: int) -> None:
        """Add what each client measured in a stretch of *counted* iterations."""
        progress = [each.progress for each in stretches]
        found = throughput(progress, counted)
        start = min(each.start for each in progress)
        end = max(each.end(counted) for each in progress)
        self.start = self.start or start
        self.done += found.iterations
        self.seconds += found.seconds
        self.on_clock += end - start
        before = self.shares or [0] * self.clients
        self.shares = [
            was + each.iterations(end) for was, each in zip(before, progress, strict=True)
        ]
        for each in stretches:
            self.paused += each.pause
            self.iterations += counted
            self.uncounted += each.done - counted
            self.start_spread = max(self.start_spread, each.late)
            self.start_delay = max(self.start_delay, each.waited)
            self.latencies.merge(each.latencies)
            self.counts.update(each.counts)
        self.cleared = stretches[0].cleared
