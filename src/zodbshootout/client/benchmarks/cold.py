from __future__ import annotations

from zodbshootout.client.benchmarks.benchmark import FROM_DATABASE, CheckFailed
from zodbshootout.client.benchmarks.reading import OpeningReading, ReadSet
from zodbshootout.client.data import tree
from zodbshootout.client.specification import Parameters
from zodbshootout.client.storage_info import CacheUse, Sharing, StorageInfo


class ColdReading(OpeningReading):
    """Reads each set once after emptying every client-side cache."""

    cold = True
    topic = FROM_DATABASE

    @classmethod
    def fewest(cls, parameters: Parameters) -> int:
        # A second stretch would read the same sets again, from the server's caches.
        return min(super().fewest(parameters), cls.most_at_once(parameters))

    @classmethod
    def most_at_once(cls, parameters: Parameters) -> int:
        return tree.sets_to_time(parameters)

    def prepare(self) -> None:
        self.client.disconnect()
        # Each client forgets only its own blobs: others may read theirs from the same directory.
        blobs = [blob for read_set in self.sets for blob in read_set.blobs]
        forgotten = self.client.database.forget_blobs(blobs)
        super().prepare()
        self.cleared += forgotten
        self.unread = list(reversed(self.sets))
        self.unsupplied = len(self.sets)

    def empty(self) -> tuple[str, ...]:
        database = self.client.database
        # Closing a storage that exists only in memory would lose its data.
        if not database.knows_caches and database.sharing is not Sharing.VOLATILE:
            database.reopen()
        return database.empty_caches()

    def supply(self, iterations: int) -> int:  # noqa: ARG002
        # No more sets can be made cold while other clients read: after these, this client waits.
        supplied, self.unsupplied = self.unsupplied, 0
        return supplied

    def next_set(self) -> ReadSet:
        return self.unread.pop()


class Cold(ColdReading):
    """Read with every client-side cache emptied."""

    name = "cold"
    title = "Read {objects} Cold Objects"
    legend = "from the server or the file, the client's caches empty"

    def check_use(self, use: CacheUse, done: int) -> None:
        # Each mapping is loaded twice, see find_mapping; the second load is a hit.
        most_hits = done * (1 + use.per_opening)
        if use.hits > most_hits:
            raise CheckFailed(
                f"the storage's cache had {use.hits} hits in {done} cold iterations; at most "
                f"{most_hits} are expected"
            )


class PrefetchCold(ColdReading):
    """Like cold, but prefetch the objects before reading them."""

    name = "prefetch_cold"
    title = "Read {objects} Cold Prefetched Objects"
    legend = "as cold, after a prefetch of all objects"

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

    def check_use(self, use: CacheUse, done: int) -> None:
        # Not for ZEO, which counts no misses: if a prefetch is late, it loads the object without a
        # hit.
        expected = self.client.parameters.objects * done
        if use.misses is not None and use.hits < expected:
            raise CheckFailed(
                f"only {use.hits} of {expected} objects were in the storage's cache after the "
                "prefetch; is it too small for them? See cache-local-mb and cache-local-object-max "
                "(RelStorage)"
            )


BENCHMARKS = (Cold, PrefetchCold)
