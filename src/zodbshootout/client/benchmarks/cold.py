from __future__ import annotations

from zodbshootout.client.benchmarks.benchmark import CheckFailed
from zodbshootout.client.benchmarks.reading import ColdReading
from zodbshootout.client.storage_info import CacheUse


class Cold(ColdReading):
    """Read with every client-side cache emptied."""

    name = "cold"
    title = "Read {objects} Cold Objects"

    def check_use(self, use: CacheUse, done: int) -> None:
        # Each mapping is loaded twice, see find_mapping; the second load is a hit.
        explained = done * (1 + use.per_opening)
        if use.hits > explained:
            raise CheckFailed(
                f"the storage's cache served {use.hits} loads of {done} cold reads; "
                f"at most {explained} can be explained"
            )


BENCHMARKS = (Cold,)
