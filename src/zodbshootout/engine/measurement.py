"""One cell at work: its data planted, its crew started, ready to be measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from zodbshootout.benchmarks.benchmark import Benchmark
from zodbshootout.benchmarks.client import Client, alone
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.database import Database
from zodbshootout.contenders.layer import Sharing
from zodbshootout.engine.crew import Crew
from zodbshootout.engine.planting import plant, stock
from zodbshootout.engine.processes import ProcessCrew
from zodbshootout.engine.profiling import Recorder
from zodbshootout.engine.sample import CrewSample
from zodbshootout.engine.session import Clock
from zodbshootout.engine.threads import Rendezvous, ThreadCrew
from zodbshootout.model import Parameters, Unit


@dataclass(frozen=True)
class Measurement:
    """A benchmark, a contender and the parameters of a cell."""

    benchmark: type[Benchmark]
    contender: Contender
    parameters: Parameters
    clock: Clock = time.perf_counter
    recorder: Recorder = field(default_factory=Recorder)
    interlude: Callable[[], None] | None = None
    """What is done before each value, while no client has its database open."""

    @contextmanager
    def started(self) -> Iterator[Callable[[int], CrewSample]]:
        """Have a crew that measures as many iterations as it is called with.

        The objects were written before, by another process, unless the contender keeps them in
        the memory of this one.

        :raises CrewFailed: when a client fails
        """
        batch = self.benchmark.batch(self.parameters)
        with ExitStack() as stack:
            crew = stack.enter_context(self._crew(stack))
            yield lambda loops: crew.measure(loops, batch, self.interlude)

    def _crew(self, stack: ExitStack) -> Crew:
        shape = self.parameters.crew
        if shape.unit is Unit.PROCESS:
            return ProcessCrew(shape.size, self._open_own, self.clock)
        if not shape.shared:
            return ThreadCrew(shape.size, self._open_own, self.clock)
        database = Database(self.contender)
        # After a failure clients may still be at work in it; the process ends soon anyway.
        stack.push(lambda kind, *_: database.close() if kind is None else None)
        if database.sharing is Sharing.VOLATILE:
            self._fill(database)
        rendezvous = Rendezvous(shape.size)

        def open_shared(index: int) -> Benchmark:
            return self._at_work(Client(index, self.parameters, database, rendezvous))

        return ThreadCrew(shape.size, open_shared, self.clock, rendezvous)

    def _open_own(self, index: int) -> Benchmark:
        database = Database(self.contender)
        if database.sharing is Sharing.VOLATILE:
            self._fill(database)
        return self._at_work(Client(index, self.parameters, database, alone))

    def _at_work(self, client: Client) -> Benchmark:
        benchmark = self.benchmark(client)
        self.recorder.instrument(benchmark)
        return benchmark

    def _fill(self, database: Database) -> None:
        stock(database, self.parameters)
        plant(database, self.benchmark.purpose, self.parameters)
