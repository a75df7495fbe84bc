from __future__ import annotations

from zodbshootout.client.benchmarks.benchmark import FROM_DATABASE, CheckFailed, Shape, Traits
from zodbshootout.client.benchmarks.reading import OpeningReading, ReadSet
from zodbshootout.client.data import datasets
from zodbshootout.client.database import Database
from zodbshootout.model.specification import Parameters
from zodbshootout.model.storage_facts import Sharing, StorageInfo


def check_cold(hits: int) -> None:
    """Raise :class:`CheckFailed` if the storage's cache served any loads."""
    if hits:
        raise CheckFailed(f"the storage's cache served {hits} loads that should have been cold")


def emptied(database: Database) -> tuple[str, ...]:
    """Empty every client-side cache, by reopening the DB if necessary; return the caches' names."""
    # Closing a storage that exists only in memory would lose its data.
    if not database.facts.knows_caches and database.facts.sharing is not Sharing.VOLATILE:
        database.reopen()
    return database.empty_caches()


class ColdReading(OpeningReading):
    """Read each set of objects once, after emptying every client-side cache."""

    legend = "from the server or the file, the client's caches empty"
    traits = Traits(writes=False, cold=True)
    topic = FROM_DATABASE

    @classmethod
    def shape(cls, parameters: Parameters) -> Shape:
        shape, most = super().shape(parameters), datasets.sets_to_time(parameters)
        # A second stretch would read the same sets again, from the server's caches.
        return shape._replace(most_at_once=most, fewest=min(shape.fewest, most))

    def prepare(self) -> None:
        self.client.disconnect()
        # Each client drops only its own blobs: others may read theirs from the same directory.
        blobs = [blob for read_set in self.sets for blob in read_set.blobs]
        forgotten = self.client.database.forget_blobs(blobs)
        super().prepare()
        self.cleared += forgotten
        first = 0
        if self.client.parameters.continues and self.first:
            # Begin after the sets of earlier slices: the server may still have these in its caches.
            first = self.first % len(self.sets)
        self.unread = [*self.sets[first:], *self.sets[:first]][::-1]
        self.unsupplied = len(self.sets)

    def empty(self) -> tuple[str, ...]:
        return emptied(self.client.database)

    def supply(self, iterations: int) -> int:  # noqa: ARG002
        # While others read, no set can be made cold again: a client waits after its last set.
        supplied, self.unsupplied = self.unsupplied, 0
        return supplied

    def next_set(self) -> ReadSet:
        return self.unread.pop()


class Cold(ColdReading):
    """Read objects after emptying every client-side cache."""

    name = "cold"
    title = "Read {objects} Cold Objects"

    def check_hits(self, hits: int, loads: int) -> None:
        parameters = self.client.parameters
        if parameters.grown:  # sets share nodes of the tree
            nodes = loads - parameters.objects * len(self.sets_read)
            hits = max(0, hits - self.client.neighbours.total(nodes))
        check_cold(hits)


class PrefetchCold(ColdReading):
    """Like cold, but prefetch the objects before reading them."""

    name = "prefetch_cold"
    title = "Read {objects} Cold Prefetched Objects"
    legend = "by a prefetch of all objects, the client's caches empty"

    @classmethod
    def refusal(cls, info: StorageInfo, parameters: Parameters) -> str | None:
        if info.prefetches is False:
            return f"{info.storage_name} has no prefetch"
        return super().refusal(info, parameters)

    def run(self) -> None:
        read_set = self.next_set()
        self.client.connect().prefetch(read_set.item_oids)
        self.find_mapping(read_set.mapping_oid)
        self.read()
        self.note_set(read_set)

    def check_hits(self, hits: int, loads: int) -> None:  # noqa: ARG002
        self.count(cacheable_loads=self.client.parameters.objects * len(self.sets_read))


BENCHMARKS = (Cold, PrefetchCold)
