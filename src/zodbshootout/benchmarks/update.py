from __future__ import annotations

from typing import Any

from zodbshootout.benchmarks.benchmark import Benchmark, CheckFailed
from zodbshootout.benchmarks.reading import blob_revisions, check_contents, read
from zodbshootout.data import tree
from zodbshootout.data.records import holder
from zodbshootout.data.tree import Purpose


class Update(Benchmark):
    """Change every object and commit."""

    name = "update"
    title = "Update {objects} Objects"
    purpose = Purpose.UPDATE

    def set_up(self) -> None:
        objects = self.client.parameters.objects
        payload = self.client.payload
        # Two sets in turn: every change is one, and none has to be generated between iterations.
        self.revisions = [payload.contents(objects, revision) for revision in (1, 2)]
        self.mapping: Any = None

    def begin(self) -> None:
        self.client.disconnect()
        root = self.client.connect().root()
        self.mapping = tree.find(root, self.purpose, self.client.parameters, self.client.index)

    def prepare(self) -> None:
        self.revisions.reverse()
        self.client.catch_up()
        read(self.mapping)
        self.client.connection.getTransferCounts(clear=True)

    def run(self) -> None:
        self.client.transactions.begin()
        if self.client.parameters.blobs:
            for item, content in zip(self.mapping.values(), self.revisions[0], strict=True):
                item.rewrite(content)
        else:
            for item, content in zip(self.mapping.values(), self.revisions[0], strict=True):
                item.content = content
        self.client.transactions.commit()

    def check(self) -> None:
        loads, stores = self.client.connection.getTransferCounts(clear=True)
        self.count(loads=loads, stores=stores)
        due = self.client.parameters.objects
        if (loads, stores) != (0, due):
            raise CheckFailed(
                f"{loads} objects were loaded and {stores} stored where 0 and {due} were due"
            )
        # Committing a blob makes a ghost of it; so does the pickle cache where it is too small.
        changed = map(holder, self.mapping.values())
        loaded = (each for each in changed if each._p_changed is not None)
        self.serial = next((each._p_serial for each in loaded), None)

    def verify(self) -> None:
        with self.client.fresh_connection() as connection:
            connection.prefetch(item._p_oid for item in self.mapping.values())
            mapping = connection.get(self.mapping._p_oid)
            self.client.database.forget_blobs(blob_revisions(mapping.values()))
            check_contents([item.content for item in mapping.values()], self.revisions[0])
            serials = {holder(item)._p_serial for item in mapping.values()}
            if self.serial is not None and serials != {self.serial}:
                raise CheckFailed("the objects are not of the transaction that changed them last")


BENCHMARKS = (Update,)
