from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, ClassVar

from ZODB.POSException import ConflictError

from zodbshootout.client.benchmarks.benchmark import WRITING, Benchmark, CheckFailed, Shape, Traits
from zodbshootout.client.benchmarks.reading import check_contents
from zodbshootout.client.data import datasets
from zodbshootout.client.data.datasets import Dataset, key_at
from zodbshootout.model.specification import MappingType, Parameters
from zodbshootout.model.storage_facts import StorageInfo

MAX_ATTEMPTS = 10_000
"""The maximum number of attempts at a transaction; if all fail, so does the cell."""


class Conflicting(Benchmark):
    """Increment the counts of objects, and retry each transaction until it commits."""

    dataset: ClassVar[Dataset]
    traits = Traits(obstructs=True)
    topic = WRITING
    step: ClassVar[int] = 1
    """2 to change every second object of the mapping, 1 to change all."""

    @classmethod
    def fitted(cls, parameters: Parameters) -> Parameters:
        return replace(super().fitted(parameters), grown=False)

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
        """The number of mappings that the crew uses."""
        return self.dataset.mappings(self.client.parameters.crew.size)

    def find(self, root: Any, number: int) -> Any:
        return datasets.find_objects(root, self.dataset, self.client.parameters, number)

    def set_up(self) -> None:
        # No client changes anything before all clients are set up.
        with self.client.second_connection() as connection:
            mapping = self.find(connection.root(), self.own_number)
            self.counts_before = [tally.count for tally in mapping.values()]
        self.commits = 0
        self.counting = ExitStack()

    def prepare(self) -> None:
        self.leave_connection()
        root = self.client.connect().root()
        self._count_resolutions()
        self.mapping = self.find(root, self.own_number)
        self.client.abort()
        with self.client.transactions:
            self.load()
        self.attempts = self.resolved = 0

    def leave_connection(self) -> None:
        self.counting.close()
        self.client.disconnect()

    def _count_resolutions(self) -> None:
        """Count in :attr:`resolved` what tpc_vote resolves, until :attr:`counting` is closed."""
        storage = self.client.connection._storage
        vote = storage.tpc_vote

        def counting(transaction: Any) -> Any:
            resolved = vote(transaction)
            self.resolved += len(resolved or ())
            return resolved

        storage.tpc_vote = counting
        self.counting.callback(setattr, storage, "tpc_vote", vote)

    def load(self) -> None:
        """Load all objects of a transaction into the pickle cache."""
        tallies = list(self.mapping.values())
        self.targets = tallies[:: self.step]
        for tally in tallies:
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
        for tally in self.targets:
            tally.count += 1

    def check(self, done: int) -> None:
        self.commits += done
        _, stores = self.count_transfers()
        retries = self.attempts - done
        self.count(retries=retries, resolutions=self.resolved, conflicts=retries + self.resolved)
        expected = done * len(self.targets)
        if stores < expected:
            raise CheckFailed(
                f"{stores} objects were stored where at least {expected} were expected"
            )

    def check_counts(self, connection: Any, commits: int) -> None:
        """Raise :class:`CheckFailed` unless the client's mapping was changed *commits* times."""
        tallies = list(self.find(connection.root(), self.own_number).values())
        for number, (tally, before) in enumerate(zip(tallies, self.counts_before)):
            missing = before + commits * (number % self.step == 0) - tally.count
            if missing:
                discrepancy = f"{missing} updates were lost"
                discrepancy = discrepancy if missing > 0 else f"{-missing} updates too many"
                raise CheckFailed(
                    f"object {number}: {discrepancy}; {commits} transactions were committed"
                )
        written = datasets.contents(
            self.dataset, self.client.parameters, self.own_number, revision=0
        )
        check_contents([tally.content for tally in tallies], written)

    def tear_down(self) -> None:
        self.counting.close()
        super().tear_down()


class Conflicts(Conflicting):
    """Have all clients change the same half of the objects."""

    name = "conflicts"
    title = "Conflicting Updates in {objects} Objects"
    legend = "change what all clients change, commit, repeat after a conflict"
    dataset = Dataset.CONFLICTS
    step = 2

    @classmethod
    def refusal(cls, info: StorageInfo, parameters: Parameters) -> str | None:
        return super().refusal(info, parameters) or info.resolution_flaw

    @classmethod
    def shape(cls, parameters: Parameters) -> Shape:
        work = len(range(0, parameters.objects, cls.step))
        return super().shape(parameters)._replace(work=work)

    def verify(self) -> int:
        # The client that audits can reopen the DB only if no client has a connection.
        self.leave_connection()
        return self.commits

    def audit(self, accounts: Sequence[int]) -> None:
        with self.client.auditing_connection() as connection:
            self.check_counts(connection, sum(accounts))


class ConflictsMap(Conflicts):
    """Like conflicts, but assign each object to its key anew.

    The assignment stores the BTree's buckets, which also resolve conflicts.  The assignment also
    calls readCurrent for the BTree's inner nodes.
    """

    name = "conflicts_map"
    title = "Conflicting Updates in a BTree of {objects}"
    legend = "put again what all clients put, commit, repeat after a conflict"

    @classmethod
    def fitted(cls, parameters: Parameters) -> Parameters:
        parameters = super().fitted(parameters)
        if parameters.mapping is MappingType.PERSISTENT_MAPPING:
            return replace(parameters, mapping=MappingType.IO)
        return parameters

    def load(self) -> None:
        super().load()
        parameters = self.client.parameters
        positions = range(0, parameters.objects, self.step)
        self.keys: list[Any] = [key_at(parameters, position) for position in positions]

    def change(self) -> None:
        for key, tally in zip(self.keys, self.targets):
            tally.count += 1
            self.mapping[key] = tally


class ReadCurrentConflicts(Conflicting):
    """Change objects, and require another client's objects to be current."""

    name = "readCurrent_conflicts"
    title = "Update {objects}, readCurrent {objects} of Another"
    legend = "change objects, confirm that another client's are current, commit"
    dataset = Dataset.NEIGHBOURS

    @classmethod
    def refusal(cls, info: StorageInfo, parameters: Parameters) -> str | None:
        return super().refusal(info, parameters) or info.retry_flaw

    def load(self) -> None:
        super().load()
        root = self.client.connection.root()
        neighbour = (self.own_number + 1) % self.mappings
        self.neighbours = list(self.find(root, neighbour).values())
        for tally in self.neighbours:
            tally._p_activate()

    def change(self) -> None:
        super().change()
        read_current = self.client.connection.readCurrent
        for tally in self.neighbours:
            tally._p_activate()
            read_current(tally)

    def check_latest(self) -> None:
        # ZODB has no public name for the objects that the last transaction confirmed.
        confirmed = len(self.client.connection._readCurrent)
        if confirmed != len(self.neighbours):
            raise CheckFailed(
                f"the last transaction confirmed {confirmed} of {len(self.neighbours)} objects"
            )

    def verify(self) -> None:
        self.leave_connection()
        with self.client.fresh_connection() as connection:
            self.check_counts(connection, self.commits)


BENCHMARKS = (Conflicts, ConflictsMap, ReadCurrentConflicts)
