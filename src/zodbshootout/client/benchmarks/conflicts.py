from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from zodbshootout.client.benchmarks.conflicting import Conflicting
from zodbshootout.client.data.records import Tally
from zodbshootout.client.data.tree import Dataset, key_at
from zodbshootout.client.specification import MappingType, Parameters
from zodbshootout.client.storage_info import StorageInfo


class Conflicts(Conflicting):
    """All clients change the same half of the objects in one mapping."""

    name = "conflicts"
    title = "Conflicting Updates in {objects} Objects"
    purpose = Dataset.CONFLICTS

    @classmethod
    def refusal(cls, info: StorageInfo, parameters: Parameters) -> str | None:
        return super().refusal(info, parameters) or info.resolution_flaw

    @classmethod
    def work(cls, parameters: Parameters) -> int:
        return len(range(0, parameters.objects, 2))

    def changed(self, tallies: Sequence[Tally]) -> Sequence[Tally]:
        return tallies[::2]

    def account(self) -> int:
        return self.commits

    def verify(self) -> None:
        # All clients of a DB have to, so that one of them can open it anew.
        self.leave_connection()

    def audit(self, accounts: Sequence[int]) -> None:
        with self.client.auditing_connection() as connection:
            self.check_counts(connection, sum(accounts))


class ConflictsMap(Conflicts):
    """And they put each of them again where it is, in a BTree.

    That stores the BTree's buckets, which resolve their conflicts as well, and has the storage
    confirm that its inner nodes are current.
    """

    name = "conflicts_map"
    title = "Conflicting Updates in a BTree of {objects}"

    @classmethod
    def fitted(cls, parameters: Parameters) -> Parameters:
        if parameters.mapping is MappingType.PERSISTENT_MAPPING:
            return replace(parameters, mapping=MappingType.IO)
        return parameters

    def load(self) -> None:
        super().load()
        parameters = self.client.parameters
        positions = range(0, parameters.objects, 2)
        self.keys: list[Any] = [key_at(parameters, position) for position in positions]

    def change(self) -> None:
        for key, tally in zip(self.keys, self.targets):
            tally.count += 1
            self.mapping[key] = tally


BENCHMARKS = (Conflicts, ConflictsMap)
