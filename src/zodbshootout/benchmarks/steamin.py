from __future__ import annotations

import math

from zodbshootout.benchmarks.reading import Reading
from zodbshootout.model import Parameters

READS_WORTH_TIMING = 500
"""Reading an attribute takes some 30 ns and asking the clock twice some 100 ns: so many reads
keep the clock below a hundredth of what it measures."""


class Steamin(Reading):
    """Read what the connection's pickle cache holds."""

    name = "steamin"
    title = "Read {objects} Steamin' Objects"

    @classmethod
    def batch(cls, parameters: Parameters) -> int:
        return math.ceil(READS_WORTH_TIMING / parameters.objects)

    def begin(self) -> None:
        self.client.disconnect()
        self.client.connect()
        self.find_mapping()
        self.read()
        self.client.connection.getTransferCounts(clear=True)

    def run(self) -> None:
        self.read()

    def check(self) -> None:
        self.check_loads(0)

    def verify(self) -> None:
        self.check_mapping()


BENCHMARKS = (Steamin,)
