from __future__ import annotations

from zodbshootout.benchmarks.benchmark import CheckFailed, Unsupported
from zodbshootout.benchmarks.reading import ColdReading
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.layer import CacheUse
from zodbshootout.model import Parameters


class PrefetchCold(ColdReading):
    """As cold, but the storage is told of the objects before they are read."""

    name = "prefetch_cold"
    title = "Read {objects} Cold Prefetched Objects"

    @classmethod
    def refusal(cls, contender: Contender, parameters: Parameters) -> str | None:  # noqa: ARG003
        if contender.prefetches is False:
            return f"{contender.storage_name} has no prefetch"
        return None

    def set_up(self) -> None:
        if not self.client.database.prefetches:
            raise Unsupported(f"{self.client.database.storage_name} has no prefetch")
        super().set_up()

    def run(self) -> None:
        self.client.connect().prefetch(self.item_oids)
        self.find_mapping()
        self.read()

    def check_use(self, use: CacheUse) -> None:
        # ZEO does not tell how often its cache missed, and loads what was not prefetched in time.
        due = self.client.parameters.objects * self.client.neighbours
        if use.misses is not None and use.hits < due:
            raise CheckFailed(
                f"{use.hits} of {due} objects were in the storage's cache after the prefetch; are "
                "they too large for it? See cache-local-mb and cache-local-object-max (RelStorage)"
            )


BENCHMARKS = (PrefetchCold,)
