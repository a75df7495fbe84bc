from __future__ import annotations

from transaction import TransactionManager
from ZODB.Connection import TransactionMetaData

from zodbshootout.client.benchmarks.benchmark import (
    BARE,
    Benchmark,
    CheckFailed,
    Shape,
    Traits,
    without_objects,
)
from zodbshootout.model.specification import Parameters


class BareTransaction(Benchmark):
    """A transaction without objects."""

    dataset = None
    counted = "transactions"
    topic = BARE

    @classmethod
    def fitted(cls, parameters: Parameters) -> Parameters:
        return without_objects(parameters)

    @classmethod
    def shape(cls, parameters: Parameters) -> Shape:
        return super().shape(parameters)._replace(work=1)


class TwoPhaseCommit(BareTransaction):
    """Commit nothing, by calling the storage's two-phase commit directly."""

    name = "tpc"
    title = "Two-Phase Commits of Nothing"
    legend = "commit nothing, by the storage alone"

    @classmethod
    def shape(cls, parameters: Parameters) -> Shape:
        return super().shape(parameters)._replace(most_at_once=10_000)

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


class EmptyCommit(BareTransaction):
    """Commit an empty transaction on an open connection."""

    traits = Traits(writes=False)

    def prepare(self) -> None:
        self.client.disconnect()
        self.client.connect().root()
        self.client.abort()

    def check(self, done: int) -> None:  # noqa: ARG002
        loads, stores = self.count_transfers()
        if loads or stores:
            raise CheckFailed(
                f"empty transactions loaded {loads} objects and stored {stores}; none were expected"
            )


class ExplicitCommit(EmptyCommit):
    """Commit nothing, with an explicit transaction manager."""

    name = "ex_commit"
    title = "Empty Explicit Commits"
    legend = "begin and commit an empty transaction"

    def run(self) -> None:
        self.client.transactions.begin()
        self.client.transactions.commit()


class ImplicitCommit(EmptyCommit):
    """Commit nothing, with an implicit transaction manager.

    The connection asks for invalidations when a transaction ends.  The manager creates the next
    transaction when it is needed.
    """

    name = "im_commit"
    title = "Empty Implicit Commits"
    legend = "commit an empty transaction"

    def set_up(self) -> None:
        self.client.transactions = TransactionManager(explicit=False)

    def run(self) -> None:
        self.client.transactions.commit()


BENCHMARKS = (TwoPhaseCommit, ExplicitCommit, ImplicitCommit)
