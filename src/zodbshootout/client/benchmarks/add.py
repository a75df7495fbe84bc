from __future__ import annotations

from typing import Any

from ZODB.POSException import POSKeyError

from zodbshootout.client.benchmarks.benchmark import WRITING, Benchmark, CheckFailed, Shape
from zodbshootout.client.benchmarks.reading import IterationSample, blob_revisions, check_contents
from zodbshootout.client.data import datasets
from zodbshootout.client.data.datasets import Dataset
from zodbshootout.client.data.objects import records_each
from zodbshootout.model.specification import Parameters
from zodbshootout.model.storage_facts import Sharing, StorageInfo

MAX_MAPPINGS = 128
"""The maximum number of mappings to make in advance; even a small pickle cache holds that many."""
MAX_OBJECTS = 50_000
"""The maximum number of objects to make in advance."""


class Add(Benchmark):
    """Put new objects into a new mapping and commit."""

    name = "add"
    title = "Add {objects} Objects"
    legend = "put new objects into a mapping, commit"
    topic = WRITING
    dataset = Dataset.ADD

    @classmethod
    def refusal(cls, info: StorageInfo, parameters: Parameters) -> str | None:
        if parameters.grown and parameters.crew.size > 1:
            return "clients conflict if they insert into the same tree; use -c 1 with --grown"
        return super().refusal(info, parameters)

    @classmethod
    def shape(cls, parameters: Parameters) -> Shape:
        most = max(1, min(MAX_MAPPINGS, MAX_OBJECTS // parameters.objects))
        return super().shape(parameters)._replace(most_at_once=most)

    def set_up(self) -> None:
        parameters = self.client.parameters
        self.contents = self.client.payload.contents(parameters.objects, revision=0)
        self.keys = [datasets.key_at(parameters, at) for at in range(parameters.objects)]
        self.added = IterationSample(self.client)

    def prepare(self) -> None:
        self.client.disconnect()
        self.client.connect()
        self.client.abort()
        self.supplies: list[tuple[Any, list[Any]]] = []
        self.mappings: list[Any] = []

    def supply(self, iterations: int) -> int:
        parameters = self.client.parameters
        # Only the first call of a stretch commits new mappings.  Later calls reuse these, because a
        # commit would disturb clients that are still measured.
        mappings = self.mappings[-iterations:] or self._new_mappings(iterations)
        self.supplies[:0] = [
            (mapping, [datasets.new_item(self.dataset, parameters, data) for data in self.contents])
            for mapping in reversed(mappings)
        ]
        return len(mappings)

    def _new_mappings(self, count: int) -> list[Any]:
        with self.client.transactions:
            root = self.client.connection.root()
            parent = datasets.find_objects(
                root, self.dataset, self.client.parameters, self.client.index
            )
            mappings = datasets.add_empty_mappings(parent, self.client.parameters, count)
        self.client.catch_up()
        for mapping in mappings:
            mapping._p_activate()
        return mappings

    def between(self) -> None:
        # Added objects may have displaced the state of the next mapping from a small pickle cache.
        self.supplies[-1][0]._p_activate()

    def run(self) -> None:
        mapping, items = self.supplies.pop()
        self.client.transactions.begin()
        for key, item in zip(self.keys, items):
            mapping[key] = item
        self.client.transactions.commit()
        self.mappings.append(mapping)

    def check(self, done: int) -> None:
        _, stores = self.count_transfers()
        parameters = self.client.parameters
        expected = done * (parameters.objects * records_each(parameters) + 1)
        if stores < expected:
            raise CheckFailed(
                f"only {stores} objects were stored; at least {expected} were expected"
            )
        self.added.note([mapping._p_oid for mapping in self.mappings])

    def verify(self) -> None:
        with self.client.fresh_connection() as connection:
            referred_to = {mapping._p_oid for mapping in self.mappings}
            in_memory = self.client.database.facts.sharing is Sharing.VOLATILE
            collected = in_memory or self.client.parameters.may_lose_garbage
            for oid in self.added.chosen:
                try:
                    mapping = connection.get(oid)
                except POSKeyError:
                    # Some in-memory storages remove unreachable objects immediately.  If a mapping
                    # is missing for another reason, its commit was lost.
                    if oid in referred_to or not collected:
                        raise
                    continue
                connection.prefetch(mapping.values())
                self.client.database.forget_blobs(blob_revisions(mapping.values()))
                check_contents([item.content for item in mapping.values()], self.contents)
                connection.cacheMinimize()


BENCHMARKS = (Add,)
