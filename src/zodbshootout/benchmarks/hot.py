from __future__ import annotations

from zodbshootout.benchmarks.benchmark import CheckFailed
from zodbshootout.benchmarks.reading import Reading


class Hot(Reading):
    """Read what the storage's cache holds and the connection's pickle cache does not."""

    name = "hot"
    title = "Read {objects} Hot Objects"

    def begin(self) -> None:
        self.client.disconnect()
        self.client.connect()
        self.find_mapping()
        self._minimize()
        self.read()

    def _minimize(self) -> None:
        self.client.connection.cacheMinimize()
        self.client.connection.getTransferCounts(clear=True)

    def prepare(self) -> None:
        self._minimize()
        self.cleared = ("pickle cache",)
        self.use_before = self.client.database.cache_use()

    def run(self) -> None:
        self.read()

    def check(self) -> None:
        use = self.note_cache_use()
        self.check_loads(self.records)
        self.check_mapping()
        # Where the cache is shared, others' hits count, too: that all of it fails is still seen.
        due = self.client.parameters.objects
        if use is not None and use.hits < due:
            raise CheckFailed(
                f"the storage's cache served {use.hits} of {due} objects; is it too small for "
                "them? See cache-size (ZEO), cache-local-mb and cache-local-object-max (RelStorage)"
            )


BENCHMARKS = (Hot,)
