from __future__ import annotations

import math

from zodbshootout.client.benchmarks.benchmark import FROM_CACHE, Shape
from zodbshootout.client.benchmarks.reading import Reading, check_contents
from zodbshootout.model.specification import Parameters
from zodbshootout.model.storage_facts import PICKLE_CACHE

READS_WORTH_TIMING = 500
"""The minimum number of reads that are timed together.  They take some 15,000 ns; reading the
clock takes some 100 ns, less than a hundredth of that."""


class ConnectedReading(Reading):
    """Read the same set in every iteration, on a connection that stays open."""

    def prepare(self) -> None:
        if self.client.connection is None:
            self.client.connect()
            self.find_mapping(self.sets[0].mapping_oid)
        self.read()

    def run(self) -> None:
        self.read()

    def check_latest(self) -> None:
        check_contents(self.contents, self.expected(0))


class Hot(ConnectedReading):
    """Read objects that are in the storage's cache, as far as the cache has room for them.

    The connection's pickle cache does not contain the objects.
    """

    name = "hot"
    title = "Read {objects} Hot Objects"
    legend = "from the storage's cache, if it has one"
    topic = FROM_CACHE

    def prepare(self) -> None:
        super().prepare()
        self.between()
        self.cleared = (PICKLE_CACHE,)
        self.note_use()

    def between(self) -> None:
        self.client.connection.cacheMinimize()

    def check(self, done: int) -> None:
        loads = done * self.sets[0].records
        if self.count_use() is not None:
            self.count(cacheable_loads=loads)
        self.check_loads(loads)


class Steamin(ConnectedReading):
    """Read objects that are in the connection's pickle cache."""

    name = "steamin"
    title = "Read {objects} Steamin' Objects"
    legend = "from the connection's cache"
    topic = ""

    @classmethod
    def shape(cls, parameters: Parameters) -> Shape:
        shape = super().shape(parameters)
        batch = math.ceil(READS_WORTH_TIMING / parameters.objects)
        return shape._replace(batch=batch, fewest=batch * shape.fewest)

    def check(self, done: int) -> None:  # noqa: ARG002
        self.check_loads(0)


BENCHMARKS = (Hot, Steamin)
