from __future__ import annotations

import itertools
import random
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ZODB.POSException import POSKeyError
from ZODB.POSException import Unsupported as NotImplementedByStorage
from ZODB.utils import p64, u64, z64

from zodbshootout.client.benchmarks.benchmark import (
    UPKEEP,
    Benchmark,
    CheckFailed,
    Shape,
    Traits,
    Unsupported,
    without_objects,
)
from zodbshootout.client.benchmarks.new_oid import Run, merged_runs
from zodbshootout.client.benchmarks.reading import SAMPLED_OBJECTS
from zodbshootout.client.data import filler
from zodbshootout.client.data.datasets import top
from zodbshootout.model.specification import Parameters
from zodbshootout.model.storage_facts import StorageInfo

KEY = "garbage"
"""The key under which zodbshootout's BTree lists the OIDs of the garbage.  The OIDs are stored as
numbers, so that packing does not take them for references."""
GARBAGE_REVISION = -1
"""The revision number that only garbage has."""


def garbage_objects(parameters: Parameters) -> int:
    """Return the number of unreachable objects."""
    return round(parameters.objects * parameters.garbage / (1 - parameters.garbage))


class Pack(Benchmark):
    """Remove old revisions of all objects, and the objects that nothing refers to."""

    name = "pack"
    title = "Pack {objects} Objects and Garbage"
    legend = "remove old revisions and garbage"
    topic = UPKEEP
    dataset = None
    traits = Traits(alone="one client at a time can pack a database", lengthy=True, assured=True)

    @classmethod
    def fitted(cls, parameters: Parameters) -> Parameters:
        filled = replace(parameters, min_objects=parameters.min_objects or parameters.objects)
        return replace(
            without_objects(filled),
            objects=filled.min_objects,
            revisions=max(2, parameters.revisions),
            garbage=parameters.garbage,
        )

    @classmethod
    def refusal(cls, info: StorageInfo, parameters: Parameters) -> str | None:
        return info.pack_flaw or super().refusal(info, parameters)

    @classmethod
    def shape(cls, parameters: Parameters) -> Shape:
        work = parameters.objects + garbage_objects(parameters)
        return super().shape(parameters)._replace(work=work, most_at_once=1)

    def set_up(self) -> None:
        parameters = self.client.parameters
        self.random = random.Random(parameters.seed)  # noqa: S311
        self.content = filler.content_of(parameters)
        self.revision = 0
        self.serials: list[bytes] = []
        """For each chunk of objects, the ID of the transaction that wrote the newest revision."""
        self.former: list[bytes] = []
        """For each chunk of objects, the ID of the transaction that wrote the previous revision."""
        with self.client.second_connection() as connection:
            filled = filler.filled(connection.root(), parameters)
        if filled != parameters.min_objects:
            raise Unsupported(
                f"the database already has {filled} objects from an earlier --min-objects, and all "
                f"of them would be packed; say --min-objects {filled}"
            )

    def prepare(self) -> None:
        client = self.client
        client.disconnect()
        if client.database.facts.keeps_history:
            for _ in range(client.parameters.revisions - 1):
                self._write_revision()
        elif not self.serials:
            self._write_revision()
        self.garbage = self._garbage() or self._write_garbage()
        self.cleared = (*client.database.forget_pack(), *client.database.empty_caches())
        self.until = client.database.time_after_all()
        self.size = self._disk_size()

    def _disk_size(self) -> int | None:
        return self.client.database.disk_size(blobs=self.client.parameters.blobs).data

    def _write_revision(self) -> None:
        """Write a new revision of every object, one transaction per chunk."""
        self.revision += 1
        with self.client.second_connection() as connection:
            storage = connection._storage
            self.former = self.serials or self._first_serials(connection)
            self.serials = [
                self._store(storage, oids, contents, self.former[number])
                for number, oids, contents in self._chunks(connection)
            ]

    def _first_serials(self, connection: Any) -> list[bytes]:
        chunks = filler.chunks(connection.root(), self.client.parameters)
        return [connection._storage.load(oids[0])[1] for oids in chunks]

    def _store(
        self, storage: Any, oids: Sequence[bytes], contents: Sequence[bytes], former: bytes
    ) -> bytes:
        blobs = self.client.parameters.blobs
        new = filler.records(oids, contents, blobs=blobs, revision=former)
        return filler.store_records(storage, new)

    def _chunks(self, connection: Any) -> Iterator[tuple[int, list[bytes], list[bytes]]]:
        """Yield the number, the OIDs and the newest contents of each chunk."""
        first = 0
        chunks = filler.chunks(connection.root(), self.client.parameters)
        for number, oids in enumerate(chunks):
            yield number, oids, self.content.contents(len(oids), self.revision, first)
            first += len(oids)

    def _garbage(self) -> list[Run]:
        """Return the OIDs of the garbage that an earlier pack has left behind, or an empty list."""
        with self.client.second_connection() as connection:
            runs: list[Run] = top(connection.root()).get(KEY, [])
            known = sum(end - first for first, end in runs)
        kept = bool(runs) and self.client.database.existing([p64(runs[0][0])])
        return runs if kept and known == garbage_objects(self.client.parameters) else []

    def _write_garbage(self) -> list[Run]:
        runs: list[Run] = []
        left = garbage_objects(self.client.parameters)
        with self.client.second_connection() as connection:
            storage, transactions = connection._storage, connection.transaction_manager
            while left:
                count = min(left, filler.CHUNK)
                oids = [storage.new_oid() for _ in range(count)]
                left -= count
                contents = self.content.contents(count, GARBAGE_REVISION, left)
                self._store(storage, oids, contents, z64)
                runs = merged_runs([*runs, *((u64(oid), u64(oid) + 1) for oid in oids)])
            transactions.abort()
            with transactions:
                top(connection.root())[KEY] = runs
        return runs

    def run(self) -> None:
        self.client.database.pack(self.until)

    def check(self, done: int) -> None:  # noqa: ARG002
        if self.client.database.vacuum():
            self.count(vacuums=1)
        size = self._disk_size()
        if size is not None and self.size is not None:
            self.count(freed_bytes=self.size - size)
        self._check_sample()

    def _check_sample(self) -> None:
        total = garbage_objects(self.client.parameters)
        sampled = min(total, SAMPLED_OBJECTS)
        self._check_garbage(sorted(self.random.sample(range(total), sampled)))
        number = max(1, SAMPLED_OBJECTS // filler.CHUNK)
        chosen = self.random.sample(range(len(self.serials)), min(number, len(self.serials)))
        self._check_objects(chosen, every=True)

    def verify(self) -> None:
        self._check_garbage(range(garbage_objects(self.client.parameters)))
        self._check_objects(range(len(self.serials)), every=False)

    def _check_garbage(self, places: Sequence[int]) -> None:
        """Check that the garbage at these places is gone, or is there if packing keeps it.

        If zodbshootout does not know what packing does, the garbage may be all gone or all there.
        """
        self.client.database.empty_caches()
        oids = _at(self.garbage, places)
        left = 0
        while some := list(itertools.islice(oids, filler.CHUNK)):
            left += self.client.database.existing(some)
        collects, gone = self.client.database.facts.collects_garbage, len(places) - left
        if gone and collects is False:
            raise CheckFailed(
                f"{gone} of {len(places)} objects that nothing refers to are gone, but the "
                "configuration tells the storage to keep them"
            )
        if left and (collects or gone):
            raise CheckFailed(
                f"{left} of {len(places)} objects that nothing refers to are still there"
            )
        if not left:
            self.count(freed_objects=garbage_objects(self.client.parameters))

    def _check_objects(self, chosen: Container[int], *, every: bool) -> None:
        """Check the objects of the chunks with these numbers; their former revisions must be gone.

        If *every* is false, look for one former revision per chunk: that of its first object.
        """
        with self.client.fresh_connection() as connection:
            storage = connection._storage
            for number, oids, contents in self._chunks(connection):
                if number not in chosen:
                    continue
                connection.prefetch(oids)
                for oid, content in zip(oids, contents):
                    self._check_newest(storage, oid, content, self.serials[number])
                if self.client.database.facts.only_prepacks:
                    continue
                for oid in oids if every else oids[:1]:
                    _check_is_removed(storage, oid, self.former[number])

    def _check_newest(self, storage: Any, oid: bytes, content: bytes, serial: bytes) -> None:
        try:
            record, newest = storage.load(oid)
        except POSKeyError:
            raise CheckFailed(f"object {oid.hex()} was removed, but others refer to it") from None
        if self.client.parameters.blobs:
            self.client.database.forget_blobs([(oid, newest)])
            record = Path(storage.loadBlob(oid, newest)).read_bytes()
        if newest != serial or content not in record:
            raise CheckFailed(f"object {oid.hex()} differs from what was written last")


def _check_is_removed(storage: Any, oid: bytes, serial: bytes) -> None:
    try:
        storage.loadSerial(oid, serial)
    except (POSKeyError, NotImplementedByStorage):
        return
    raise CheckFailed(f"the former revision of object {oid.hex()} is still there")


def _at(runs: Sequence[Run], places: Sequence[int]) -> Iterator[bytes]:
    """Yield the OIDs at these places in *runs*; the places must ascend."""
    before, at = 0, 0
    for place in places:
        while place - before >= runs[at][1] - runs[at][0]:
            before += runs[at][1] - runs[at][0]
            at += 1
        yield p64(runs[at][0] + place - before)


BENCHMARKS = (Pack,)
