from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zodbshootout.client.benchmarks.benchmark import UPKEEP, CheckFailed, Shape, Traits, Unsupported
from zodbshootout.client.benchmarks.reading import Reading, check_contents, read
from zodbshootout.client.data.datasets import Dataset
from zodbshootout.client.data.objects import rewrite
from zodbshootout.client.data.sources import TRANSACTION_SIZE
from zodbshootout.model.specification import Parameters
from zodbshootout.model.storage_facts import PICKLE_CACHE, Sharing, StorageInfo

CHANGED = 3
"""The interval at which ``open_stale`` changes objects: it changes every third object."""
NOTHING_KEPT = "it has neither an index nor a persistent cache in a file; measure open instead"


class Open(Reading):
    """Open the DB and a connection, and load an object."""

    name = "open"
    title = "Open and Load an Object"
    legend = "open the DB and a connection, load an object"
    topic = UPKEEP
    traits = Traits(writes=False, assured=True)
    counted = "openings"

    @classmethod
    def refusal(cls, info: StorageInfo, parameters: Parameters) -> str | None:
        if info.sharing is Sharing.VOLATILE:
            return f"{info.storage_name}: closing it loses its data"
        if parameters.crew.shared and parameters.crew.size > 1:
            return "clients that share a DB open it once; use -c 1 or --threads unique"
        return super().refusal(info, parameters)

    @classmethod
    def shape(cls, parameters: Parameters) -> Shape:
        shape = super().shape(parameters)
        return shape._replace(work=1, most_at_once=1, fewest=1, in_rounds=True)

    def prepare(self) -> None:
        database = self.client.database
        self.client.disconnect()
        self.start_files = database.start_files()
        database.close()
        missing = [path for path in self.start_files if not path.exists()]
        if missing:
            raise CheckFailed(f"closing the DB left no {missing[0].name}")
        self.cleared = (PICKLE_CACHE,)

    def run(self) -> None:
        self.client.database.open()
        self.client.connect()
        self.find_mapping(self.sets[0].mapping_oid)
        self.mapping._p_activate()

    def check(self, done: int) -> None:  # noqa: ARG002
        self.note_use()
        self.read()
        hits = self.count_use()
        self.check_loads(self.sets[0].records)
        check_contents(self.contents, self.expected(0))
        if hits is not None:
            self.check_hits(hits)
        self.mapping = None
        self.client.connection.cacheMinimize()
        self.client.disconnect()

    def check_hits(self, hits: int) -> None:
        """Count the loads that a persistent cache may serve, and the openings without a hit."""
        self.count(cacheable_loads=self.sets[0].records - 1, openings_without_hits=int(not hits))


class OpenCold(Open):
    """Like open, but without the index or persistent cache that closing the DB leaves behind."""

    name = "open_cold"
    title = "Open without Index or Cache, and Load an Object"
    legend = "the same, without a FileStorage's index or a persistent cache"
    traits = Traits(assured=True)  # it writes: it removes files

    def prepare(self) -> None:
        # Empty the cache: otherwise, a client that closes its DB later would write the contents of
        # the cache to a file again.
        cleared = self.client.database.empty_caches()
        if not self.client.database.start_files():
            raise Unsupported(NOTHING_KEPT)
        super().prepare()
        for path in self.start_files:
            path.unlink(missing_ok=True)
        self.cleared = (*(path.name for path in self.start_files), *cleared)

    def check_hits(self, hits: int) -> None:
        """Count nothing: there is no persistent cache."""


class OpenStale(Open):
    """Like open, after another DB has changed a third of the objects.

    Before the changes, the client sets aside the files with the index or persistent cache; it puts
    them back for the timed opening.
    """

    name = "open_stale"
    title = "Open with an Old Index or Cache, and Load an Object"
    legend = "open it after a third of the objects was changed elsewhere"
    dataset = Dataset.UPDATE
    traits = Traits(alone="one client at a time can keep an old cache", assured=True)

    def set_up(self) -> None:
        super().set_up()
        self.revision = 0
        self.held: list[bytes] = []
        """The contents of all objects."""
        self.changed = 0
        """The number of objects that were changed before the latest opening."""
        self.expected = lambda number: self.held  # noqa: ARG005
        with self.client.second_connection() as connection:
            self._change(connection, range(self.client.parameters.objects))

    def _change(self, connection: Any, places: Sequence[int]) -> None:
        """Write a new revision of the objects at these places."""
        self.revision += 1
        objects = self.client.parameters.objects
        new = self.client.payload.contents(objects, self.revision)
        self.held = self.held or new
        items = list(connection.get(self.sets[0].mapping_oid).values())
        connection.transaction_manager.abort()
        for first in range(0, len(places), TRANSACTION_SIZE):
            with connection.transaction_manager:
                for place in places[first : first + TRANSACTION_SIZE]:
                    rewrite(items[place], new[place])
                    self.held[place] = new[place]

    def prepare(self) -> None:
        database = self.client.database
        if not database.start_files():
            raise Unsupported(NOTHING_KEPT)
        with self.client.second_connection() as connection:
            # Load all objects into the cache, so that the changes make a third of them old.
            read(connection.get(self.sets[0].mapping_oid))
        super().prepare()
        kept = [path.rename(f"{path}.kept") for path in self.start_files]
        database.open()
        objects = self.client.parameters.objects
        places = range(self.revision % min(CHANGED, objects), objects, CHANGED)
        with self.client.second_connection() as connection:
            self._change(connection, places)
        self.changed = len(places)
        database.close()
        for old, path in zip(kept, self.start_files):
            old.replace(path)

    def check_hits(self, hits: int) -> None:
        super().check_hits(hits)
        self.count(changed_loads=self.changed)


BENCHMARKS = (Open, OpenCold, OpenStale)
