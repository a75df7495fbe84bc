"""Benchmarks that do nothing, on a database in memory: what is left is the harness."""

from __future__ import annotations

from zodbshootout.client.benchmarks.benchmark import Benchmark
from zodbshootout.client.database import Database
from zodbshootout.client.specification import ClientKind, CrewShape, Parameters, Storage
from zodbshootout.crews.local import CrewPlan

_SECTION = "<zodb>\n<mappingstorage>\n</mappingstorage>\n</zodb>\n"
BATCH = 1000


class Nothing(Benchmark):
    """Does nothing, in iterations that are timed each by itself."""

    name = "nothing"
    title = "Nothing"
    dataset = None

    def run(self) -> None:
        """Do nothing."""


class Batches(Nothing):
    """The same in iterations that are timed together."""

    name = "batches"

    @classmethod
    def batch(cls, parameters: Parameters) -> int:  # noqa: ARG003
        """Return how many are timed together."""
        return BATCH


def crew_plan(benchmark: type[Benchmark], unit: ClientKind) -> CrewPlan:
    """Return how one client, of that kind, is started on a benchmark."""
    parameters = Parameters(CrewShape(1, unit))
    return CrewPlan(benchmark, parameters, lambda: Database(Storage(section=_SECTION)))
