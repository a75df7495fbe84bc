from __future__ import annotations

from zodbshootout.client.benchmarks.benchmark import FROM_CACHE, Shape
from zodbshootout.client.benchmarks.reading import OpeningReading
from zodbshootout.model.specification import Parameters
from zodbshootout.model.storage_facts import PICKLE_CACHE, Sharing, StorageInfo


class Warm(OpeningReading):
    """Read, in a newly opened DB, what another process wrote.

    Persistent caches and servers' caches are not emptied.  A DB that clients share stays open, so
    that its storage's cache is measured.
    """

    name = "warm"
    title = "Read {objects} Warm Objects"
    legend = "from a persistent or shared cache, else from the server or the file"
    topic = FROM_CACHE

    @classmethod
    def refusal(cls, info: StorageInfo, parameters: Parameters) -> str | None:
        if info.sharing is Sharing.VOLATILE and not parameters.crew.shared:
            return (
                f"{info.storage_name}: closing it loses its data, so no other DB can read it; "
                "use --threads shared"
            )
        return super().refusal(info, parameters)

    @classmethod
    def shape(cls, parameters: Parameters) -> Shape:
        shape = super().shape(parameters)
        if parameters.crew.shared:
            return shape._replace(most_at_once=1000)
        return shape._replace(most_at_once=1, fewest=1, in_rounds=True)

    def empty(self) -> tuple[str, ...]:
        database = self.client.database
        if self.client.parameters.crew.shared:
            return database.forget_objects()
        database.reopen()
        return (PICKLE_CACHE,)

    def check_hits(self, hits: int, loads: int) -> None:
        self.count(cacheable_loads=loads)
        if not self.client.parameters.crew.shared:
            self.count(openings_without_hits=int(not hits))


BENCHMARKS = (Warm,)
