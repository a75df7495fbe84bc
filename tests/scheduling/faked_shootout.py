"""A shootout with fake fork servers, workers and servers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyperf

from tests.runs import Counting, contender, run
from tests.scheduling.faked_laps import carry_out
from zodbshootout.client.preparation import Preparation
from zodbshootout.contenders.contender import Contender
from zodbshootout.crews.cluster import Cluster
from zodbshootout.crews.traffic import Counts
from zodbshootout.model.outcome import Failed, Failure, State
from zodbshootout.model.specification import (
    Endpoint,
    Interpreter,
    Specification,
    Storage,
)
from zodbshootout.model.storage_facts import StorageInfo
from zodbshootout.model.titles import title_of, variant_of
from zodbshootout.network.relays import Traffic
from zodbshootout.results.result import CellResult
from zodbshootout.scheduling.fork_servers import ForkServers
from zodbshootout.scheduling.machine_load import MachineLoad
from zodbshootout.scheduling.orders import Tasks
from zodbshootout.scheduling.plan import Plan, RunOptions
from zodbshootout.scheduling.result_store import ResultStore
from zodbshootout.scheduling.shootout import (
    Shootout,
)
from zodbshootout.servers import ServerFailed
from zodbshootout.servers.usage import ServerUsage
from zodbshootout.workers.coordinator import TimeLimit
from zodbshootout.workers.measuring import Calibrations, Measure, Slice

BROKE = Failure("it broke", "Traceback")


class Event(NamedTuple):
    """A call to a worker, a fork server or the servers."""

    call: str
    benchmark: str
    contender: str
    detail: Any = None


@dataclass
class Site:
    """The event log that the fakes share, and the failures that they raise."""

    fails: Callable[[Event, int], Failure | None] = lambda event, nth: None
    """Returns the failure of an event that happens for the nth time, or ``None``."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Seconds of an iteration."""
    swings: Mapping[str, float] = field(default_factory=dict)
    """The share of its seconds by which every other run is slower, and the rest are faster."""
    rises: Mapping[str, float] = field(default_factory=dict)
    """The share of its seconds by which each run is slower than the one before."""
    served: set[str] = field(default_factory=set)
    used: ServerUsage = field(default_factory=ServerUsage)
    counts: Counts = field(default_factory=lambda: Counts({False: [Traffic(2, 30, 4)] * 3}))
    ended: Callable[[str], Failure | None] = lambda contender: None
    """Returns how a server of a contender has ended."""
    costs: Mapping[str, float] = field(default_factory=dict)
    """Seconds of each call besides those of its iterations."""
    now: float = 0.0
    events: list[Event] = field(default_factory=list)
    together: list[list[str]] = field(default_factory=list)
    """The contenders at work, each time that another one joined them."""
    server: int = 0
    """The number of the fork server that starts a worker, from 1 on."""
    started: list[tuple[str, str, int]] = field(default_factory=list)
    """The benchmark, the contender and the number of the fork server of each worker."""
    at_work: list[str] = field(default_factory=list)
    usable: Callable[[], bool] = lambda: True
    """Whether the running fork server can be used once more."""
    imported: set[tuple[str, ...]] = field(default_factory=set)
    """The modules that fork servers were asked to import, always together."""
    fork_servers: int = 0
    """The number of fork servers that are running."""
    may_write: dict[str, bool] = field(default_factory=dict)
    """Whether each prepared database may be written to regardless of its contents."""
    _calls: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """The number of calls so far, by their names, benchmarks and contenders."""

    def note(self, call: str, benchmark: str, name: str, detail: Any = None) -> None:
        nth = self._calls[call, benchmark, name]
        self._calls[call, benchmark, name] += 1
        event = Event(call, benchmark, name, detail)
        self.now += self.costs.get(call, 0.0)
        self.events.append(event)
        failure = self.fails(event, nth)
        if failure is not None:
            raise Failed(failure)

    def clock(self) -> float:
        self.now += 1e-6
        return self.now

    def did(self, *kinds: str) -> list[Event]:
        return [event for event in self.events if event.call in kinds]

    def measured(self) -> list[str]:
        """Return the benchmark and the contender of every finished run."""
        return [f"{event.benchmark} {event.contender}" for event in self.did("finish")]

    # The methods of a launcher and of its fork servers

    opening = TimeLimit(60.0)

    @contextmanager
    def fork_server(self, interpreter: Interpreter | None = None) -> Iterator[Any]:
        self.note("fork", "", interpreter.name if interpreter else "")
        self.fork_servers += 1
        number = len(self.did("fork"))
        try:
            yield FakeForkServer(self, number)
        finally:
            self.fork_servers -= 1
            assert self.fork_servers or self.at_work == []

    def is_usable(self) -> bool:
        return self.usable()

    def import_modules(self, modules: Sequence[str]) -> None:
        self.imported.add(tuple(modules))

    def start_import(self, modules: Sequence[str]) -> None:
        pass

    def pause(self) -> None:
        pass

    def go_on(self) -> None:
        pass

    def end_now(self) -> None:
        pass

    def inspect(self, storage: Storage) -> StorageInfo:
        self.note("inspect", "", storage.section)
        return StorageInfo()

    def prepare(self, preparation: Preparation) -> None:
        specification = preparation.specification
        self.may_write[specification.storage.section] = preparation.may_write
        self.note(
            "prepare",
            specification.benchmark,
            specification.storage.section,
            (preparation.zap, preparation.pack),
        )

    def count(self, specification: Specification) -> Counts:
        crew = specification.parameters.crew
        self.note("count", specification.benchmark, specification.storage.section, str(crew))
        return self.counts

    @contextmanager
    def measure(self, task: Measure) -> Iterator[FakeWorker]:
        variant = variant_of(json.loads(str(task.metadata.get("variant", "{}"))))
        name = title_of(str(task.metadata["contender"]), variant)
        self.started.append((task.specification.benchmark, name, self.server))
        self.at_work.append(name)
        self.together.append(list(self.at_work))
        try:
            yield FakeWorker(self, task, name)
        finally:
            self.note("end", task.specification.benchmark, name)
            self.at_work.remove(name)

    @contextmanager
    def operate(
        self, operation: Specification, calibrations: Calibrations
    ) -> Iterator[FakeOperator]:
        self.note("operator", operation.benchmark, "", (operation.storage, calibrations))
        yield FakeOperator(self, operation.benchmark)
        self.note("operator ends", operation.benchmark, "")

    # The methods of servers

    def halt_for(self, contender: str, *, by_force: bool) -> None:
        self.events.append(Event("kill" if by_force else "halt", "", contender))

    def resume_for(self, contender: str) -> None:
        self.events.append(Event("resume", "", contender))
        if self.fails(self.events[-1], len(self.did("resume")) - 1):
            raise ServerFailed("server main did not come up")

    def how_ended(self, contender: str) -> Failure | None:
        return self.ended(contender)

    def usage(self, contender: str) -> dict[str, ServerUsage]:
        """Return what is 3 s and 60 bytes more each time, half of it of each of two servers."""
        self.used += ServerUsage(1.5, 30)
        return {"pg": self.used, "cache": self.used}

    def memory(self, contender: str) -> dict[str, int]:
        return {"pg": 900, "cache": 100}


