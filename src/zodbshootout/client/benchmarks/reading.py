"""Benchmarks that read objects, and functions that read back what other benchmarks wrote."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from zodbshootout.client.benchmarks.benchmark import Benchmark, CheckFailed, Traits
from zodbshootout.client.client import Client
from zodbshootout.client.data import datasets
from zodbshootout.client.data.datasets import Dataset
from zodbshootout.client.data.objects import holder
from zodbshootout.client.storage_types import BlobRevision
from zodbshootout.model.storage_facts import CacheUse

SAMPLED_OBJECTS = 1000
"""The maximum number of objects that a client reads back, besides those of its last iteration."""


def read(mapping: Any) -> list[bytes]:
    """Return the contents of all objects in *mapping*."""
    return [item.content for item in mapping.values()]


def check_contents(contents: Sequence[bytes], expected: Sequence[bytes]) -> None:
    """Compare what was read with what was written.

    :raises CheckFailed: if the contents differ
    """
    if contents == expected:
        return
    if len(contents) != len(expected):
        raise CheckFailed(f"found {len(contents)} objects where {len(expected)} were written")
    wrong = [at for at, (is_, was) in enumerate(zip(contents, expected)) if is_ != was]
    raise CheckFailed(
        f"{len(wrong)} of {len(expected)} objects differ from what was written; "
        f"the first is object {wrong[0]}"
    )


def blob_revisions(items: Iterable[Any]) -> list[BlobRevision]:
    """Return the OID and the serial of each item's blob; leave out items without a blob."""
    blobs = [holder(item) for item in items if holder(item) is not item]
    # Load only the record, because loading the object would also fetch the blob's file.
    return [(blob._p_oid, blob._p_jar._storage.load(blob._p_oid)[1]) for blob in blobs]


