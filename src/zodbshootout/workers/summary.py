"""The metadata that summarizes a run: latencies, counts, pauses, figures of clients and hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hdrh.histogram import HdrHistogram

from zodbshootout.crews.crew import Sample, part_of_schedule
from zodbshootout.model.latencies import NANOSECONDS, Latencies

LONGEST_LATENCY = 3600 * 10**9
"""The largest latency of a histogram, in nanoseconds; longer ones are recorded as this one."""
SIGNIFICANT_DIGITS = 3
PERCENTILES = (50, 90, 99)

Metadata = Mapping[str, str | int | float]


def histogram(latencies: Latencies) -> HdrHistogram:
    """Return *latencies* as an HdrHistogram of nanoseconds."""
    recorded = HdrHistogram(1, LONGEST_LATENCY, SIGNIFICANT_DIGITS)
    for nanoseconds, iterations in latencies.counts.items():
        recorded.record_value(min(nanoseconds, LONGEST_LATENCY), iterations)
    return recorded


def summarize(
    samples: Sequence[Sample],
    slices: Sequence[int],
    hosts: Mapping[str, Sequence[int]] | None = None,
    clock_uncertainty: float = 0.0,
) -> Metadata:
    """Return the metadata of the values of one run.

    Times are in seconds.  ``latency_histogram`` is HdrHistogram's own encoding (V2, base64), of
    nanoseconds.  ``part_of_schedule`` is the duration of the schedule divided by that of the
    iterations; ``schedule_lag`` is how late iterations began.  ``client_1_s`` and so on
    are the seconds per iteration of each client.  ``slices`` and ``slice_starts_s`` have a number
    for each value.

    *hosts* maps the name of each other host to the numbers of its clients; ``host_1_s`` and so on
    are the means of these clients.  The clocks of hosts are known to within *clock_uncertainty*
    seconds.
    """
    latencies, counts = Latencies(), Counter[str]()
    latencies_of: dict[str, Latencies] = {}
    for sample in samples:
        latencies.merge(sample.latencies)
        counts.update(sample.counts)
        for label, of_label in sample.latencies_of.items():
            latencies_of.setdefault(label, Latencies()).merge(of_label)
    metadata: dict[str, str | int | float] = {
        **_clients(samples),
        **(_hosts(samples, hosts, clock_uncertainty) if hosts else {}),
        "smallest_client_share": min(sample.smallest_share for sample in samples),
        "pause_share": sum(sample.paused for sample in samples)
        / sum(sample.clients * sample.on_clock for sample in samples),
        "iterations": sum(sample.iterations for sample in samples),
        "iterations_uncounted": sum(sample.uncounted for sample in samples),
        "on_clock_s": sum(sample.on_clock for sample in samples),
        "start_spread_s": max(sample.start_spread for sample in samples),
        "start_delay_s": max(sample.start_delay for sample in samples),
        "slices": " ".join(map(str, slices)),
        "slice_starts_s": " ".join(f"{sample.start:.6f}" for sample in samples),
        **_percentiles("latency", latencies),
        **_pacing(samples),
    }
    for label, of_label in latencies_of.items():
        metadata |= _percentiles(f"{label}_latency", of_label)
    metadata["cleared_caches"] = ", ".join(samples[0].cleared) or "none"
    return {**metadata, **counts}


def _percentiles(name: str, latencies: Latencies) -> Metadata:
    recorded = histogram(latencies)
    nanoseconds = recorded.get_percentile_to_value_dict(PERCENTILES)
    return {
        f"{name}_max_s": latencies.longest,
        f"{name}_histogram": recorded.encode().decode("ascii"),
        **{
            f"{name}_p{percentile}_s": nanoseconds[percentile] / NANOSECONDS
            for percentile in PERCENTILES
        },
    }


def _pacing(samples: Sequence[Sample]) -> Metadata:
    lags = Latencies()
    for sample in samples:
        if sample.lags is None:
            return {}
        lags.merge(sample.lags)
    return {
        "part_of_schedule": part_of_schedule(samples),
        "lag_growth_s": " ".join(f"{sample.lag_growth:.6f}" for sample in samples),
        **_percentiles("schedule_lag", lags),
    }


def _clients(samples: Sequence[Sample]) -> Metadata:
    on_clock = sum(sample.on_clock for sample in samples)
    iterations = map(sum, zip(*(sample.shares for sample in samples), strict=True))
    return {
        f"client_{number}_s": on_clock / done if done else 0.0
        for number, done in enumerate(iterations, 1)
    }


def _hosts(
    samples: Sequence[Sample], hosts: Mapping[str, Sequence[int]], clock_uncertainty: float
) -> Metadata:
    on_clock = sum(sample.on_clock for sample in samples)
    metadata: dict[str, str | int | float] = {"clock_uncertainty_s": clock_uncertainty}
    for number, (name, clients) in enumerate(hosts.items(), 1):
        done = sum(sample.shares[client] for sample in samples for client in clients)
        metadata[f"host_{number}"] = name
        metadata[f"host_{number}_clients"] = len(clients)
        metadata[f"host_{number}_s"] = on_clock * len(clients) / done if done else 0.0
    return metadata


def storable(metadata: Metadata) -> dict[str, str | int | float]:
    """Return *metadata* as pyperf accepts it: without line breaks and empty texts."""
    plain = {
        key: " ".join(value.split()) if isinstance(value, str) else value
        for key, value in metadata.items()
    }
    return {key: value for key, value in plain.items() if value != ""}
