"""The table of quantities: every number that is measured of a cell, and what is known about it.

A new quantity needs a line of the table below, and a number in the metadata of each run.  From
there, tables, ``show --unit``, CSV, JSON, ``compare --metric``, ``--require``, the gate and the
page have it.  :func:`shown` alone decides which quantities are the figures of a cell.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Optional

from zodbshootout.model.specification import Parameters, exactly
from zodbshootout.model.units import (
    AVERAGE,
    BYTES,
    NUMBER,
    PER_SECOND,
    PERCENT,
    RATE,
    RATIO,
    SECONDS,
    Unit,
)

Metadata = Mapping[str, Any]
Read = Callable[[Metadata, Sequence[float]], Optional[Sequence[float]]]
"""A function that reads amounts from a run's metadata and values: one amount for each slice or, if
amounts are known only for the run, one.  ``None`` means that the run lacks the quantity."""

OF_TRAFFIC = 0.03
"""The fraction by which traffic of equal iterations may differ, because object IDs vary in length
in some protocols."""
PAGES = 4 * 4096.0
"""The bytes by which writes of equal iterations may differ, because disks write whole pages."""
ARENAS = 3e6
"""The bytes by which the memory of equal processes may differ, because one of them may prepare more
iterations at once."""
MAX_PERCENTILE = 99.9
"""The highest percentile that a user may name; higher ones would need over 10,000 iterations."""


class Combine(enum.Enum):
    """How the amounts of runs become the figure of a cell."""

    MEAN = "mean of all amounts"
    PER_SECOND = "iterations, or their work, divided by the mean time of an iteration"
    POOLED = "percentile of the iterations of all runs"
    LARGEST = "largest amount"
    SPREAD = "standard deviation of all amounts"


class Sense(enum.Enum):
    """The sense in which a quantity is better, for sentences."""

    SPEED = "speed"
    LATENCY = "latency"
    AMOUNT = "amount"


class Shown(enum.Flag):
    """Places that show a quantity, besides ``--unit``, CSV, JSON and wherever a user names it."""

    NOWHERE = 0
    COSTS = enum.auto()
    """In the tables of costs."""
    CHART = enum.auto()
    """In the charts of costs."""
    LATENCY = enum.auto()
    """In the tables and charts of latencies on a page, which shows one percentile at a time."""
    EVENTS = enum.auto()
    """In a table of its own on a page."""
    HOURS = enum.auto()
    """In the tables and charts over time of runs with ``--for``."""
    STEPS = enum.auto()
    """Among the steps of a replay."""
    REPLAY = enum.auto()
    """Among the events of a replay."""
    KINDS = enum.auto()
    """Among the latencies of a replay's kinds of transactions."""


@dataclass(frozen=True)
class Quantity:
    """A number that is measured of a cell."""

    name: str
    """The name on the command line."""
    title: str
    """The title in the middle of a sentence; ``{counted}`` stands for the benchmark's work."""
    unit: Unit
    read: Read
    key: str = ""
    """The name in CSV and JSON."""
    better: str = "less"
    """``more`` or ``less``, whichever is better; empty if neither is better."""
    per: str = ""
    """The work to which an amount refers; empty if the amount does not grow with work."""
    shown: Shown = Shown.COSTS
    combine: Combine = Combine.MEAN
    weight: Callable[[Metadata], float] | None = None
    """A function that returns how much a run counts in the mean; ``None`` if all values count the
    same."""
    sense: Sense = Sense.AMOUNT
    percentile: float = 0.0
    """The percentile of latencies, if the quantity is one."""
    kind: str = ""
    """The kind of the iterations with these latencies; empty for all iterations."""
    of_work: bool = False
    """Whether a rate counts the work of iterations rather than iterations."""
    of_server: bool = False
    """Whether the quantity can be measured only if the run itself starts the server."""
    watched: bool = False
    """Whether the figure has to be precise, and is compared, if it is a cell's figure."""
    fewest: int = 0
    """The minimum number of iterations for which the quantity is a cell's figure."""
    grain: float = 0.0
    """The absolute difference up to which contenders count as equal."""
    slack: float = 0.0
    """The relative difference up to which contenders count as equal."""

    def differs(self, one: float, other: float) -> bool:
        """Return whether two amounts differ so much that the contenders do not count as equal."""
        return abs(one - other) > max(self.grain, self.slack * min(one, other))

    @property
    def caption(self) -> str:
        """The title, with the work to which an amount refers."""
        return f"{self.title} per {self.per}" if self.per else self.title


