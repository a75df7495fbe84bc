from __future__ import annotations

from zodbshootout.client.benchmarks.benchmark import CheckFailed, Unsupported
from zodbshootout.client.benchmarks.reading import ColdReading
from zodbshootout.client.specification import Parameters
from zodbshootout.client.storage_info import CacheUse, StorageInfo


class PrefetchCold(ColdReading):
    """Like ``cold``, but the objects are prefetched before they are read."""

    name = "prefetch_cold"
    title = "Read {objects} Cold Prefetched Objects"

    @classmethod
    def refusal(cls, info: StorageInfo, parameters: Parameters) -> str | None:
        if info.prefetches is False:
            return f"{info.storage_name} has no prefetch"
        return super().refusal(info, parameters)

    def set_up(self) -> None:
        if not self.client.database.prefetches:
            raise Unsupported(f"{self.client.database.storage_name} has no prefetch")
        super().set_up()

    def run(self) -> None:
        read_set = self.next_set()
        self.client.connect().prefetch(read_set.item_oids)
        self.find_mapping(read_set.mapping_oid)
        self.read()
        self.sets_read.append((read_set.number, self.contents))

    def check_use(self, use: CacheUse, done: int) -> None:
        # ZEO does not count misses; it loads what was not prefetched in time.
        expected = self.client.parameters.objects * done
        if use.misses is not None and use.hits < expected:
            raise CheckFailed(
                f"{use.hits} of {expected} objects were in the storage's cache after the prefetch; "
                "are they too large for it? See cache-local-mb and cache-local-object-max "
                "(RelStorage)"
            )


BENCHMARKS = (PrefetchCold,)
