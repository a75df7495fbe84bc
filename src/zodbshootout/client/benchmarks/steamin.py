from __future__ import annotations

import math

from zodbshootout.client.benchmarks.reading import Reading, check_contents
from zodbshootout.client.specification import Parameters

READS_WORTH_TIMING = 500
"""Reading an attribute takes some 30 ns and asking the clock some 100 ns: so many reads keep the
clock below a hundredth of what it measures."""


class Steamin(Reading):
    """Read what the connection's pickle cache holds."""

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
        check_contents(self.found, self.expected(0))


BENCHMARKS = (Steamin,)