@dataclass
class FakeForkServer:
    """A site as one of several fork servers."""

    site: Site
    number: int

    def __getattr__(self, name: str) -> Any:
        return getattr(self.site, name)

    def measure(self, task: Measure) -> AbstractContextManager[FakeWorker]:
        self.site.server = self.number
        return self.site.measure(task)


NOTES = {"prepare_lap": "get ready"}
"""The events of calls that a worker has started, if they are named differently."""


@dataclass
class FakeWorker:
    site: Site
    task: Measure
    name: str
    is_set_up: bool = False
    has_tried: bool = False
    _failed: Failed | None = None
    _taken: list[Slice] = field(default_factory=list)

    def _note(self, call: str, detail: Any = None) -> None:
        self.site.note(call, self._benchmark, self.name, detail)

    @property
    def _benchmark(self) -> str:
        return self.task.specification.benchmark

    def _slice(self, loops: int) -> Slice:
        seconds = self.site.seconds.get(self.name, 0.01)
        self.site.now += seconds * loops
        return Slice(seconds, seconds * loops, done=loops)

    def start(self, name: str, *args: Any) -> None:
        if name == "prepare_lap":
            self._taken = []
        if name != "end_lap":
            self._note(NOTES.get(name, name), *args)

    def wait(self) -> list[Slice]:
        if not self.is_set_up:
            self._note("set up", self.task)
            self.is_set_up = True
            return []
        if self.task.tries_first and not self.has_tried:
            self.has_tried = True
            self._note("attempt", 1)
            return []
        if self._failed is not None:
            raise self._failed
        return self._taken

    def call(self, name: str, *args: Any) -> Any:
        self.start(name, *args[:1])
        return (0.0, 3.0) if name == "operation_times" else {}

    def attempt(self, loops: int) -> Slice:
        self._note("attempt", loops)
        return self._slice(loops)

    def begin(self, loops: int, values: int, warmups: int, expected: float = 0.0) -> None:
        self._note("begin", (loops, values, warmups))
        self.loops, self.values = loops, values

    def take(self, number: int) -> None:
        """Take a slice of the lap; a failure is raised by :meth:`wait`."""
        try:
            self._note("slice", number)
        except Failed as error:
            self._failed = error
            raise
        self._taken.append(self._slice(self.loops))

    def spend(self, seconds: float) -> None:
        pass

    def finish(self) -> pyperf.Benchmark:
        before = self.site._calls["done", self._benchmark, self.name]
        self._note("done")
        swing = self.site.swings.get(self.name, 0.0) * (-1) ** before
        swing += self.site.rises.get(self.name, 0.0) * before
        values = [self.site.seconds.get(self.name, 0.01) * (1 + swing)] * self.values
        metadata: dict[str, Any] = {"loops": self.loops}
        if self.site.rises:
            metadata |= {"round": str(before), "slices": " ".join(map(str, range(self.values)))}
        return run(*values, **metadata)

    def abandon(self) -> None:
        self._note("abandon")


