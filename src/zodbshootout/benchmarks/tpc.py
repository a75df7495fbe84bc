from __future__ import annotations

from ZODB.Connection import TransactionMetaData

from zodbshootout.benchmarks.benchmark import Benchmark, without_objects
from zodbshootout.model import Parameters


class TwoPhaseCommit(Benchmark):
    """Have the storage itself begin, vote on and finish a transaction that stores nothing."""

    name = "tpc"
    title = "Two-Phase Commits of Nothing"
    purpose = None
    counted = "transactions"

    @classmethod
    def fitted(cls, parameters: Parameters) -> Parameters:
        return without_objects(parameters)

    @classmethod
    def work(cls, parameters: Parameters) -> int:  # noqa: ARG003
        return 1

    def begin(self) -> None:
        self.client.disconnect()
        self.storage = self.client.connect()._storage

    def prepare(self) -> None:
        self.transaction = TransactionMetaData()

    def run(self) -> None:
        self.storage.tpc_begin(self.transaction)
        self.storage.tpc_vote(self.transaction)
        self.storage.tpc_finish(self.transaction)


BENCHMARKS = (TwoPhaseCommit,)
