from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ZODB.utils import u64

from zodbshootout.benchmarks.benchmark import Benchmark, CheckFailed, without_objects
from zodbshootout.model import Parameters

OIDS_WORTH_TIMING = 1000
"""Storages fetch OIDs from their server in advance, 16 or 100 at a time: in so many each fetch has
its due share."""

Run = tuple[int, int]
"""The first of a row of consecutive OIDs, and the first after it."""


class NewOID(Benchmark):
    """Allocate the OIDs of new objects."""

    name = "new_oid"
    title = "Allocate {objects} OIDs"
    purpose = None
    counted = "OIDs"

    @classmethod
    def fitted(cls, parameters: Parameters) -> Parameters:
        return replace(without_objects(parameters), objects=parameters.objects)

    @classmethod
    def batch(cls, parameters: Parameters) -> int:
        return math.ceil(OIDS_WORTH_TIMING / parameters.objects)

    def set_up(self) -> None:
        self.allocated: list[Run] = []

    def begin(self) -> None:
        self.client.disconnect()
        self.new_oid = self.client.connect()._storage.new_oid
        self.positions = range(self.client.parameters.objects)

    def prepare(self) -> None:
        self.oids: list[bytes] = []

    def run(self) -> None:
        new_oid = self.new_oid
        self.oids += [new_oid() for _ in self.positions]

    def check(self) -> None:
        self.count(oids=len(self.oids))
        numbers = map(u64, self.oids)
        self.allocated.extend(runs_together((number, number + 1) for number in numbers))

    def account(self) -> list[Run]:
        self.allocated = runs_together(self.allocated)
        return self.allocated

    def audit(self, accounts: Sequence[list[Run]]) -> None:
        runs_together(run for account in accounts for run in account)


def runs_together(found: Iterable[Run]) -> list[Run]:
    """Join rows of OIDs that continue each other.

    :raises CheckFailed: when two of them overlap
    """
    joined: list[Run] = []
    for first, end in sorted(found):
        if joined and first < joined[-1][1]:
            raise CheckFailed(f"OID {first:#x} was allocated twice")
        if joined and first == joined[-1][1]:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((first, end))
    return joined


BENCHMARKS = (NewOID,)
