from __future__ import annotations

from transaction import TransactionManager

from zodbshootout.client.benchmarks.benchmark import BareTransaction, CheckFailed


class EmptyCommit(BareTransaction):
    """Commits an empty transaction on an open connection."""

    writes = False

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
    """With an explicit transaction manager, whose transactions have to be begun."""

    name = "ex_commit"
    title = "Empty Explicit Commits"

    def run(self) -> None:
        self.client.transactions.begin()
        self.client.transactions.commit()


class ImplicitCommit(EmptyCommit):
    """With an implicit transaction manager.

    It begins a transaction when another ends, and the connection polls then.
    """

    name = "im_commit"
    title = "Empty Implicit Commits"

    def set_up(self) -> None:
        self.client.transactions = TransactionManager(explicit=False)

    def run(self) -> None:
        self.client.transactions.commit()


BENCHMARKS = (ExplicitCommit, ImplicitCommit)
