from __future__ import annotations

from zodbshootout.client.benchmarks.benchmark import CheckFailed
from zodbshootout.client.benchmarks.reading import Reading, check_contents
from zodbshootout.client.storage_info import PICKLE_CACHE


class Hot(Reading):
    """Read what the storage's cache holds and the connection's pickle cache does not."""

    name = "hot"
    title = "Read {objects} Hot Objects"

    def prepare(self) -> None:
        if self.client.connection is None:
            self.client.connect()
            self.find_mapping(self.sets[0].mapping_oid)
            self.read()
        self.between()
        self.cleared = (PICKLE_CACHE,)
        self.look_at_use()

    def between(self) -> None:
        self.client.connection.cacheMinimize()

    def run(self) -> None:
        self.read()

    def check(self, done: int) -> None:
        use = self.count_use()
        self.check_loads(done * self.sets[0].records)
        check_contents(self.found, self.expected(0))
        due = self.client.parameters.objects * self.client.neighbours.total(done)
        if use is not None and use.hits < due:
            raise CheckFailed(
                f"the storage's cache served {use.hits} of {due} objects; is it too small for "
                "them? See cache-size (ZEO), cache-local-mb and cache-local-object-max (RelStorage)"
            )


BENCHMARKS = (Hot,)
