from __future__ import annotations

from zodbshootout.benchmarks.benchmark import CheckFailed
from zodbshootout.benchmarks.reading import OpeningReading
from zodbshootout.contenders.layer import CacheUse


class Cold(OpeningReading):
    """Read with every cache on the client's side emptied."""

    name = "cold"
    title = "Read {objects} Cold Objects"

    def empty(self) -> tuple[str, ...]:
        return self.client.database.empty_caches()

    def check_use(self, use: CacheUse) -> None:
        # Each client's mapping is loaded twice, see find_mapping, and hits the second time.
        expected = self.client.neighbours
        if use.hits > expected:
            raise CheckFailed(
                f"the storage's cache served {use.hits} loads of a cold read; "
                f"at most {expected} can be explained"
            )


BENCHMARKS = (Cold,)