class IterationSample:
    """The iterations to read back: the last one and a random sample; all would take too long."""

    def __init__(self, client: Client) -> None:
        parameters = client.parameters
        self._random = random.Random(f"{parameters.seed}/{client.index}")  # noqa: S311
        self._max_sampled = max(1, min(50, SAMPLED_OBJECTS // max(1, parameters.objects)))
        self._sample: list[Any] = []
        self._last: list[Any] = []
        self._seen = 0

    def note(self, iterations: Sequence[Any]) -> None:
        """Add iterations, each given as the OID or the list of OIDs that it wrote."""
        for iteration in iterations:
            self._seen += 1
            if len(self._sample) < self._max_sampled:
                self._sample.append(iteration)
            elif (place := self._random.randrange(self._seen)) < self._max_sampled:
                self._sample[place] = iteration
        self._last = list(iterations[-1:])

    @property
    def chosen(self) -> list[Any]:
        """The iterations to read back."""
        return [*self._sample, *self._last]


@dataclass
class ReadSet:
    """The objects that one iteration reads."""

    number: int
    mapping_oid: bytes
    item_oids: Sequence[bytes]
    records: int
    """The number of records to load when reading the set: mapping, nodes, objects and blobs."""
    blobs: Sequence[BlobRevision]


class CacheReading(Benchmark):
    """Read what a storage's cache may hold, and count what it served."""

    def note_use(self) -> None:
        """Record the hits and misses of the storage's cache so far.

        Call this while no client uses the cache.
        """
        self.use_before = self.client.neighbours.together(self.client.database.cache_use)

    def count_use(self, openings: int = 0) -> int | None:
        """Count the loads that the storage's cache has served since :meth:`note_use`.

        Return the number of these loads, or ``None`` if the storage does not count them.  Clients
        that share a DB share its cache: all of them get the same number, and one of them adds it to
        the counts.  *openings* is the number of connections that this client has opened meanwhile.
        """
        now = self.client.neighbours.together(self.client.database.cache_use)
        if now is None or self.use_before is None:
            return None
        use: CacheUse = now.since(self.use_before)
        # A new connection loads its mapping twice; see Reading.find_mapping.  So leave out one hit
        # for each opening, and also the hits that the opening may cause by itself.
        uncounted = self.client.neighbours.total(openings) * (1 + use.per_opening)
        hits = max(0, use.hits - uncounted)
        if self.client.index == self.client.neighbours.first:
            self.count(storage_cache_hits=hits)
            if use.misses is not None:
                self.count(storage_cache_misses=use.misses)
        return hits


class Reading(CacheReading):
    """Read sets of the client's own objects, which another process has written."""

    dataset = Dataset.READ
    traits = Traits(writes=False)

    def set_up(self) -> None:
        parameters = self.client.parameters
        self.client.database.forget_objects()
        sets = datasets.sets_to_read(parameters) if self.traits.cold else 1
        with self.client.second_connection() as connection:
            self.sets = [self._read_set(connection, number) for number in range(sets)]
            if not self.traits.cold:
                connection.prefetch(self.sets[0].item_oids)  # faster than one by one
        self.expected: Callable[[int], Sequence[bytes]] = cache(
            partial(datasets.contents, self.dataset, parameters, self.client.index, 0)
        )
        """A function that returns the contents of the client's set with a given number."""
        self.mapping: Any = None
        self.contents: list[bytes] = []
        """The contents that the latest iteration read."""

    def _read_set(self, connection: Any, number: int) -> ReadSet:
        parameters, index = self.client.parameters, self.client.index
        mapping = datasets.find_objects(connection.root(), self.dataset, parameters, index, number)
        if parameters.grown:  # sets share nodes of the tree, which may be loaded already
            connection.cacheMinimize()
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

    def find_mapping(self, oid: bytes) -> None:
        """Set :attr:`mapping` to the mapping with this OID, as a ghost.

        ``Connection.get`` loads the record to learn the class, and the first use of the object
        loads the record again.  Any other way to the object would load other objects.
        """
        self.mapping = self.client.connection.get(oid)

    def read(self) -> None:
        self.contents = read(self.mapping)

    def check_loads(self, expected: int) -> None:
        """Raise :class:`CheckFailed` unless this many objects were loaded since the last count."""
        loads, _ = self.client.transfers()
        self.count(loads=loads)
        if loads != expected:
            raise CheckFailed(
                f"the connection loaded {loads} objects where {expected} were expected"
            )


class OpeningReading(Reading):
    """Open a connection and read a set; between iterations, return the connection to its pool."""

    def prepare(self) -> None:
        self.client.disconnect()
        self.cleared = self.client.neighbours.together(self.empty)
        self.sets_read: list[tuple[int, list[bytes]]] = []
        """The number and the contents of each set that the stretch read."""
        self.note_use()

    def empty(self) -> tuple[str, ...]:
        """Prepare the caches for the measurement; return the names of those that were emptied."""
        raise NotImplementedError

    def between(self) -> None:
        # Leave no ghosts: the next client must find the connection as this client found it.
        self.mapping = None
        self.client.connection.cacheMinimize()
        self.client.disconnect()

    def run(self) -> None:
        read_set = self.next_set()
        self.client.connect()
        self.find_mapping(read_set.mapping_oid)
        self.read()
        self.note_set(read_set)

    def note_set(self, read_set: ReadSet) -> None:
        """Note that a set was read, so that it is checked after the stretch."""
        latest = (read_set.number, self.contents)
        # A client that waits for slower ones may read a set thousands of times; keep one copy.
        if not self.timed and self.sets_read and self.sets_read[-1] == latest:
            latest = self.sets_read[-1]
        self.sets_read.append(latest)

    def next_set(self) -> ReadSet:
        """Return the set that the next iteration reads."""
        return self.sets[0]

    def check(self, done: int) -> None:
        self.between()
        hits = self.count_use(openings=done)
        loads = sum(self.sets[number].records for number, _ in self.sets_read)
        self.check_loads(loads)
        for number, contents in self.sets_read:
            check_contents(contents, self.expected(number))
        if hits is not None:
            self.check_hits(hits, loads)

    def check_hits(self, hits: int, loads: int) -> None:
        """Check or count the cache's *hits*, given the number of *loads* of this client."""
