from __future__ import annotations

from typing import Any

from ZODB.utils import z64

from zodbshootout.benchmarks.benchmark import Benchmark, CheckFailed
from zodbshootout.benchmarks.reading import read
from zodbshootout.data import tree
from zodbshootout.data.tree import Purpose


class ReadCurrent(Benchmark):
    """Have the storage confirm that objects are current, in a transaction that changes none."""

    name = "readCurrent"
    title = "readCurrent {objects} Objects"
    purpose = Purpose.READ

    def begin(self) -> None:
        client = self.client
        client.disconnect()
        root = client.connect().root()
        self.mapping: Any = tree.find(root, self.purpose, client.parameters, client.index)

    def prepare(self) -> None:
        client = self.client
        client.abort()
        client.transactions.begin()
        read(self.mapping)
        self.items = list(self.mapping.values())
        if any(item._p_serial == z64 for item in self.items):
            raise CheckFailed("an object has no serial; there is nothing to be confirmed of it")
        # A connection takes part in the commit only when something in it has changed, or like this.
        client.transactions.get().join(client.connection)
        client.connection.getTransferCounts(clear=True)

    def run(self) -> None:
        read_current = self.client.connection.readCurrent
        for item in self.items:
            read_current(item)
        self.client.transactions.commit()

    def check(self) -> None:
        loads, stores = self.client.connection.getTransferCounts(clear=True)
        self.count(loads=loads, stores=stores)
        confirmed = len(self.client.connection._readCurrent)
        if confirmed != len(self.items):
            raise CheckFailed(f"{confirmed} of {len(self.items)} objects were to be confirmed")
        if loads or stores:
            raise CheckFailed(
                f"{loads} objects were loaded and {stores} stored where 0 of each were due"
            )


BENCHMARKS = (ReadCurrent,)
