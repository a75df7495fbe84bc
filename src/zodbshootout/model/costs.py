"""The table of costs: what an iteration uses besides time, and what each cost is called.

A new cost needs a line here, and a number under its key in the metadata of each run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SECONDS, BYTES, NUMBER, RATIO = "seconds", "bytes", "number", "ratio"
"""The units of costs."""


OF_TRAFFIC = 0.03
"""The fraction by which traffic of equal iterations may differ, because object IDs vary in length
in some protocols."""
PAGES = 4 * 4096.0
"""The bytes by which writes of equal iterations may differ, because disks write whole pages."""
ARENAS = 3e6
"""The bytes by which the memory of equal processes may differ, because one of them may prepare more
iterations at once."""

Metadata = Mapping[str, Any]


@dataclass(frozen=True)
class Cost:
    """One kind of cost, and its names."""

    name: str
    """The cost's name on the command line."""
    key: str
    """A key of metadata.  The entry is a number, or one number per sample, separated by spaces."""
    title: str
    """The cost's title in tables."""
    unit: str = SECONDS
    per: str = "iteration"
    """The work to which the amount refers; empty if the amount does not grow with work."""
    of_server: bool = False
    """Whether the cost can be measured only if the run itself starts the server."""

    grain: float = 0.0
    """The absolute difference up to which contenders count as equal."""
    slack: float = 0.0
    """The relative difference up to which contenders count as equal."""
    derive: Callable[[Metadata], Sequence[float] | None] | None = None
    """A function that computes the values from metadata; ``None`` if metadata contain them."""

    def differs(self, one: float, other: float) -> bool:
        """Return whether two amounts differ so much that the contenders do not count as equal."""
        return abs(one - other) > max(self.grain, self.slack * min(one, other))

    def values(self, metadata: Metadata) -> Sequence[float] | None:
        """Return the cost's values in a run with this *metadata*, or ``None`` if not known."""
        return self.derive(metadata) if self.derive else _recorded(metadata, self.key)

    @property
    def caption(self) -> str:
        """The title, with the work to which the amount refers."""
        return f"{self.title} per {self.per}" if self.per else self.title


def _recorded(metadata: Metadata, key: str) -> Sequence[float] | None:
    numbers = metadata.get(key)
    return None if numbers is None else tuple(map(float, str(numbers).split()))


def _amplification(metadata: Metadata) -> Sequence[float] | None:
    """Return, for each value, the bytes that client and private server wrote per stored byte.

    The result is ``None`` for replays, whose objects do not have the size of ``--object-size``.
    """
    stores_objects = metadata.get("stores") and metadata.get("benchmark_counted") == "objects"
    stored = metadata["work_per_iteration"] * metadata["object_size_bytes"] if stores_objects else 0
    by_client = _recorded(metadata, "client_written_bytes")
    by_server = _recorded(metadata, "server_written_bytes")
    if not stored or by_client is None or (metadata.get("server_place") and by_server is None):
        return None
    written = map(sum, zip(by_client, by_server or [0.0] * len(by_client)))
    return [amount / stored for amount in written]


COSTS = (
    Cost("trips", "trips", "round trips", NUMBER),
    Cost("sent", "sent_bytes", "sent to the server", BYTES, slack=OF_TRAFFIC),
    Cost("received", "received_bytes", "received from the server", BYTES, slack=OF_TRAFFIC),
    Cost("bytes", "network_bytes", "sent and received", BYTES, slack=OF_TRAFFIC),
    Cost("cache_trips", "cache_trips", "round trips, cache server", NUMBER),
    Cost("cache_bytes", "cache_network_bytes", "sent and received, cache server", BYTES,
         slack=OF_TRAFFIC),
    Cost("cpu", "client_cpu_s", "processor time, client"),
    Cost("server_cpu", "server_cpu_s", "processor time, server", of_server=True),
    Cost("helper_cpu", "helper_cpu_s", "processor time, helpers"),
    Cost("written", "client_written_bytes", "written to disks, client", BYTES, grain=PAGES),
    Cost("server_written", "server_written_bytes", "written to disks, server", BYTES,
         of_server=True, grain=PAGES),
    Cost("amplification", "write_amplification", "written per byte stored", RATIO, "",
         derive=_amplification),
    Cost("disk", "disk_bytes", "database growth", BYTES, "object stored"),
    Cost("blobs", "blob_bytes", "blob growth", BYTES, "object stored"),
    Cost("log", "log_bytes", "written to the server's log", BYTES, "object stored"),
    Cost("memory", "client_memory_bytes", "memory, client (peak)", BYTES, "", grain=ARENAS),
    Cost("server_memory", "server_memory_bytes", "memory, server", BYTES, "", of_server=True,
         grain=ARENAS),
)  # fmt: skip
"""All costs, in the order in which tables show them."""
BY_NAME = {cost.name: cost for cost in COSTS}
OVER_TIME = (
    BY_NAME["cpu"],
    BY_NAME["server_cpu"],
    Cost("memory_now", "client_memory_now_bytes", "memory, client", BYTES, ""),
    BY_NAME["server_memory"],
    Cost("database", "database_bytes", "size of the database", BYTES, ""),
)
"""The costs that are shown over time if runs share clients (``--for``).  Memory is measured at the
end of each run."""
