"""What the benchmarks that read have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from zodbshootout.client.benchmarks.benchmark import Benchmark, CheckFailed
from zodbshootout.client.data import tree
from zodbshootout.client.data.records import holder
from zodbshootout.client.data.tree import Dataset
from zodbshootout.client.specification import Parameters
from zodbshootout.client.storage_info import Cache, CacheUse, Sharing
from zodbshootout.client.storages.storage_type import BlobRevision


def read(mapping: Any) -> list[bytes]:
    """Read every object in *mapping*; return what they hold."""
    return [item.content for item in mapping.values()]


def check_contents(found: Sequence[bytes], expected: Sequence[bytes]) -> None:
    """Compare what was read with what was written.

    :raises CheckFailed: naming the first object that differs
    """
    if found == expected:
        return
    if len(found) != len(expected):
        raise CheckFailed(f"found {len(found)} objects where {len(expected)} were written")
    wrong = [at for at, (is_, was) in enumerate(zip(found, expected)) if is_ != was]
    raise CheckFailed(
        f"{len(wrong)} of {len(expected)} objects hold other data than was written, "
        f"the first of them object {wrong[0]}"
    )


def blob_revisions(items: Iterable[Any]) -> list[BlobRevision]:
    """Return what identifies the blobs of *items*, as far as they have any."""
    blobs = [holder(item) for item in items if holder(item) is not item]
    return [(blob._p_oid, serial_of(blob)) for blob in blobs]


def serial_of(blob: Any) -> bytes:
    """Return the serial of a blob, without having its file fetched."""
    serial: bytes = blob._p_jar._storage.load(blob._p_oid)[1]
    return serial


@dataclass
class ReadSet:
    """The objects that one iteration reads."""

    number: int
    mapping_oid: bytes
    item_oids: Sequence[bytes]
    records: int
    """Objects that are loaded where all of them are: the mapping, its nodes and the objects."""
    blobs: Sequence[BlobRevision]


class Reading(Benchmark):
    """Reads sets of one's own objects, which another process has written."""

    purpose = Dataset.READ
    writes = False

    def set_up(self) -> None:
        parameters = self.client.parameters
        self.client.database.forget_objects()
        sets = tree.sets_to_read(parameters) if self.cold else 1
        with self.client.second_connection() as connection:
            self.sets = [self._learn(connection, number) for number in range(sets)]
            if not self.cold:
                connection.prefetch(self.sets[0].item_oids)  # sooner than one by one
        self._expected: dict[int, list[bytes]] = {}
        self.mapping: Any = None
        self.found: list[bytes] = []
        self.use_before: CacheUse | None = None

    def _learn(self, connection: Any, number: int) -> ReadSet:
        parameters, index = self.client.parameters, self.client.index
        mapping = tree.find(connection.root(), self.purpose, parameters, index, number)
        mapping._p_activate()
        connection.getTransferCounts(clear=True)
        items = list(mapping.values())
        nodes = connection.getTransferCounts()[0]
        blobs: Sequence[BlobRevision] = ()
        records = 1 + nodes + len(items)
        if parameters.blobs:
            connection.prefetch(items)
            blobs = blob_revisions(items)
            records += len(items)
        return ReadSet(number, mapping._p_oid, [item._p_oid for item in items], records, blobs)

    def expected(self, number: int) -> list[bytes]:
        """Return what the objects of a set hold."""
        if number not in self._expected:
            parameters, index = self.client.parameters, self.client.index
            self._expected[number] = tree.contents(self.purpose, parameters, index, 0, number)
        return self._expected[number]

    def find_mapping(self, oid: bytes) -> None:
        """Have a mapping as a ghost of the client's connection.

        ``Connection.get`` loads the mapping's record to learn its class, and the mapping loads it
        again when it is first used.  No other way leads to an object without passing by others.
        """
        self.mapping = self.client.connection.get(oid)

    def read(self) -> None:
        """Read the mapping and all its objects."""
        self.found = read(self.mapping)

    def check_loads(self, expected: int) -> None:
        """Check that *expected* objects were loaded since they were counted last."""
        loads, _ = self.client.transfers()
        self.count(loads=loads)
        if loads != expected:
            raise CheckFailed(
                f"the connection loaded {loads} objects where {expected} were expected"
            )

    def look_at_use(self) -> None:
        """Note how the storage's cache has been used so far, at a moment when nobody uses it."""
        self.use_before = self.client.together(self.client.database.cache_use)

    def count_use(self) -> CacheUse | None:
        """Count the use of the storage's cache since :meth:`look_at_use`, once for all of a DB."""
        now = self.client.together(self.client.database.cache_use)
        if now is None or self.use_before is None:
            return None
        use: CacheUse = now.since(self.use_before)
        if self.client.speaks_for_all:
            self.count(storage_cache_hits=use.hits)
            if use.misses is not None:
                self.count(storage_cache_misses=use.misses)
        return use


class OpeningReading(Reading):
    """Opens a connection and reads a set; between iterations the connection is given back."""

    def prepare(self) -> None:
        self.client.disconnect()
        self.cleared = self.client.together(self.empty)
        self.read_contents: list[tuple[int, list[bytes]]] = []
        self.look_at_use()

    def empty(self) -> tuple[Cache, ...]:
        """Bring the caches into the state that this benchmark is about; return those emptied."""
        raise NotImplementedError

    def between(self) -> None:
        # Whoever gets this connection next finds it as this one did: without even a ghost.
        self.mapping = None
        self.client.connection.cacheMinimize()
        self.client.disconnect()

    def run(self) -> None:
        of = self.next_set()
        self.client.connect()
        self.find_mapping(of.mapping_oid)
        self.read()
        self.read_contents.append((of.number, self.found))

    def next_set(self) -> ReadSet:
        """Return the set that the next iteration reads."""
        return self.sets[0]

    def check(self, done: int) -> None:
        self.between()
        use = self.count_use()
        self.check_loads(sum(self.sets[number].records for number, _ in self.read_contents))
        for number, found in self.read_contents:
            check_contents(found, self.expected(number))
        if use is not None:
            self.check_use(use, self.client.neighbours.total(done))

    def check_use(self, use: CacheUse, done: int) -> None:
        """Check what the storage cache contributed to what all did; by default it may be all."""


class ColdReading(OpeningReading):
    """Reads with every cache on the client's side emptied, each set once."""

    cold = True

    @classmethod
    def fewest(cls, parameters: Parameters) -> int:
        # Those of another stretch would find what the server has been asked for already.
        return min(super().fewest(parameters), cls.most_at_once(parameters))

    @classmethod
    def most_at_once(cls, parameters: Parameters) -> int:
        return tree.sets_to_time(parameters)

    def prepare(self) -> None:
        self.client.disconnect()
        # Each client forgets its own: others may be reading theirs from the same directory.
        blobs = [blob for each in self.sets for blob in each.blobs]
        forgotten = self.client.database.forget_blobs(blobs)
        super().prepare()
        self.cleared += forgotten
        self.unread = list(reversed(self.sets))
        self.unsupplied = len(self.sets)

    def empty(self) -> tuple[Cache, ...]:
        database = self.client.database
        # What is in the memory of a storage alone would be gone.
        if not database.knows_caches and database.sharing is not Sharing.VOLATILE:
            database.reopen()
        cleared: tuple[Cache, ...] = database.empty_caches()
        return cleared

    def supply(self, iterations: int) -> int:  # noqa: ARG002
        # What nobody has read cannot be had while others read: after these a client has to wait.
        found, self.unsupplied = self.unsupplied, 0
        return found

    def next_set(self) -> ReadSet:
        return self.unread.pop()
