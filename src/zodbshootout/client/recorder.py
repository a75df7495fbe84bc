"""Latencies as counts in buckets: they merge by addition and take bounded memory.

The buckets are those of HdrHistogram with three significant digits and a unit of a nanosecond: up
to 2,048 ns each nanosecond has a bucket, and from there on 1,024 buckets double their width with
every power of two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

NANOSECONDS = 1e9
_SUB_BUCKET_BITS = 11


@dataclass
class Latencies:
    """How many iterations took how long."""

    counts: dict[int, int] = field(default_factory=dict)
    """Iterations by the shortest time, in nanoseconds, that belongs to their bucket."""
    longest: float = 0.0
    """Seconds that the longest iteration took."""

    def record(self, durations: Iterable[float], size: int = 1) -> None:
        """Add iterations, in batches of *size* that took *durations* (seconds) each."""
        counts = self.counts
        for duration in durations:
            nanoseconds = max(1, int(duration / size * NANOSECONDS))
            shift = nanoseconds.bit_length() - _SUB_BUCKET_BITS
            bucket = nanoseconds if shift <= 0 else nanoseconds >> shift << shift
            counts[bucket] = counts.get(bucket, 0) + size
            self.longest = max(self.longest, duration / size)

    def merge(self, other: Latencies) -> None:
        """Add what another recorder has recorded."""
        add(self.counts, other.counts)
        self.longest = max(self.longest, other.longest)


def add(total: dict[int, int], counts: Mapping[int, int]) -> None:
    """Add *counts* to *total*."""
    for key, count in counts.items():
        total[key] = total.get(key, 0) + count
