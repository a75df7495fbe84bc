from __future__ import annotations

from typing import Any

from ZODB.utils import z64

from zodbshootout.client.benchmarks.benchmark import Benchmark, CheckFailed
from zodbshootout.client.benchmarks.reading import read
from zodbshootout.client.data import datasets
from zodbshootout.client.data.datasets import Dataset


class ReadCurrent(Benchmark):
    """Have the storage confirm at commit that objects are current; change no object."""

    name = "readCurrent"
    title = "readCurrent {objects} Objects"
    legend = "confirm that loaded objects are current, commit"
    dataset = Dataset.READ

    def prepare(self) -> None:
        client = self.client
        client.disconnect()
        root = client.connect().root()
        self.mapping: Any = datasets.find_objects(
            root, self.dataset, client.parameters, client.index
        )
        self.between = None if client.keeps_loaded(client.parameters.objects) else self._load
        client.catch_up()
        self._load()
        self.items = list(self.mapping.values())
        if any(item._p_serial == z64 for item in self.items):
            raise CheckFailed(
                "an object has no serial; the storage cannot confirm that it is current"
            )

    def _load(self) -> None:
        read(self.mapping)

    def run(self) -> None:
        connection, transactions = self.client.connection, self.client.transactions
        # Changing an object makes the connection join the transaction; readCurrent does not.
        transactions.begin().join(connection)
        read_current = connection.readCurrent
        for item in self.items:
            read_current(item)
        transactions.commit()

    def check_latest(self) -> None:
        # ZODB has no public name for the objects that the last transaction confirmed.
        confirmed = len(self.client.connection._readCurrent)
        if confirmed != len(self.items):
            raise CheckFailed(
                f"the last transaction confirmed {confirmed} of {len(self.items)} objects"
            )

    def check(self, done: int) -> None:  # noqa: ARG002
        loads, stores = self.count_transfers()
        if (loads and self.between is None) or stores:
            raise CheckFailed(
                f"{loads} objects were loaded and {stores} stored where none were expected"
            )


BENCHMARKS = (ReadCurrent,)
