"""HdrHistograms of latencies, which require a package that only the command's Python has."""

from __future__ import annotations

from hdrh.histogram import HdrHistogram

from zodbshootout.model.latencies import Latencies

LONGEST_LATENCY = 3600 * 10**9
"""The largest latency in a histogram, in nanoseconds; longer ones are recorded as this one."""
SIGNIFICANT_DIGITS = 3


def histogram(latencies: Latencies) -> HdrHistogram:
    """Return *latencies* as an HdrHistogram of nanoseconds."""
    recorded = HdrHistogram(1, LONGEST_LATENCY, SIGNIFICANT_DIGITS)
    for nanoseconds, iterations in latencies.counts.items():
        recorded.record_value(min(nanoseconds, LONGEST_LATENCY), iterations)
    return recorded