@dataclass
class FakeOperator:
    """A worker that carries out an operation of three seconds."""

    site: Site
    operation: str

    def call(self, name: str, *args: Any) -> Any:
        self.site.note(name, self.operation, "", *args)
        return (0.0, 3.0) if name == "operation_times" else {}


def failing(
    call: str, contender: str, benchmark: str = "add", nth: int = 0, failure: Failure = BROKE
) -> Callable[[Event, int], Failure | None]:
    wanted = (call, benchmark, contender)
    return lambda event, n: failure if event[:3] == wanted and n == nth else None


def interrupting(call: str, contender: str, nth: int) -> Callable[[Event, int], None]:
    def interrupt(event: Event, n: int) -> None:
        if event[:3] == (call, "add", contender) and n == nth:
            raise KeyboardInterrupt

    return interrupt


@dataclass
class FakedShootout:
    """A shootout of fakes, with the events and results that it has recorded."""

    shootout: Shootout
    site: Site
    observer: Counting
    kept: list[list[int]]

    def run(self) -> None:
        with self.shootout.fork_servers:
            self.shootout.run()

    @property
    def results(self) -> list[CellResult]:
        return self.shootout.store.results

    def states(self) -> dict[str, str]:
        return {
            f"{result.cell.benchmark} {result.cell.contender}": result.state.value
            for result in self.results
        }

    def failure(self) -> CellResult:
        (outcome,) = [result for result in self.results if result.state is State.FAILED]
        return outcome


def shootout_of(
    plan: Plan,
    site: Site,
    begun: Sequence[CellResult] = (),
    cluster: Cluster | None = None,
    **how: Any,
) -> FakedShootout:
    of_plan = {name: how.pop(name) for name in ("baseline", "may_write", "zapped") if name in how}
    plan, options = replace(plan, **of_plan), RunOptions(**how)
    observer = Counting()
    kept: list[list[int]] = []

    def keep(results: Sequence[CellResult]) -> None:
        kept.append([len(result.runs) for result in results])

    servers: Any = site
    shootout = Shootout(
        Tasks(plan, options, cluster),
        ResultStore(plan, observer, keep, options.fail_fast, begun=begun, now=lambda: 0.0),
        fork_servers=ForkServers(servers),
        servers=servers,
        clock=site.clock,
        carry_out=carry_out,
        load=lambda: MachineLoad(all=site.now, busy=site.now, steal=0.0, ours=site.now),
    )
    return FakedShootout(shootout, site, observer, kept)


def run_shootout(plan: Plan, site: Site | None = None, **how: Any) -> FakedShootout:
    outcome = shootout_of(plan, site or Site(), **how)
    outcome.run()
    assert len(outcome.observer.settled) == len(plan.cells)
    assert outcome.site.fork_servers == 0
    return outcome


def far(name: str, rtt: float) -> Contender:
    """Return a contender with a server at a distance."""
    one = contender(name)
    storage = replace(one.storage, servers=(Endpoint("main", ("db", 1), rtt),))
    return replace(one, storage=storage)
