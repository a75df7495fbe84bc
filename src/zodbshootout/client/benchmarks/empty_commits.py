from __future__ import annotations

from transaction import TransactionManager

from zodbshootout.client.benchmarks.benchmark import BareTransaction, CheckFailed


class EmptyCommit(BareTransaction):
    """Commits a transaction in which nothing has happened, on an open connection."""

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
