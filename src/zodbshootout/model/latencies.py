"""Latencies as they are counted, sent and summarized."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

NANOSECONDS = 1e9
_SUB_BUCKET_BITS = 11


@dataclass
class Latencies:
    """Latencies, counted in buckets, so that they merge by addition and take bounded memory.

    The buckets are those of HdrHistogram with three significant digits and a unit of a nanosecond.
    Below 2,048, each nanosecond has a bucket.  Above, there are 1,024 buckets of equal width from
    each power of two to the next.
    """

    counts: dict[int, int] = field(default_factory=dict)
    """The number of iterations in each bucket, by the bucket's lower end in nanoseconds."""
    longest: float = 0.0
    """The duration of the longest iteration, in seconds."""

    def record(self, durations: Iterable[float], size: int = 1) -> None:
        """Add batches of *size* iterations; *durations* are the seconds that each batch took."""
        counts = self.counts
        for duration in durations:
            nanoseconds = max(1, int(duration / size * NANOSECONDS))
            shift = nanoseconds.bit_length() - _SUB_BUCKET_BITS
            bucket = nanoseconds if shift <= 0 else nanoseconds >> shift << shift
            counts[bucket] = counts.get(bucket, 0) + size
            self.longest = max(self.longest, duration / size)

    def at_percentile(self, percentile: float) -> int:
        """Return the upper end of the bucket that contains a *percentile*, in nanoseconds.

        HdrHistogram returns the same value.
        """
        wanted = max(1, int(percentile * sum(self.counts.values()) / 100 + 0.5))
        passed, reached = 0, 0
        for bucket, count in sorted(self.counts.items()):
            reached = bucket
            passed += count
            if passed >= wanted:
                break
        return reached + (1 << max(0, reached.bit_length() - _SUB_BUCKET_BITS)) - 1

    def merge(self, other: Latencies) -> None:
        for bucket, count in other.counts.items():
            self.counts[bucket] = self.counts.get(bucket, 0) + count
        self.longest = max(self.longest, other.longest)
