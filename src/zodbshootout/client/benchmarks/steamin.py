from __future__ import annotations

import math

from zodbshootout.client.benchmarks.reading import Reading, check_contents
from zodbshootout.client.specification import Parameters

READS_WORTH_TIMING = 500
"""Reads in a batch.  Reading an attribute takes some 30 ns and reading the clock some 100 ns: the
clock then takes less than a hundredth of the time that it measures."""


class Steamin(Reading):
    """Read objects that are in the connection's pickle cache."""

    name = "steamin"
    title = "Read {objects} Steamin' Objects"

    @classmethod
    def batch(cls, parameters: Parameters) -> int:
        return math.ceil(READS_WORTH_TIMING / parameters.objects)

    def prepare(self) -> None:
        if self.client.connection is None:
            self.client.connect()
            self.find_mapping(self.sets[0].mapping_oid)
        self.read()

    def run(self) -> None:
        self.read()

    def check(self, done: int) -> None:  # noqa: ARG002
        self.check_loads(0)
        check_contents(self.contents, self.expected(0))


BENCHMARKS = (Steamin,)
