"""The table of costs: what an iteration takes besides time, and how it is called.

A new cost is a line here, and a number in the metadata of each run under its key.
"""

from __future__ import annotations

from dataclasses import dataclass

SECONDS, BYTES, NUMBER = "seconds", "bytes", "number"
"""The units of costs."""


@dataclass(frozen=True)
class Cost:
    """One kind of cost, and its names."""

    name: str
    """Its name on the command line."""
    key: str
    """Its key in metadata: a number, or one for each value of the run, separated by blanks."""
    title: str
    """Its title in tables."""
    unit: str = SECONDS
    per: str = "iteration"
    """The unit of work that it is counted for; empty if it is not a sum."""
    of_server: bool = False
    """Whether only private servers have it."""

    @property
    def caption(self) -> str:
        """Its title, and what it is counted for."""
        return f"{self.title} per {self.per}" if self.per else self.title


COSTS = (
    Cost("trips", "trips", "round trips", NUMBER),
    Cost("sent", "sent_bytes", "sent to the server", BYTES),
    Cost("received", "received_bytes", "received from the server", BYTES),
    Cost("bytes", "network_bytes", "sent and received", BYTES),
    Cost("cache_trips", "cache_trips", "round trips, cache server", NUMBER),
    Cost("cache_bytes", "cache_network_bytes", "sent and received, cache server", BYTES),
    Cost("cpu", "client_cpu_s", "processor time, client"),
    Cost("server_cpu", "server_cpu_s", "processor time, server", of_server=True),
    Cost("helper_cpu", "helper_cpu_s", "processor time, helpers"),
    Cost("written", "client_written_bytes", "written to disks, client", BYTES),
    Cost("server_written", "server_written_bytes", "written to disks, server", BYTES,
         of_server=True),
    Cost("disk", "disk_bytes", "larger database", BYTES, "object stored"),
    Cost("memory", "client_memory_bytes", "memory, client (peak)", BYTES, ""),
    Cost("server_memory", "server_memory_bytes", "memory, server", BYTES, "", of_server=True),
)  # fmt: skip
"""All costs, in the order in which tables show them."""
BY_NAME = {cost.name: cost for cost in COSTS}
