from __future__ import annotations

from zodbshootout.benchmarks.benchmark import CheckFailed
from zodbshootout.benchmarks.reading import ColdReading
from zodbshootout.contenders.layer import CacheUse


class Cold(ColdReading):
    """Read with every cache on the client's side emptied."""

    name = "cold"
    title = "Read {objects} Cold Objects"

    def check_use(self, use: CacheUse) -> None:
        # Each client's mapping is loaded twice, see find_mapping, and hits the second time.
        expected = self.client.neighbours
        if use.hits > expected:
            raise CheckFailed(
                f"the storage's cache served {use.hits} loads of a cold read; "
                f"at most {expected} can be explained"
            )


BENCHMARKS = (Cold,)
