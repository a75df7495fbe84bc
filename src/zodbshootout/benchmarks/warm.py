from __future__ import annotations

from zodbshootout.benchmarks.reading import OpeningReading
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.database import PICKLE_CACHE
from zodbshootout.contenders.layer import Sharing
from zodbshootout.model import Parameters


class Warm(OpeningReading):
    """Read what another process wrote, in a DB that was opened newly and cleared of nothing.

    Where the clients share a DB it stays open, and what is measured is its shared cache.
    """

    name = "warm"
    title = "Read {objects} Warm Objects"

    @classmethod
    def refusal(cls, contender: Contender, parameters: Parameters) -> str | None:
        if contender.sharing is Sharing.VOLATILE and not parameters.crew.shared:
            return (
                f"{contender.storage_name}: closing it loses its data, so no other DB can read "
                "what one wrote; use --threads shared"
            )
        return None

    def empty(self) -> tuple[str, ...]:
        if self.client.parameters.crew.shared:
            return self.client.database.forget_objects()
        self.client.database.reopen()
        return (PICKLE_CACHE,)


BENCHMARKS = (Warm,)
