"""Measure by how much a database grows on disk per stored object."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from zodbshootout.crews.crew import Crew, Sample
from zodbshootout.model.storage_facts import DiskSize

SHARE = 0.003
"""Seconds that asking for sizes may take per second spent in slices."""


class DiskGrowth:
    """Asks for a database's size before and after the first slices.

    It asks again at later slices if there is time, because a few slices say little: databases grow
    by pages and extents.
    """

    def __init__(self, crew: Crew, *, writes: bool) -> None:
        """Ask for the sizes of the database of *crew*, if the crew *writes*."""
        self._crew, self._writes = crew, writes
        self._before: DiskSize | None = None
        self._grown = DiskSize(0, 0, 0)
        self._stored = 0
        self._asking = self._sliced = 0.0
        """Seconds spent asking for sizes, and seconds spent in slices."""

    def before(self) -> None:
        """Ask for the size before slices, if there is time."""
        is_asked = self._writes and self._asking <= SHARE * self._sliced
        self._before = self.size() if is_asked else None

    def after(self) -> DiskSize | None:
        """Ask for the size right after the slices, if :meth:`before` has asked for it."""
        return None if self._before is None else self.size()

    def add(self, size: DiskSize | None, samples: Sequence[Sample]) -> None:
        """Add the growth to *size* during the slices that *samples* measure."""
        self._sliced += sum(sample.on_clock for sample in samples)
        stored = sum(sample.counts["stores"] for sample in samples)
        # Ignore slices of several stretches: clients may store uncounted objects between stretches.
        whole = samples[0].iterations <= self._crew.most_at_once * samples[0].clients
        if size is not None and self._before is not None and stored and whole:
            self._grown += size - self._before
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