def recorded(key: str) -> Read:
    """Return a function that reads one number, or numbers separated by spaces, from metadata."""

    def read(facts: Metadata, _: Sequence[float]) -> Sequence[float] | None:
        numbers = facts.get(key)
        return None if numbers is None else tuple(map(float, str(numbers).split()))

    return read


def per_iteration(key: str, unit: float = 1.0) -> Read:
    """Return a function that divides a run's count by its iterations, counted and uncounted."""

    def read(facts: Metadata, _: Sequence[float]) -> Sequence[float] | None:
        done = _iterations(facts)
        return (facts[key] * unit / done,) if done and isinstance(facts.get(key), int) else None

    return read


def share(part: str, whole: str) -> Read:
    """Return a function that reads what share of one count another is, at most 1."""

    def read(facts: Metadata, _: Sequence[float]) -> Sequence[float] | None:
        counts = facts.get(part), facts.get(whole)
        if not all(isinstance(count, int) for count in counts) or not counts[1]:
            return None
        # ZEO's cache also counts ZEO's own look-ups, so hits may outnumber loads.
        return (min(1.0, counts[0] / counts[1]),)

    return read


def _iterations(facts: Metadata) -> float:
    return float(facts.get("iterations", 0) + facts.get("iterations_uncounted", 0))


def _times(facts: Metadata, values: Sequence[float]) -> Sequence[float] | None:
    return None if facts.get("unit") == "byte" else values


def _unpaced(facts: Metadata, values: Sequence[float]) -> Sequence[float] | None:
    is_paced = facts.get("rate") or facts.get("workload_speed")
    return None if is_paced else _times(facts, values)


def _traced(facts: Metadata, values: Sequence[float]) -> Sequence[float] | None:
    return values if facts.get("unit") == "byte" else None


def _reached(facts: Metadata, _: Sequence[float]) -> Sequence[float] | None:
    known = "part_of_schedule" in facts and "rate" in facts
    return (facts["rate"] * facts["part_of_schedule"],) if known else None


def _amplification(facts: Metadata, values: Sequence[float]) -> Sequence[float] | None:
    """Return, for each value, the bytes that client and private server wrote per stored byte.

    The result is ``None`` for replays, whose objects do not have the size of ``--object-size``.
    """
    stores_objects = facts.get("stores") and facts.get("benchmark_counted") == "objects"
    stored = facts["work_per_iteration"] * facts["object_size_bytes"] if stores_objects else 0
    by_client = recorded("client_written_bytes")(facts, values)
    by_server = recorded("server_written_bytes")(facts, values)
    if not stored or by_client is None or (facts.get("server_place") and by_server is None):
        return None
    written = map(sum, zip(by_client, by_server or [0.0] * len(by_client)))
    return [amount / stored for amount in written]


def _cost(name: str, key: str, title: str, unit: Unit, **more: Any) -> Quantity:
    return Quantity(name, title, unit, recorded(key), key, **{"per": "iteration", **more})


def _latency(percentile: float, title: str = "", *, kind: str = "", **more: Any) -> Quantity:
    name = f"p{exactly(percentile)}"
    prefix = f"{kind}_" if kind else ""
    whose = f"{kind.replace('_', '-')} transactions" if kind else "latency"
    return Quantity(
        f"{prefix}{name}",
        title or f"{name} of {whose}",
        SECONDS,
        recorded(f"{prefix}latency_histogram"),
        f"{prefix}latency_{name}_s",
        per="iteration",
        combine=Combine.POOLED,
        sense=Sense.LATENCY,
        percentile=percentile,
        kind=kind,
        **more,
    )


def _event(key: str, title: str, shown: Shown) -> Quantity:
    return Quantity(
        key, title, AVERAGE, per_iteration(key), f"{key}_per_iteration", better="",
        per="iteration", shown=shown, weight=_iterations,
    )  # fmt: skip


def _step(name: str) -> Quantity:
    return Quantity(
        f"{name}_time", f"time to {name}", SECONDS, per_iteration(f"{name}_ns", 1e-9),
        f"{name}_s", per="iteration", shown=Shown.STEPS, weight=_iterations,
    )  # fmt: skip


