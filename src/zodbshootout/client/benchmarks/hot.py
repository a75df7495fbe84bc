from __future__ import annotations

from zodbshootout.client.benchmarks.benchmark import CheckFailed
from zodbshootout.client.benchmarks.reading import Reading, check_contents
from zodbshootout.client.storage_info import PICKLE_CACHE


class Hot(Reading):
    """Read objects that are in the storage's cache but not in the connection's pickle cache."""

    name = "hot"
    title = "Read {objects} Hot Objects"

    def prepare(self) -> None:
        if self.client.connection is None:
            self.client.connect()
            self.find_mapping(self.sets[0].mapping_oid)
            self.read()
        self.between()
        self.cleared = (PICKLE_CACHE,)
        self.note_use()

    def between(self) -> None:
        self.client.connection.cacheMinimize()

    def run(self) -> None:
        self.read()

    def check(self, done: int) -> None:
        use = self.count_use()
        self.check_loads(done * self.sets[0].records)
        check_contents(self.contents, self.expected(0))
        expected = self.client.parameters.objects * self.client.neighbours.total(done)
        if use is not None and use.hits < expected:
            raise CheckFailed(
                f"the storage's cache served {use.hits} of {expected} objects; is it too small for "
                "them? See cache-size (ZEO), cache-local-mb and cache-local-object-max (RelStorage)"
            )


BENCHMARKS = (Hot,)
