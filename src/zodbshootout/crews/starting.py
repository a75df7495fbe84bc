"""Making the crew of a cell: who opens the database, and who fills it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.benchmarks.benchmark import Benchmark
from zodbshootout.client.client import Client, Neighbours
from zodbshootout.client.clock import Clock, SystemClock
from zodbshootout.client.database import Database
from zodbshootout.client.outcome import Unsupported
from zodbshootout.client.populating import fill, populate
from zodbshootout.client.specification import ClientKind, Parameters, Specification
from zodbshootout.client.storage_info import Sharing
from zodbshootout.crews.crew import Crew
from zodbshootout.crews.processes import ProcessCrew
from zodbshootout.crews.profiling import Profiler
from zodbshootout.crews.threads import ThreadCrew


@dataclass(frozen=True)
class CrewPlan:
    """What is needed to start the crew of a cell."""

    benchmark: type[Benchmark]
    parameters: Parameters
    open_database: Callable[[], Database]
    clock: Clock = field(default_factory=SystemClock)
    profiler: Profiler = field(default_factory=Profiler)
    clients: Sequence[int] | None = None
    """The numbers of those clients of the crew that live here; all where it is ``None``."""

    @contextmanager
    def started(self) -> Iterator[Crew]:
        """Have a crew, every client of which is set up.

        The objects were written before, by another process, unless the contender keeps them in
        the memory of this one.

        :raises Failed: when a client fails
        """
        with ExitStack() as stack:
            crew = self._crew(stack)
            crew.most_at_once = self.benchmark.most_at_once(self.parameters)
            yield stack.enter_context(crew)

    def _crew(self, stack: ExitStack) -> Crew:
        shape = self.parameters.crew
        here = range(shape.size) if self.clients is None else self.clients

        def open_own(index: int) -> Benchmark:
            return self._open_own(here[index])

        if shape.client_kind is ClientKind.PROCESS:
            return ProcessCrew(len(here), open_own, self.clock)
        if not shape.shared:
            return ThreadCrew(len(here), open_own, self.clock)
        database = self.open_database()
        # After a failure clients may still be at work in it; the process ends soon anyway.
        stack.push(lambda kind, *_: database.close() if kind is None else None)
        self._fill_volatile(database)
        neighbours = Neighbours(len(here), here[0])

        def open_shared(index: int) -> Benchmark:
            return self._client(Client(here[index], self.parameters, database, neighbours))

        return ThreadCrew(len(here), open_shared, self.clock, neighbours)

    def _open_own(self, client: int) -> Benchmark:
        database = self.open_database()
        self._fill_volatile(database)
        return self._client(Client(client, self.parameters, database))

    def _client(self, client: Client) -> Benchmark:
        benchmark = self.benchmark(client)
        self.profiler.instrument(benchmark)
        return benchmark

    def _fill_volatile(self, database: Database) -> None:
        if database.sharing is Sharing.VOLATILE:
            fill(database, self.parameters)
            populate(database, self.benchmark.dataset, self.parameters)


def plan_of(
    specification: Specification, profiler: Profiler, clients: Sequence[int] | None = None
) -> CrewPlan:
    """Return what is needed to start the crew of a cell in this Python, or some *clients* of it.

    :raises Unsupported: when this Python has no such benchmark
    """
    benchmark = benchmarks().get(specification.benchmark)
    if benchmark is None:
        raise Unsupported(f"{specification.benchmark} is not installed in its environment")
    return CrewPlan(
        benchmark,
        specification.parameters,
        lambda: Database(specification.storage),
        profiler=profiler,
        clients=clients,
    )