THROUGHPUT = Quantity(
    "objects", "{counted} per second", PER_SECOND, _unpaced, "objects_per_second",
    better="more", shown=Shown.HOURS, combine=Combine.PER_SECOND, sense=Sense.SPEED, of_work=True,
    watched=True,
)  # fmt: skip
ITERATIONS = Quantity(
    "iterations", "iterations per second", PER_SECOND, _unpaced, "iterations_per_second",
    better="more", shown=Shown.NOWHERE, combine=Combine.PER_SECOND, sense=Sense.SPEED,
    watched=True,
)  # fmt: skip
TIME = Quantity(
    "seconds", "mean latency", SECONDS, _times, "seconds_per_iteration", per="iteration",
    shown=Shown.NOWHERE, sense=Sense.LATENCY, watched=True,
)  # fmt: skip
DEVIATION = Quantity(
    "stdev", "standard deviation of the values", SECONDS, _times, "stdev_s", per="iteration",
    shown=Shown.NOWHERE, combine=Combine.SPREAD,
)  # fmt: skip
REACHED = Quantity(
    "reached", "iterations per second reached", RATE, _reached, "reached_per_second",
    better="more", shown=Shown.NOWHERE, sense=Sense.SPEED,
)  # fmt: skip
P50 = _latency(50.0, "50th percentile of latency", shown=Shown.LATENCY | Shown.HOURS, watched=True)
P90 = _latency(90.0, "90th percentile of latency", shown=Shown.LATENCY)
P99 = _latency(99.0, "99th percentile of latency", shown=Shown.LATENCY | Shown.HOURS, watched=True)
P999 = _latency(99.9, "99.9th percentile of latency", shown=Shown.NOWHERE, fewest=5000)
LONGEST = Quantity(
    "max", "longest latency", SECONDS, recorded("latency_max_s"), "latency_max_s",
    per="iteration", shown=Shown.LATENCY | Shown.HOURS, combine=Combine.LARGEST,
    sense=Sense.LATENCY,
)  # fmt: skip
WORKER_MEMORY = Quantity(
    "worker_memory", "memory of a worker", BYTES, _traced, "memory_bytes", shown=Shown.NOWHERE,
    watched=True,
)  # fmt: skip
CPU = _cost("cpu", "client_cpu_s", "processor time, client", SECONDS,
            shown=Shown.COSTS | Shown.CHART | Shown.HOURS)  # fmt: skip
TRIPS = _cost("trips", "trips", "round trips", NUMBER,
              shown=Shown.COSTS | Shown.CHART)  # fmt: skip
CACHE_TRIPS = _cost("cache_trips", "cache_trips", "round trips, cache server", NUMBER)
CONFLICTS = _event("conflicts", "conflicts", Shown.EVENTS | Shown.REPLAY)
HITS = Quantity(
    "hits", "loads served by the storage's own cache", PERCENT,
    share("storage_cache_hits", "loads"), "storage_cache_hit_rate", better="more",
    shown=Shown.EVENTS, weight=lambda facts: float(facts["loads"]),
)  # fmt: skip
CACHEABLE_HITS = replace(
    HITS, name="cacheable_hits", key="cacheable_hit_rate", shown=Shown.NOWHERE,
    title="cacheable loads served by the storage's own cache",
    read=share("storage_cache_hits", "cacheable_loads"),
    weight=lambda facts: float(facts["cacheable_loads"]),
)  # fmt: skip
DATABASE = _cost("database", "database_bytes", "size of the database", BYTES,
                 shown=Shown.HOURS, per="")  # fmt: skip

