from __future__ import annotations

from typing import Any

from zodbshootout.client.benchmarks.benchmark import WRITING, Benchmark, CheckFailed, Shape
from zodbshootout.client.benchmarks.reading import blob_revisions, check_contents, read
from zodbshootout.client.data import datasets
from zodbshootout.client.data.datasets import Dataset
from zodbshootout.client.data.objects import holder
from zodbshootout.model.specification import Parameters

MAX_BYTES = 32 * 1024**2
"""The maximum number of bytes of content to generate in advance."""


class Update(Benchmark):
    """Change every object and commit."""

    name = "update"
    title = "Update {objects} Objects"
    legend = "change loaded objects, commit"
    topic = WRITING
    dataset = Dataset.UPDATE

    @classmethod
    def shape(cls, parameters: Parameters) -> Shape:
        size = parameters.objects * (parameters.object_size + 50)
        most = max(1, min(1000, MAX_BYTES // size))
        return super().shape(parameters)._replace(most_at_once=most)

    def set_up(self) -> None:
        self.revision = 0
        with self.client.second_connection() as connection:
            parameters, index = self.client.parameters, self.client.index
            mapping = datasets.find_objects(connection.root(), self.dataset, parameters, index)
            connection.prefetch(mapping.values())  # faster than one by one

    def prepare(self) -> None:
        self.client.disconnect()
        root = self.client.connect().root()
        self.mapping: Any = datasets.find_objects(
            root, self.dataset, self.client.parameters, self.client.index
        )
        objects = self.client.parameters.objects
        # A commit turns blobs into ghosts, and also other objects if the pickle cache is too small.
        stays_loaded = self.client.keeps_loaded(objects) and not self.client.parameters.blobs
        self.between = None if stays_loaded else self._load
        self._load()
        self.items = list(self.mapping.values())
        self.contents: list[list[bytes]] = []

    def _load(self) -> None:
        # Until the connection catches up, it would load old states of objects that it has changed.
        self.client.catch_up()
        read(self.mapping)

    def supply(self, iterations: int) -> int:
        objects = self.client.parameters.objects
        first = self.revision + 1
        contents = [
            self.client.payload.contents(objects, revision)
            for revision in range(first, first + iterations)
        ]
        self.revision += iterations
        self.contents[:0] = reversed(contents)
        return iterations

    def run(self) -> None:
        self.written = self.contents.pop()
        self.client.transactions.begin()
        if self.client.parameters.blobs:
            for item, content in zip(self.mapping.values(), self.written):
                item.rewrite(content)
        else:
            for item, content in zip(self.mapping.values(), self.written):
                item.content = content
        self.client.transactions.commit()

    def check(self, done: int) -> None:
        loads, stores = self.count_transfers()
        # A blob becomes a ghost when it is committed, and so do other objects if the pickle cache
        # is too small; a ghost has no serial.
        changed = map(holder, self.items)
        loaded = (item for item in changed if item._p_changed is not None)
        self.serial = next((item._p_serial for item in loaded), None)
        objects = self.client.parameters.objects
        expected = done * objects
        reloads = expected - objects if loads and self._is_invalidated() else 0
        if stores != expected or (loads > reloads and self.between is None):
            raise CheckFailed(
                f"{loads} objects were loaded and {stores} stored where {reloads} loads and "
                f"{expected} stores were expected"
            )

    def _is_invalidated(self) -> bool:
        """Return whether the storage reports this client's own commits as invalidations.

        If so, the client loads an object again between two changes of it, as applications do.
        """
        self.client.catch_up()
        return all(holder(item)._p_changed is None for item in self.items)

    def verify(self) -> None:
        with self.client.fresh_connection() as connection:
            connection.prefetch(item._p_oid for item in self.items)
            mapping = connection.get(self.mapping._p_oid)
            self.client.database.forget_blobs(blob_revisions(mapping.values()))
            check_contents([item.content for item in mapping.values()], self.written)
            serials = {holder(item)._p_serial for item in mapping.values()}
            if self.serial is not None and serials != {self.serial}:
                raise CheckFailed("the last update did not write the objects")


BENCHMARKS = (Update,)
