"""What the benchmarks have in common whose clients are in each other's way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ZODB.POSException import ConflictError

from zodbshootout.client.benchmarks.benchmark import Benchmark, CheckFailed
from zodbshootout.client.benchmarks.reading import check_contents
from zodbshootout.client.data import tree
from zodbshootout.client.data.records import Tally
from zodbshootout.client.specification import Parameters
from zodbshootout.client.storage_info import StorageInfo

MAX_ATTEMPTS = 10_000
"""Attempts after which a transaction that is always refused makes the cell fail."""


class Conflicting(Benchmark):
    """Changes objects that count their changes, and tries again until it is through."""

    obstructs = True

    @classmethod
    def refusal(cls, info: StorageInfo, parameters: Parameters) -> str | None:
        if parameters.blobs:
            return "blobs do not resolve conflicts; leave out --blobs"
        return super().refusal(info, parameters)

    @property
    def own_number(self) -> int:
        """The number of the mapping whose objects this client changes."""
        return self.client.index % self.mappings

    @property
    def mappings(self) -> int:
        """How many mappings the crew works with."""
        assert self.purpose is not None
        return self.purpose.mappings(self.client.parameters.crew.size)

    def find(self, root: Any, number: int) -> Any:
        """Return a mapping of the tree."""
        assert self.purpose is not None
        return tree.find(root, self.purpose, self.client.parameters, number)

    def changed(self, tallies: Sequence[Tally]) -> Sequence[Tally]:
        """Return those of a mapping's objects that are changed."""
        return tallies

    def set_up(self) -> None:
        # Nobody changes anything before all clients are set up.
        with self.client.second_connection() as connection:
            mapping = self.find(connection.root(), self.own_number)
            self.counts_before = [tally.count for tally in mapping.values()]
        self.commits = 0
        self.resolved = 0
        self.stop_counting: Callable[[], None] = lambda: None

    def prepare(self) -> None:
        self.leave_connection()
        root = self.client.connect().root()
        self.stop_counting = self._count_resolutions()
        self.mapping = self.find(root, self.own_number)
        self.client.abort()
        with self.client.transactions:
            self.load()
        self.attempts = self.resolved = 0

    def leave_connection(self) -> None:
        """Give the connection back as it was."""
        self.stop_counting()
        self.stop_counting = lambda: None
        self.client.disconnect()

    def _count_resolutions(self) -> Callable[[], None]:
        """Count the objects whose conflicts were resolved, which only tpc_vote returns."""
        storage = self.client.connection._storage
        vote = storage.tpc_vote

        def counting(transaction: Any) -> Any:
            resolved = vote(transaction)
            self.resolved += len(resolved or ())
            return resolved

        storage.tpc_vote = counting
        return lambda: setattr(storage, "tpc_vote", vote)

    def load(self) -> None:
        """Have everything in the pickle cache that a transaction needs."""
        self.tallies = list(self.mapping.values())
        self.targets = self.changed(self.tallies)
        for tally in self.tallies:
            tally._p_activate()

    def run(self) -> None:
        transactions = self.client.transactions
        most = self.attempts + MAX_ATTEMPTS
        while True:
            self.attempts += 1
            try:
                transactions.begin()
                self.change()
                transactions.commit()
            except ConflictError:
                transactions.abort()
                if self.attempts >= most:
                    raise
            else:
                return

    def change(self) -> None:
        """Do what one transaction does."""
        for tally in self.targets:
            tally.count += 1

    def check(self, done: int) -> None:
        self.commits += done
        _, stores = self.count_transfers()
        retries = self.attempts - done
        self.count(retries=retries, resolutions=self.resolved, conflicts=retries + self.resolved)
        due = done * len(self.targets)
        if stores < due:
            raise CheckFailed(f"{stores} objects were stored where at least {due} were expected")

    def check_counts(self, connection: Any, commits: int) -> None:
        """Check that *commits* changes of the client's mapping are all that the database has seen.

        :raises CheckFailed: when some are missing, or there are too many
        """
        tallies = list(self.find(connection.root(), self.own_number).values())
        changed = {id(tally) for tally in self.changed(tallies)}
        for number, (tally, before) in enumerate(zip(tallies, self.counts_before)):
            due = before + commits * (id(tally) in changed)
            if tally.count != due:
                raise CheckFailed(_difference(number, due - tally.count, commits))
        assert self.purpose is not None
        wanted = tree.contents(self.purpose, self.client.parameters, self.own_number, revision=0)
        check_contents([tally.content for tally in tallies], wanted)

    def tear_down(self) -> None:
        self.stop_counting()
        super().tear_down()


def _difference(number: int, missing: int, commits: int) -> str:
    what = f"{missing} updates were lost" if missing > 0 else f"{-missing} updates too many"
    return f"object {number}: {what}, of {commits} transactions that were committed"
