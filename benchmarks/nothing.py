"""Benchmarks that do nothing, on a database in memory, to measure the harness alone."""

from __future__ import annotations

from zodbshootout.client.benchmarks.benchmark import Benchmark, Nothing, Shape
from zodbshootout.client.database import Database
from zodbshootout.crews.local import CrewPlan
from zodbshootout.model.specification import ClientKind, CrewShape, Parameters, Storage

_SECTION = "<zodb>\n<mappingstorage>\n</mappingstorage>\n</zodb>\n"
BATCH = 1000


class Batches(Nothing):
    """A benchmark that does nothing, in iterations timed together."""

    name = "batches"

    @classmethod
    def shape(cls, parameters: Parameters) -> Shape:
        """Return a shape with many iterations that are timed together."""
        return super().shape(parameters)._replace(batch=BATCH)


def crew_plan(benchmark: type[Benchmark], unit: ClientKind, clients: int = 1) -> CrewPlan:
    """Return the plan of a crew of *clients* of a kind for a benchmark."""
    parameters = Parameters(CrewShape(clients, unit))
    return CrewPlan(benchmark, parameters, lambda: Database(Storage(section=_SECTION)))
