"""Measure by how much a database grows on disk per stored object."""

from __future__ import annotations

import time
from collections.abc import Mapping

from zodbshootout.crews.crew import Crew, Sample
from zodbshootout.model.storage_facts import DiskSize

SHARE = 0.003
"""Seconds that asking for sizes may take per second spent in slices."""


class DiskGrowth:
    """Asks for a database's size before and after the first slice.

    It asks again at later slices if there is time, because a single slice says little: databases
    grow by pages and extents.
    """

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._before: DiskSize | None = None
        self._grown = DiskSize(0, 0, 0)
        self._stored = 0
        self._asking = self._sliced = 0.0
        """Seconds spent asking for sizes, and seconds spent in slices."""

    def before(self) -> None:
        """Ask for the size before a slice, if there is time."""
        self._before = self.size() if self._asking <= SHARE * self._sliced else None

    def after(self, sample: Sample) -> None:
        """Add the growth during the slice that *sample* measures."""
        self._sliced += sample.on_clock
        stored = sample.counts["stores"]
        # Ignore slices of several stretches: clients may store uncounted objects between stretches.
        whole = sample.iterations <= self._crew.most_at_once * sample.clients
        if self._before is not None and stored and whole:
            self._grown += self.size() - self._before
            self._stored += stored

    def size(self) -> DiskSize:
        """Return the size of the database now."""
        began = time.perf_counter()
        size: DiskSize = self._crew.call("disk_size", first_only=True)[0]
        self._asking += time.perf_counter() - began
        return size

    def metadata(self) -> Mapping[str, float]:
        """Return the growth per stored object, by metadata key."""
        grown = self._grown
        parts = {"disk_bytes": grown.records, "blob_bytes": grown.blobs, "log_bytes": grown.log}
        if not self._stored:
            return {}
        return {key: part / self._stored for key, part in parts.items() if part is not None}
