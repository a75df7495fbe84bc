from __future__ import annotations

from ZODB.Connection import TransactionMetaData

from zodbshootout.client.benchmarks.benchmark import BareTransaction
from zodbshootout.client.specification import Parameters


class TwoPhaseCommit(BareTransaction):
    """Begin, vote on and finish an empty transaction of the storage itself."""

    name = "tpc"
    title = "Two-Phase Commits of Nothing"

    @classmethod
    def most_at_once(cls, parameters: Parameters) -> int:  # noqa: ARG003
        return 10_000

    def prepare(self) -> None:
        self.client.disconnect()
        self.storage = self.client.connect()._storage
        self.transactions: list[TransactionMetaData] = []

    def supply(self, iterations: int) -> int:
        self.transactions += [TransactionMetaData() for _ in range(iterations)]
        return iterations

    def run(self) -> None:
        transaction = self.transactions.pop()
        self.storage.tpc_begin(transaction)
        self.storage.tpc_vote(transaction)
        self.storage.tpc_finish(transaction)


BENCHMARKS = (TwoPhaseCommit,)
