from __future__ import annotations

from transaction import TransactionManager

from zodbshootout.benchmarks.benchmark import BareTransaction, CheckFailed


class EmptyCommit(BareTransaction):
    """Commits a transaction in which nothing has happened, on an open connection."""

    def begin(self) -> None:
        self.client.disconnect()
        self.client.connect().root()
        self.client.abort()
        self.client.connection.getTransferCounts(clear=True)

    def check(self) -> None:
        loads, stores = self.client.connection.getTransferCounts(clear=True)
        self.count(loads=loads, stores=stores)
        if loads or stores:
            raise CheckFailed(
                f"an empty transaction loaded {loads} objects and stored {stores}; 0 were due"
            )


class ExplicitCommit(EmptyCommit):
    """With a transaction manager that has to be told when a transaction begins."""

    name = "ex_commit"
    title = "Empty Explicit Commits"

    def run(self) -> None:
        self.client.transactions.begin()
        self.client.transactions.commit()


class ImplicitCommit(EmptyCommit):
    """With one that begins a transaction where another ends, so that the connection polls there."""

    name = "im_commit"
    title = "Empty Implicit Commits"

    def set_up(self) -> None:
        self.client.transactions = TransactionManager(explicit=False)

    def run(self) -> None:
        self.client.transactions.commit()


BENCHMARKS = (ExplicitCommit, ImplicitCommit)
