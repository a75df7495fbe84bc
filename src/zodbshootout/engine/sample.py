"""What a crew measured: the iterations of each client, and what is told of them."""

from __future__ import annotations

import statistics
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

COLLECTORS: Mapping[str, Callable[[Iterable[float]], float]] = {
    "mean": statistics.fmean,
    "max": max,
    "min": min,
}
"""How a value is made of the clients' means, by the name that ``--collector`` gives it."""


@dataclass(frozen=True)
class ClientSample:
    """The clocked iterations of one client for one value.

    Iterations are timed by themselves, or in batches of several where one is too short.
    """

    starts: array[float]
    """When each batch started, in seconds of the client's own clock."""
    durations: array[float]
    """How long each batch took, in seconds."""
    sizes: array[int]
    """Iterations of each batch."""
    counts: Mapping[str, int]
    """Loads, stores and whatever else the benchmark counted."""
    cleared: tuple[str, ...]
    """The caches emptied before each iteration."""
    uncleared: tuple[str, ...] | None = None
    """The caches that were not, of those that should have been; ``None`` where none should."""

    @property
    def iterations(self) -> int:
        """How many iterations were clocked."""
        return sum(self.sizes)

    @property
    def mean(self) -> float:
        """Seconds per iteration."""
        return sum(self.durations) / self.iterations

    @property
    def end(self) -> float:
        """When the last iteration ended."""
        return self.starts[-1] + self.durations[-1]

    def latencies(self) -> list[tuple[float, int]]:
        """Return seconds per iteration, with how many iterations that speaks for."""
        return [
            (duration / size, size)
            for duration, size in zip(self.durations, self.sizes, strict=True)
        ]

    def iterations_within(self, start: float, end: float) -> int:
        """Return how many iterations lay between two moments as a whole."""
        return sum(
            size
            for begun, took, size in zip(self.starts, self.durations, self.sizes, strict=True)
            if start <= begun and begun + took <= end
        )


@dataclass(frozen=True)
class CrewSample:
    """What all clients of a crew measured for one value."""

    clients: Sequence[ClientSample]

    def value(self, collector: str) -> float:
        """Return seconds per iteration: by default the mean over the clients' means."""
        return COLLECTORS[collector](client.mean for client in self.clients)

    @property
    def start_spread(self) -> float:
        """Seconds between the first and the last client's first iteration, on a shared clock."""
        starts = [client.starts[0] for client in self.clients]
        return max(starts) - min(starts)

    @property
    def window(self) -> tuple[float, float]:
        """The time in which all clients had begun and none had ended its clocked iterations."""
        return (
            max(client.starts[0] for client in self.clients),
            min(client.end for client in self.clients),
        )

    def throughput(self) -> tuple[int, float]:
        """Return the iterations that lay in the window as a whole, and its length in seconds."""
        start, end = self.window
        inside = sum(client.iterations_within(start, end) for client in self.clients)
        return inside, max(0.0, end - start)

    def counts(self) -> Counter[str]:
        """Return the counts of all clients together."""
        total: Counter[str] = Counter()
        for client in self.clients:
            total.update(client.counts)
        return total
