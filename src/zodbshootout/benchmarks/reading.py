"""What the benchmarks that read have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from zodbshootout.benchmarks.benchmark import Benchmark, CheckFailed
from zodbshootout.contenders.blob_files import BlobRevision
from zodbshootout.contenders.layer import CacheUse
from zodbshootout.data import tree
from zodbshootout.data.records import holder
from zodbshootout.data.tree import Purpose


def read(mapping: Any) -> int:
    """Read every object in *mapping*; return the bytes of their content."""
    total = 0
    for item in mapping.values():
        total += len(item.content)
    return total


def check_contents(found: Sequence[bytes], expected: Sequence[bytes]) -> None:
    """Compare what was read with what was written.

    :raises CheckFailed: naming the first object that differs
    """
    if found == expected:
        return
    if len(found) != len(expected):
        raise CheckFailed(f"found {len(found)} objects where {len(expected)} were written")
    wrong = [at for at, (is_, was) in enumerate(zip(found, expected, strict=True)) if is_ != was]
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


class Reading(Benchmark):
    """Reads one's own mapping and its objects, which another process has written."""

    purpose = Purpose.READ

    def set_up(self) -> None:
        parameters = self.client.parameters
        self.client.database.forget_objects()
        with self.client.second_connection() as connection:
            mapping = tree.find(connection.root(), self.purpose, parameters, self.client.index)
            self.mapping_oid = mapping._p_oid
            connection.getTransferCounts(clear=True)
            self.item_oids = [item._p_oid for item in mapping.values()]
            self.total = read(mapping)
            self.records = connection.getTransferCounts()[0]
            self.blobs = blob_revisions(mapping.values())
        self.contents = self.client.payload.contents(parameters.objects, revision=0)
        self.mapping: Any = None
        self.use_before: CacheUse | None = None
        if self.cold:
            self.uncleared = self.client.database.caches_left()

    def find_mapping(self) -> None:
        """Have the mapping as a ghost of the client's connection.

        ``Connection.get`` loads the mapping's record to learn its class, and the mapping loads it
        again when it is first used.  No other way leads to an object without passing by others.
        """
        self.mapping = self.client.connection.get(self.mapping_oid)

    def read(self) -> None:
        """Read the mapping and all its objects."""
        self.bytes_read = read(self.mapping)

    def check_loads(self, expected: int) -> None:
        """Check that the connection loaded *expected* objects, and that all were read."""
        loads = self.client.connection.getTransferCounts(clear=True)[0]
        self.count(loads=loads)
        if loads != expected:
            raise CheckFailed(f"the connection loaded {loads} objects where {expected} were due")
        if self.bytes_read != self.total:
            raise CheckFailed(f"{self.bytes_read} bytes were read where {self.total} were due")

    def check_mapping(self) -> None:
        """Check the content of every object as the connection has it in its cache."""
        check_contents([item.content for item in self.mapping.values()], self.contents)

    def note_cache_use(self) -> CacheUse | None:
        """Return the storage cache's use in this iteration, and add it up where it is known whose.

        Clients that keep step look at it when all of them have ended, and one adds it up for all.
        """
        database = self.client.database
        now = self.client.together(database.cache_use) if self.in_step else database.cache_use()
        if now is None or self.use_before is None:
            return None
        use: CacheUse = now.since(self.use_before)
        if self.client.neighbours == 1 or (self.in_step and self.client.index == 0):
            self.count(storage_cache_hits=use.hits)
            if use.misses is not None:
                self.count(storage_cache_misses=use.misses)
        return use


class OpeningReading(Reading):
    """Opens a connection and reads, after the caches were brought into some state."""

    in_step = True

    def empty(self) -> tuple[str, ...]:
        """Bring the caches into the state that this benchmark is about; name those emptied."""
        raise NotImplementedError

    def prepare(self) -> None:
        self.client.disconnect()
        self.cleared, self.use_before = self.client.together(self._empty_and_look)

    def _empty_and_look(self) -> tuple[tuple[str, ...], CacheUse | None]:
        return self.empty(), self.client.database.cache_use()

    def run(self) -> None:
        self.client.connect()
        self.find_mapping()
        self.read()

    def check(self) -> None:
        use = self.note_cache_use()
        self.check_loads(self.records)
        self.check_mapping()
        if use is not None:
            self.check_use(use)

    def check_use(self, use: CacheUse) -> None:
        """Check what the storage cache contributed; by default anything will do."""


class ColdReading(OpeningReading):
    """Reads with every cache on the client's side emptied."""

    cold = True

    def prepare(self) -> None:
        self.client.disconnect()
        # Each client forgets its own: others may be reading theirs from the same directory.
        forgotten = self.client.database.forget_blobs(self.blobs)
        super().prepare()
        self.cleared += forgotten

    def empty(self) -> tuple[str, ...]:
        return self.client.database.empty_caches()
