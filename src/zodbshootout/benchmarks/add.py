from __future__ import annotations

from typing import Any

from zodbshootout.benchmarks.benchmark import Benchmark, CheckFailed
from zodbshootout.benchmarks.reading import blob_revisions, check_contents
from zodbshootout.data import tree
from zodbshootout.data.records import records_each
from zodbshootout.data.tree import Purpose


class Add(Benchmark):
    """Put new objects into a mapping and commit."""

    name = "add"
    title = "Add {objects} Objects"
    purpose = Purpose.ADD

    def set_up(self) -> None:
        parameters = self.client.parameters
        self.contents = self.client.payload.contents(parameters.objects, revision=0)
        self.keys = [tree.key_at(parameters, at) for at in range(parameters.objects)]
        self.mapping: Any = None
        self.added: list[list[bytes]] = []

    def begin(self) -> None:
        self.client.disconnect()
        root = self.client.connect().root()
        self.mapping = tree.find(root, self.purpose, self.client.parameters, self.client.index)
        self.added.clear()

    def prepare(self) -> None:
        parameters = self.client.parameters
        self.client.abort()
        self.client.transactions.begin()
        self.mapping.clear()
        self.client.transactions.commit()
        self.client.catch_up()
        self.mapping._p_activate()
        self.items = [tree.new_item(self.purpose, parameters, each) for each in self.contents]
        self.client.connection.getTransferCounts(clear=True)

    def run(self) -> None:
        self.client.transactions.begin()
        for key, item in zip(self.keys, self.items, strict=True):
            self.mapping[key] = item
        self.client.transactions.commit()

    def check(self) -> None:
        loads, stores = self.client.connection.getTransferCounts(clear=True)
        self.count(loads=loads, stores=stores)
        parameters = self.client.parameters
        due = parameters.objects * records_each(parameters) + 1
        if loads or stores < due:
            raise CheckFailed(
                f"{loads} objects were loaded and {stores} stored "
                f"where 0 and at least {due} were due"
            )
        self.latest = [item._p_oid for item in self.items]
        if self.clocked:
            self.added.append(self.latest)

    def verify(self) -> None:
        with self.client.fresh_connection() as connection:
            connection.prefetch(*self.added, self.latest)
            for oids in self.added:
                self._check_objects(connection, oids)
            mapping = connection.get(self.mapping._p_oid)
            self.client.database.forget_blobs(blob_revisions(mapping.values()))
            if [item._p_oid for item in mapping.values()] != self.latest:
                raise CheckFailed("the mapping does not hold the objects that were added last")
            check_contents([item.content for item in mapping.values()], self.contents)

    def _check_objects(self, connection: Any, oids: list[bytes]) -> None:
        """Check objects that nothing refers to any more."""
        items = [connection.get(oid) for oid in oids]
        self.client.database.forget_blobs(blob_revisions(items))
        for oid, item, content in zip(oids, items, self.contents, strict=True):
            if item.content != content:
                raise CheckFailed(f"object {oid.hex()} holds other data than was added")


BENCHMARKS = (Add,)
