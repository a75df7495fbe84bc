"""What is stored of a run beside its values: latencies, counts, spread, throughput."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from hdrh.histogram import HdrHistogram

from zodbshootout.engine.sample import CrewSample

NANOSECONDS = 1e9
LONGEST_LATENCY = 3600 * 10**9
SIGNIFICANT_DIGITS = 3
PERCENTILES = (50, 90, 99)


def histogram(samples: Sequence[CrewSample]) -> HdrHistogram:
    """Return the latencies of all iterations, in nanoseconds, as an HdrHistogram."""
    latencies = HdrHistogram(1, LONGEST_LATENCY, SIGNIFICANT_DIGITS)
    for sample in samples:
        for client in sample.clients:
            for seconds, iterations in client.latencies():
                latencies.record_value(max(1, round(seconds * NANOSECONDS)), iterations)
    return latencies


def summarize(samples: Sequence[CrewSample]) -> dict[str, str | int | float]:
    """Return what pyperf's metadata keep of the values of one run.

    Times are seconds; ``latency_histogram`` is HdrHistogram's own encoding (V2, base64), of
    nanoseconds, and ``client_means_s`` a JSON list with a list for each value.
    """
    latencies = histogram(samples)
    counts: Counter[str] = Counter()
    inside, seconds = 0, 0.0
    for sample in samples:
        counts.update(sample.counts())
        more_inside, more_seconds = sample.throughput()
        inside += more_inside
        seconds += more_seconds
    found: dict[str, str | int | float] = {
        "client_means_s": json.dumps(
            [[float(f"{client.mean:.6g}") for client in sample.clients] for sample in samples]
        ),
        "iterations": sum(client.iterations for sample in samples for client in sample.clients),
        "start_spread_s": max(sample.start_spread for sample in samples),
        "latency_max_s": max(
            latency
            for sample in samples
            for client in sample.clients
            for latency, _ in client.latencies()
        ),
        "latency_histogram": latencies.encode().decode("ascii"),
    }
    for percentile in PERCENTILES:
        nanoseconds = latencies.get_value_at_percentile(percentile)
        found[f"latency_p{percentile}_s"] = nanoseconds / NANOSECONDS
    if seconds:
        found["window_s"] = seconds
        found["window_iterations"] = inside
        found["throughput_per_s"] = inside / seconds
    caches = samples[0].clients[0]
    found["cleared_caches"] = ", ".join(caches.cleared) or "none"
    if caches.uncleared is not None:
        found["uncleared_caches"] = ", ".join(caches.uncleared) or "none"
    found.update(counts)
    return found
