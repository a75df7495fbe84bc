from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ZODB.utils import u64

from zodbshootout.client.benchmarks.benchmark import Benchmark, CheckFailed, Shape, without_objects
from zodbshootout.model.specification import Parameters

OIDS_WORTH_TIMING = 1000
"""The minimum number of OIDs that are timed together, because storages fetch 16 or 100 at once."""

MAX_OIDS = 2**17
"""The maximum number of OIDs that a client allocates before it checks them."""

Run = tuple[int, int]
"""Consecutive OIDs, as numbers: the first one, and the one after the last."""


class NewOID(Benchmark):
    """Allocate the OIDs of new objects."""

    name = "new_oid"
    title = "Allocate {objects} OIDs"
    legend = "allocate OIDs"
    dataset = None
    counted = "OIDs"

    @classmethod
    def fitted(cls, parameters: Parameters) -> Parameters:
        return replace(without_objects(parameters), objects=parameters.objects)

    @classmethod
    def shape(cls, parameters: Parameters) -> Shape:
        shape = super().shape(parameters)
        batch = math.ceil(OIDS_WORTH_TIMING / parameters.objects)
        most = max(batch, MAX_OIDS // parameters.objects)
        return shape._replace(batch=batch, most_at_once=most, fewest=batch * shape.fewest)

    def set_up(self) -> None:
        self.allocated: list[Run] = []

    def prepare(self) -> None:
        self.client.disconnect()
        self.new_oid = self.client.connect()._storage.new_oid
        self.positions = range(self.client.parameters.objects)
        self.oids: list[bytes] = []

    def supply(self, iterations: int) -> int:
        self._merge_new_oids()
        return iterations

    def run(self) -> None:
        new_oid = self.new_oid
        self.oids += [new_oid() for _ in self.positions]

    def check(self, done: int) -> None:
        self.count(oids=done * len(self.positions))
        self._merge_new_oids()

    def _merge_new_oids(self) -> None:
        new = ((number, number + 1) for number in map(u64, self.oids))
        self.allocated = merged_runs([*self.allocated, *new])
        self.oids.clear()

    def verify(self) -> list[Run]:
        return self.allocated

    def audit(self, accounts: Sequence[list[Run]]) -> None:
        merged_runs(run for account in accounts for run in account)


def merged_runs(runs: Iterable[Run]) -> list[Run]:
    """Merge adjacent runs of OIDs.

    :raises CheckFailed: if two runs overlap
    """
    merged: list[Run] = []
    for first, end in sorted(runs):
        if merged and first < merged[-1][1]:
            raise CheckFailed(f"OID {first:#x} was allocated twice")
        if merged and first == merged[-1][1]:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((first, end))
    return merged


BENCHMARKS = (NewOID,)
