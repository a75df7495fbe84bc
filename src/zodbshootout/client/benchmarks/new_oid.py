from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ZODB.utils import u64

from zodbshootout.client.benchmarks.benchmark import Benchmark, CheckFailed, without_objects
from zodbshootout.client.specification import Parameters

OIDS_WORTH_TIMING = 1000
"""OIDs in a batch: storages fetch 16 or 100 at a time from their server."""

MAX_OIDS = 2**17
"""OIDs that are allocated before they are checked."""

Run = tuple[int, int]
"""The first of some consecutive OIDs, and the one after the last."""


class NewOID(Benchmark):
    """Allocate the OIDs of new objects."""

    name = "new_oid"
    title = "Allocate {objects} OIDs"
    dataset = None
    counted = "OIDs"

    @classmethod
    def fitted(cls, parameters: Parameters) -> Parameters:
        return replace(without_objects(parameters), objects=parameters.objects)

    @classmethod
    def batch(cls, parameters: Parameters) -> int:
        return math.ceil(OIDS_WORTH_TIMING / parameters.objects)

    @classmethod
    def most_at_once(cls, parameters: Parameters) -> int:
        return max(cls.batch(parameters), MAX_OIDS // parameters.objects)

    def set_up(self) -> None:
        self.allocated: list[Run] = []

    def prepare(self) -> None:
        self.client.disconnect()
        self.new_oid = self.client.connect()._storage.new_oid
        self.positions = range(self.client.parameters.objects)
        self.oids: list[bytes] = []

    def supply(self, iterations: int) -> int:
        self._join_up()
        return iterations

    def run(self) -> None:
        new_oid = self.new_oid
        self.oids += [new_oid() for _ in self.positions]

    def check(self, done: int) -> None:
        self.count(oids=done * len(self.positions))
        self._join_up()

    def _join_up(self) -> None:
        numbers = map(u64, self.oids)
        fresh = ((number, number + 1) for number in numbers)
        self.allocated = joined_runs([*self.allocated, *fresh])
        self.oids.clear()

    def account(self) -> list[Run]:
        return self.allocated

    def audit(self, accounts: Sequence[list[Run]]) -> None:
        joined_runs(run for account in accounts for run in account)


def joined_runs(runs: Iterable[Run]) -> list[Run]:
    """Join runs of OIDs that continue each other.

    :raises CheckFailed: if two of them overlap
    """
    joined: list[Run] = []
    for first, end in sorted(runs):
        if joined and first < joined[-1][1]:
            raise CheckFailed(f"OID {first:#x} was allocated twice")
        if joined and first == joined[-1][1]:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((first, end))
    return joined


BENCHMARKS = (NewOID,)