_TABLE = (
    THROUGHPUT,
    ITERATIONS,
    TIME,
    DEVIATION,
    REACHED,
    P50,
    P90,
    P99,
    P999,
    LONGEST,
    WORKER_MEMORY,
    TRIPS,
    _cost("sent", "sent_bytes", "sent to the server", BYTES, slack=OF_TRAFFIC),
    _cost("received", "received_bytes", "received from the server", BYTES, slack=OF_TRAFFIC),
    _cost("bytes", "network_bytes", "sent and received", BYTES, shown=Shown.CHART,
          slack=OF_TRAFFIC),
    CACHE_TRIPS,
    _cost("cache_bytes", "cache_network_bytes", "sent and received, cache server", BYTES,
          slack=OF_TRAFFIC),
    CPU,
    _cost("server_cpu", "server_cpu_s", "processor time, server", SECONDS,
          shown=Shown.COSTS | Shown.CHART | Shown.HOURS, of_server=True),
    _cost("helper_cpu", "helper_cpu_s", "processor time, helpers", SECONDS),
    _cost("written", "client_written_bytes", "written to disks, client", BYTES, grain=PAGES),
    _cost("server_written", "server_written_bytes", "written to disks, server", BYTES,
          shown=Shown.COSTS | Shown.CHART, of_server=True, grain=PAGES),
    Quantity("amplification", "written per byte stored", RATIO, _amplification,
             "write_amplification"),
    _cost("disk", "disk_bytes", "database growth", BYTES,
          shown=Shown.COSTS | Shown.CHART, per="object stored"),
    _cost("blobs", "blob_bytes", "blob growth", BYTES, per="object stored"),
    _cost("log", "log_bytes", "written to the server's log", BYTES, per="object stored"),
    _cost("memory", "client_memory_bytes", "memory, client (peak)", BYTES,
          shown=Shown.COSTS | Shown.CHART, per="", grain=ARENAS),
    _cost("memory_now", "client_memory_now_bytes", "memory, client", BYTES, shown=Shown.HOURS,
          per="", grain=ARENAS),
    _cost("server_memory", "server_memory_bytes", "memory, server", BYTES,
          shown=Shown.COSTS | Shown.CHART | Shown.HOURS, per="", of_server=True, grain=ARENAS),
    _cost("connections", "connections", "connections, client", NUMBER, per=""),
    DATABASE,
    CONFLICTS,
    _event("resolutions", "conflicts resolved", Shown.EVENTS | Shown.REPLAY),
    _event("retries", "retries", Shown.EVENTS | Shown.REPLAY),
    HITS,
    CACHEABLE_HITS,
    _event("extra_loads", "reloads after invalidation", Shown.REPLAY),
    _event("loads_of_other_size", "loads of another size", Shown.REPLAY),
    _event("waits", "waits for another client", Shown.REPLAY),
    *map(_step, ("begin", "load", "store", "vote", "finish")),
    *(
        _latency(percentile, kind=kind, shown=Shown.KINDS)
        for kind in ("read_only", "writing")
        for percentile in (50.0, 90.0, 99.0)
    ),
)  # fmt: skip
QUANTITIES = {quantity.name: quantity for quantity in _TABLE}
"""All quantities by name, in the order in which tables, CSV and JSON show them."""
AT_A_RATE = (REACHED, P50, P99, P999, LONGEST)
"""The figures of a cell whose iterations arrive at a rate."""


def quantities(where: Shown) -> list[Quantity]:
    """Return the quantities that are shown in a place."""
    return [quantity for quantity in QUANTITIES.values() if quantity.shown & where]


def quantity_named(name: str) -> Quantity | None:
    """Return the quantity that a user names, ``None`` if there is none.

    ``p`` and a number stand for a percentile of latencies, such as ``p99.5``.
    """
    if name in QUANTITIES:
        return QUANTITIES[name]
    match = re.fullmatch(r"p(\d+(?:\.\d+)?)", name, re.ASCII)
    percentile = float(match[1]) if match else 0.0
    return _latency(percentile, shown=Shown.NOWHERE) if 0 < percentile <= MAX_PERCENTILE else None


def shown(parameters: Parameters, runs: Sequence[Metadata]) -> Sequence[Quantity]:
    """Return the figures of a cell: what its tables show unless the user names a quantity.

    *runs* are the metadata of its runs.  A cell at a rate has several figures, but only the first
    of them before it was measured.
    """
    if any(facts.get("unit") == "byte" for facts in runs):
        return (WORKER_MEMORY,)
    if parameters.rate:
        iterations = sum(facts.get("iterations", 0) for facts in runs)
        figures = [one for one in AT_A_RATE if iterations >= one.fewest]
        return figures if runs else figures[:1]
    if parameters.workload.speed:
        return (TIME,)
    return (ITERATIONS,) if parameters.limit.percentile else (THROUGHPUT,)
