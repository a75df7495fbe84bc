from __future__ import annotations

from ZODB.Connection import TransactionMetaData

from zodbshootout.benchmarks.benchmark import BareTransaction


class TwoPhaseCommit(BareTransaction):
    """Have the storage itself begin, vote on and finish a transaction that stores nothing."""

    name = "tpc"
    title = "Two-Phase Commits of Nothing"

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
