"""The metadata that summarize a run: latencies, counts, pauses, times of clients and hosts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from zodbshootout.crews.crew import Sample, part_of_schedule
from zodbshootout.crews.traffic import Counts, also_connected_to
from zodbshootout.model.latencies import NANOSECONDS, Latencies
from zodbshootout.model.specification import Endpoint
from zodbshootout.network.relays import Traffic

PERCENTILES = (50, 90, 99)

Metadata = Mapping[str, "str | int | float"]

_TRAFFIC: Mapping[str, Callable[[Traffic], int]] = {
    "trips": lambda traffic: traffic.trips,
    "sent_bytes": lambda traffic: traffic.sent,
    "received_bytes": lambda traffic: traffic.received,
    "network_bytes": lambda traffic: traffic.sent + traffic.received,
}
"""Functions that return the costs of traffic, by metadata key."""


def latencies_by_name(samples: Sequence[Sample]) -> dict[str, Latencies]:
    """Return the latencies of a run; the keys are prefixes of metadata keys.

    The prefixes are ``latency``, ``KIND_latency`` for each kind of iteration and, with a rate,
    ``schedule_lag``.
    """
    named: dict[str, Latencies] = {}

    def merge(name: str, latencies: Latencies) -> None:
        named.setdefault(name, Latencies()).merge(latencies)

    for sample in samples:
        merge("latency", sample.latencies)
        if sample.lags is not None:
            merge("schedule_lag", sample.lags)
        for label, latencies in sample.latencies_of.items():
            merge(f"{label}_latency", latencies)
    return named


def summarize(
    samples: Sequence[Sample],
    slices: Sequence[int],
    hosts: Mapping[str, Sequence[int]] | None = None,
    clock_uncertainty: float = 0.0,
) -> Metadata:
    """Return the metadata of the values of one run.

    Times are in seconds.  ``part_of_schedule`` is the duration of the schedule divided by the
    duration of the iterations; ``schedule_lag`` is the delay with which iterations began.
    ``client_1_s`` and so on are the seconds per iteration of each client.  ``slices`` has a
    number for each value.  The following have a number for each sample: ``slice_starts_s``,
    ``lag_growth_s``, and all costs except memory (see :mod:`~zodbshootout.model.quantities`).

    *hosts* maps the names of a cluster's hosts to the indices of their clients; ``host_1_s`` and so
    on are the seconds per iteration of a host's average client.  The hosts' clocks are known to
    within *clock_uncertainty* seconds.
    """
    counts: Counter[str] = Counter()
    for sample in samples:
        counts.update(sample.counts)
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
        "slice_ends_s": " ".join(f"{sample.end:.6f}" for sample in samples),
        **_pacing(samples),
        **_costs(samples),
    }
    for name, latencies in latencies_by_name(samples).items():
        metadata[f"{name}_max_s"] = latencies.longest
        for percentile in PERCENTILES:
            nanoseconds = latencies.at_percentile(percentile)
            metadata[f"{name}_p{percentile}_s"] = nanoseconds / NANOSECONDS
    metadata["cleared_caches"] = ", ".join(samples[0].cleared) or "none"
    return {**metadata, **counts}


def _pacing(samples: Sequence[Sample]) -> Metadata:
    if any(sample.lags is None for sample in samples):
        return {}
    return {
        "part_of_schedule": part_of_schedule(samples),
        "lag_growth_s": " ".join(f"{sample.lag_growth:.6f}" for sample in samples),
    }


def _costs(samples: Sequence[Sample]) -> Metadata:
    """Return the costs per iteration of each sample, and a client's peak memory."""
    used = [(sample.used, sample.iterations + sample.uncounted) for sample in samples]
    return {
        "client_cpu_s": " ".join(f"{use.cpu / done:.4g}" for use, done in used),
        "helper_cpu_s": " ".join(f"{use.helpers / done:.4g}" for use, done in used),
        "client_written_bytes": " ".join(f"{use.written / done:.4g}" for use, done in used),
        "client_memory_bytes": max(use.memory for use, _ in used),
    }


def _clients(samples: Sequence[Sample]) -> Metadata:
    on_clock = sum(sample.on_clock for sample in samples)
    iterations = map(sum, zip(*(sample.shares for sample in samples)))
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


def traffic_metadata(counts: Counts) -> Metadata:
    """Return the costs of the traffic of single iterations, a number for each iteration.

    If some traffic was not counted, return only ``traffic_not_counted``, the reason.
    """
    if counts.elsewhere:
        return {"traffic_not_counted": also_connected_to(counts.elsewhere)}
    numbers = {
        f"{'cache_' if is_cache else ''}{key}": map(number, iterations)
        for is_cache, iterations in counts.iterations.items()
        for key, number in _TRAFFIC.items()
    }
    return {key: " ".join(map(str, values)) for key, values in numbers.items()}


def distance_metadata(delivered: Mapping[Endpoint, float]) -> Metadata:
    """Return requested and delivered round-trip times of a run, in seconds.

    The keys are ``rtt_s`` and ``rtt_delivered_s``.  If servers are at different distances, the key
    is ``server_rtts_s``: JSON that maps each server's name to both times.
    """
    rtts = {server.rtt for server in delivered}
    if len(rtts) == 1:
        return {"rtt_s": rtts.pop(), "rtt_delivered_s": fmean(delivered.values())}
    times = {server.name: [server.rtt, mean] for server, mean in delivered.items()}
    return {"server_rtts_s": json.dumps(times)} if times else {}


def storable(metadata: Metadata) -> dict[str, str | int | float]:
    """Return *metadata* without line breaks and empty texts, which pyperf does not accept."""
    plain = {
        key: " ".join(value.split()) if isinstance(value, str) else value
        for key, value in metadata.items()
    }
    return {key: value for key, value in plain.items() if value != ""}
