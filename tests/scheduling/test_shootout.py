"""The course of a shootout, with fake fork servers, workers and servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pyperf
import pytest

from tests.runs import Counting, contender, measured, plan_of, run
from zodbshootout.client.preparation import Preparation
from zodbshootout.contenders.contender import Contender
from zodbshootout.crews.cluster import Cluster
from zodbshootout.crews.traffic import Counts
from zodbshootout.errors import UserError
from zodbshootout.model.outcome import Failed, Failure, State
from zodbshootout.model.specification import (
    ClientKind,
    CrewShape,
    Distance,
    Interpreter,
    Specification,
)
from zodbshootout.model.storage_facts import Advice, Sharing
from zodbshootout.network.relays import Traffic
from zodbshootout.results.estimate import MIN_RUNS
from zodbshootout.results.result import CellResult
from zodbshootout.results.trend import FEWEST_RUNS
from zodbshootout.scheduling.orders import Tasks
from zodbshootout.scheduling.plan import Plan, RunOptions
from zodbshootout.scheduling.result_store import ResultStore
from zodbshootout.scheduling.shootout import (
    MAX_CLIENTS,
    Shootout,
)
from zodbshootout.servers import ServerFailed
from zodbshootout.servers.usage import ServerUsage
from zodbshootout.workers.coordinator import ForkServers
from zodbshootout.workers.measuring import Measure, Slice

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
    ended: Callable[[str], str | None] = lambda contender: None
    """Returns how a server of a contender has ended."""
    costs: Mapping[str, float] = field(default_factory=dict)
    """Seconds of each call besides those of its iterations."""
    now: float = 0.0
    events: list[Event] = field(default_factory=list)
    together: list[list[str]] = field(default_factory=list)
    """The contenders at work, each time that another one joined them."""
    at_work: list[str] = field(default_factory=list)
    usable: Callable[[], bool] = lambda: True
    """Whether the running fork server can be used once more."""
    imported: set[tuple[str, ...]] = field(default_factory=set)
    """The modules that fork servers were asked to import, always together."""
    fork_servers: int = 0
    """The number of fork servers that are running."""
    may_write: dict[str, bool] = field(default_factory=dict)
    """Whether each prepared database may be written to regardless of its contents."""

    def note(self, call: str, benchmark: str, name: str, detail: Any = None) -> None:
        nth = len([event for event in self.events if event[:3] == (call, benchmark, name)])
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

    @contextmanager
    def fork_server(self, interpreter: Interpreter | None) -> Iterator[Site]:
        self.note("fork", "", interpreter.name if interpreter else "")
        self.fork_servers += 1
        try:
            yield self
        finally:
            self.fork_servers -= 1
            assert self.at_work == []

    def is_usable(self) -> bool:
        return self.usable()

    def import_modules(self, modules: Sequence[str]) -> None:
        self.imported.add(tuple(modules))

    def prepare(self, task: Preparation) -> None:
        specification = task.specification
        self.may_write[specification.storage.section] = task.may_write
        self.note(
            "prepare", specification.benchmark, specification.storage.section, (task.zap, task.pack)
        )

    def count(self, specification: Specification) -> Counts:
        crew = specification.parameters.crew
        self.note("count", specification.benchmark, specification.storage.section, str(crew))
        return self.counts

    @contextmanager
    def measure(self, task: Measure) -> Iterator[FakeWorker]:
        name = str(task.metadata["contender"])
        self.at_work.append(name)
        self.together.append(list(self.at_work))
        try:
            yield FakeWorker(self, task, name)
        finally:
            self.note("end", task.specification.benchmark, name)
            self.at_work.remove(name)

    @contextmanager
    def operate(self, operation: Any, calibrations: Any) -> Iterator[FakeOperator]:
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

    def how_ended(self, contender: str) -> str | None:
        return self.ended(contender)

    def usage(self, contender: str) -> dict[str, ServerUsage]:
        """Return what is 3 s and 60 bytes more each time, half of it of each of two servers."""
        self.used += ServerUsage(1.5, 30)
        return {"pg": self.used, "cache": self.used}

    def memory(self, contender: str) -> dict[str, int]:
        return {"pg": 900, "cache": 100}


NOTES = {"prepare_slice": "get ready"}
"""The events of calls that a worker has started, if they are named differently."""


@dataclass
class FakeWorker:
    site: Site
    task: Measure
    name: str
    is_set_up: bool = False

    def _note(self, call: str, detail: Any = None) -> None:
        self.site.note(call, self._benchmark, self.name, detail)

    @property
    def _benchmark(self) -> str:
        return self.task.specification.benchmark

    def _slice(self, loops: int) -> Slice:
        seconds = self.site.seconds.get(self.name, 0.01)
        self.site.now += seconds * loops
        return Slice(seconds, seconds * loops, done=loops)

    def start(self, name: str, *args: int) -> None:
        self._note(NOTES.get(name, name), *args)

    def wait(self) -> None:
        if not self.is_set_up:
            self._note("set up", self.task)
            self.is_set_up = True

    def call(self, name: str, *args: Any) -> Any:
        self.start(name, *args[:1])
        return (0.0, 3.0) if name == "operation_times" else {}

    def attempt(self, loops: int) -> Slice:
        self._note("attempt", loops)
        return self._slice(loops)

    def begin(self, loops: int, values: int, warmups: int, expected: float = 0.0) -> None:
        self._note("begin", (loops, values, warmups))
        self.loops, self.values = loops, values

    def take_slice(self, number: int) -> Slice:
        self._note("slice", number)
        return self._slice(self.loops)

    def finish(self) -> pyperf.Benchmark:
        before = sum(
            event[:3] == ("done", self._benchmark, self.name) for event in self.site.events
        )
        self._note("done")
        swing = self.site.swings.get(self.name, 0.0) * (-1) ** before
        swing += self.site.rises.get(self.name, 0.0) * before
        values = [self.site.seconds.get(self.name, 0.01) * (1 + swing)] * self.values
        metadata: dict[str, Any] = {"loops": self.loops}
        if self.site.rises:
            metadata |= {"round": str(before), "slices": " ".join(map(str, range(self.values)))}
        if "variant_of" in self.task.metadata:
            metadata["variant_of"] = self.task.metadata["variant_of"]
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
    options = RunOptions(**how)
    observer = Counting()
    kept: list[list[int]] = []

    def keep(results: Sequence[CellResult]) -> None:
        kept.append([len(result.runs) for result in results])

    shootout = Shootout(
        Tasks(plan, options, cluster),
        ResultStore(plan, observer, keep, options.fail_fast, begun=begun, now=lambda: 0.0),
        fork_servers=ForkServers(cast("Any", site)),
        servers=cast("Any", site),
        clock=site.clock,
    )
    return FakedShootout(shootout, site, observer, kept)


def run_shootout(plan: Plan, site: Site | None = None, **how: Any) -> FakedShootout:
    outcome = shootout_of(plan, site or Site(), **how)
    outcome.run()
    assert len(outcome.observer.settled) == len(plan.cells)
    assert outcome.site.fork_servers == 0
    return outcome


def test_trap_13_contenders_of_a_row_are_set_up_together_and_take_slices_in_turn() -> None:
    outcome = run_shootout(plan_of("abc", processes=2, values=4))
    rounds: list[list[Event]] = []
    for event in outcome.site.did("fork", "set up", "slice", "end"):
        if event.call == "fork":
            rounds.append([])
        else:
            rounds[-1].append(event)
    assert len(rounds) == 2
    for first, events in zip((0, 4), rounds, strict=True):
        assert [event.call for event in events] == ["set up"] * 3 + ["slice"] * 12 + ["end"] * 3
        slices = [event for event in events if event.call == "slice"]
        assert [event.detail for event in slices] == [first + k for k in range(4) for _ in "abc"]
        for turn in range(4):
            assert {x.contender for x in slices[3 * turn : 3 * turn + 3]} == set("abc")


def test_the_order_of_slices_depends_only_on_seed_benchmark_and_run() -> None:
    def order(benchmark: str, seed: int, **site: Any) -> list[str]:
        outcome = run_shootout(plan_of("abcd", [benchmark], {"seed": seed}, values=5), Site(**site))
        slices = "".join(event.contender for event in outcome.site.did("slice"))
        return [slices[20 * number : 20 * number + 20] for number in range(3)]

    assert order("cold", 1) == order("cold", 1, seconds={"a": 9.0})
    assert order("cold", 1) != order("cold", 2)
    assert order("cold", 1) != order("hot", 1)
    assert len(set(order("cold", 1))) == 3


def test_each_run_of_a_cell_has_another_fork_server_that_imports_the_contenders_modules() -> None:
    contenders = [
        contender("a", modules=("one", "two.sub")),
        contender("b", modules=("two.sub",)),
    ]
    outcome = run_shootout(plan_of(contenders, ["tpc", "new_oid"], processes=2))
    assert outcome.site.imported == {("one", "two.sub")}
    assert len(outcome.site.did("fork")) == 4


def test_each_environment_has_a_fork_server_in_each_round_with_its_own_modules() -> None:
    there = Interpreter("there", "python", "modules")
    contenders = [
        contender("a", modules=("one",)),
        contender("b", modules=("two",), interpreter=there),
        contender("c", modules=("three",), interpreter=there),
    ]
    outcome = run_shootout(plan_of(contenders, ["cold"], processes=2))
    assert outcome.site.imported == {("one",), ("two", "three")}
    assert [event.contender for event in outcome.site.did("fork")] == ["", "there"] * 2


def test_clients_on_hosts_are_reached_from_the_commands_python() -> None:
    patched = Interpreter("", "python", "", gevent=True)
    contenders = [contender("a", interpreter=patched)]
    cluster = Cluster("tcp://a:1", [], here=True)
    outcome = run_shootout(plan_of(contenders, ["cold"], processes=1), cluster=cluster)
    assert [event.call for event in outcome.site.did("fork", "prepare", "set up")] == [
        "fork", "prepare", "fork", "set up",
    ]  # fmt: skip


def test_rows_that_take_turns_have_a_fork_server_in_common_for_each_round() -> None:
    outcome = run_shootout(
        plan_of("ab", ["add", "cold", "hot"], processes=3, precision=10.0, limit=1e6)
    )
    forks = [index for index, event in enumerate(outcome.site.events) if event.call == "fork"]
    assert len(forks) == 3
    of_first_round = outcome.site.events[: forks[1]]
    assert Counter(event.benchmark for event in of_first_round if event.call == "finish") == {
        "add": 2, "cold": 2, "hot": 2,
    }  # fmt: skip


def test_a_fork_server_that_cannot_be_used_any_more_is_replaced() -> None:
    site = Site(usable=lambda: len(site.did("fork")) > 1)
    run_shootout(plan_of("ab", ["tpc", "new_oid", "hot"], processes=1), site)
    assert len(site.did("fork")) == 2


def test_benchmarks_run_in_sequence_and_prepare_all_before_setting_up_any() -> None:
    outcome = run_shootout(plan_of("ab", ["add", "cold"], processes=1))
    assert [event[:3] for event in outcome.site.did("prepare", "set up", "finish")] == [
        (call, benchmark, name)
        for benchmark in ("add", "cold")
        for call in ("prepare", "set up", "finish")
        for name in "ab"
    ]


def test_progress_names_the_contenders_that_are_at_work() -> None:
    outcome = run_shootout(plan_of("ab", processes=1))
    assert outcome.observer.stages == [
        ("preparing the database", "a"),
        ("preparing the database", "b"),
        ("setting up", "ab"),
        ("run 1 of 1", "ab"),
    ]


def test_trap_14_every_run_has_the_calibrated_loops_and_calibration_is_no_run() -> None:
    site = Site(seconds={"a": 0.011, "b": 0.02, "slow": 0.9})
    outcome = run_shootout(plan_of(["a", "b", "slow"], loops=0, values=2), site)
    begun = [(event.contender, event.detail) for event in site.did("begin")]
    assert begun == [("a", (16, 2, 0)), ("b", (8, 2, 0)), ("slow", (1, 2, 0))] * 3
    for result in outcome.results:
        assert len(result.runs) == 3
        assert len(result.benchmark().get_values()) == 6


def test_loops_are_chosen_once_for_all_runs() -> None:
    site = Site(seconds={"a": 0.011})
    run_shootout(plan_of("a", loops=0), site)
    last = [event.call for event in site.events].index("begin")
    later = [event.detail for event in site.events[last:] if event.call == "attempt"]
    assert later == [1, 1]


POINTS = [
    ("prepare", 0),
    *((call, nth) for call in ("attempt", "begin", "finish") for nth in range(3)),
    *(("slice", nth) for nth in range(6)),
]


@pytest.mark.parametrize("point", POINTS)
def test_trap_15_a_cell_that_fails_at_any_point_fails_alone(point: tuple[str, int]) -> None:
    call, nth = point
    site = Site(fails=failing(call, "b", nth=nth))
    outcome = run_shootout(plan_of("abc", ["add", "cold"]), site)
    assert outcome.states() == {
        "add a": "measured",
        "add b": "failed",
        "add c": "measured",
        "cold a": "measured",
        "cold b": "measured",
        "cold c": "measured",
    }
    failed = outcome.failure()
    assert (failed.reason, failed.detail) == ("it broke", "Traceback")
    assert len(failed.runs) == len(outcome.site.did("done")) - 15
    for result in outcome.results:
        if result is not failed:
            assert len(result.runs) == 3
            assert result.reason == ""
    abandoned = [(event.benchmark, event.contender) for event in site.did("abandon")]
    assert abandoned == ([] if call == "prepare" else [("add", "b")])


CRASH = Failure("client 0 was killed by SIGSEGV", crashed=True)


@pytest.mark.parametrize("point", POINTS)
def test_a_run_in_which_a_process_crashes_is_repeated(point: tuple[str, int]) -> None:
    call, nth = point
    site = Site(fails=failing(call, "b", nth=nth, failure=CRASH))
    outcome = run_shootout(plan_of("abc", ["add", "cold"]), site, retries=1)
    assert set(outcome.states().values()) == {"measured"}
    assert {len(result.runs) for result in outcome.results} == {3}
    reasons = {result.cell.contender: result.reason for result in outcome.results if result.reason}
    assert reasons == {"b": f"1 run repeated after a crash: {CRASH.cause}"}


def test_a_cell_that_keeps_crashing_fails_but_keeps_its_earlier_runs() -> None:
    def second_run(event: Event, nth: int) -> Failure | None:
        return CRASH if event[:3] == ("finish", "add", "b") and nth >= 1 else None

    outcome = run_shootout(plan_of("ab"), Site(fails=second_run), retries=2)
    assert outcome.states() == {"add a": "measured", "add b": "failed"}
    assert (outcome.failure().reason, len(outcome.failure().runs)) == (CRASH.cause, 1)
    assert outcome.failure().crashes == (CRASH.cause,) * 2


def test_a_fork_server_that_crashes_is_replaced() -> None:
    outcome = run_shootout(plan_of("ab"), Site(fails=failing("fork", "", "", 1, CRASH)), retries=1)
    assert set(outcome.states().values()) == {"measured"}
    assert {len(result.runs) for result in outcome.results} == {3}


def test_a_contender_that_cannot_be_set_up_with_others_is_tried_alone() -> None:
    def busy(event: Event, nth: int) -> Failure | None:
        with_others = event.call == "set up" and event.contender == "b" and len(site.at_work) > 1
        return Failure("the file is locked") if with_others else None

    site = Site(fails=busy)
    outcome = run_shootout(plan_of("abc", processes=2), site)
    assert set(outcome.states().values()) == {"measured"}
    assert site.measured() == ["add a", "add c", "add b"] * 2
    assert site.together == [["a"], ["a", "b"], ["a", "b", "c"], ["b"]] * 2
    loops = {event.detail[0] for event in site.did("begin")}
    assert len(loops) == 1


def test_a_contender_that_cannot_be_set_up_alone_either_fails() -> None:
    def broken(event: Event, nth: int) -> Failure | None:
        broken = event.call == "set up" and event.contender == "b"
        return Failure(f"try {nth}") if broken else None

    outcome = run_shootout(plan_of("ab"), Site(fails=broken))
    assert outcome.states() == {"add a": "measured", "add b": "failed"}
    assert outcome.failure().reason == "try 1"
    assert len([event for event in outcome.site.did("set up") if event.contender == "b"]) == 2


def test_a_lone_contender_that_cannot_be_set_up_is_tried_once() -> None:
    outcome = run_shootout(plan_of("a"), Site(fails=failing("set up", "a")))
    assert outcome.states() == {"add a": "failed"}
    assert len(outcome.site.did("set up")) == 1


def test_an_unsupported_cell_is_not_tried_again() -> None:
    refusal = Failure("it has none", state=State.UNSUPPORTED)
    outcome = run_shootout(plan_of("ab"), Site(fails=failing("set up", "b", failure=refusal)))
    assert outcome.states() == {"add a": "measured", "add b": "not supported"}
    assert len([event for event in outcome.site.did("set up") if event.contender == "b"]) == 1


def test_a_cell_that_is_refused_beforehand_is_never_begun() -> None:
    outcome = run_shootout(plan_of(["memory", "a"], ["warm"]))
    assert outcome.states() == {"warm memory": "not supported", "warm a": "measured"}
    assert {event.contender for event in outcome.site.did("prepare", "set up")} == {"a"}


def test_contenders_that_could_not_be_opened_fail_without_being_tried() -> None:
    unavailable = {"b": Failure("no server", "Traceback")}
    outcome = run_shootout(replace(plan_of("ab"), unavailable=unavailable))
    assert outcome.states() == {"add a": "measured", "add b": "failed"}
    assert (outcome.failure().reason, outcome.failure().detail) == ("no server", "Traceback")
    assert {event.contender for event in outcome.site.did("prepare", "set up")} == {"a"}


def test_a_resumed_shootout_makes_only_the_missing_runs() -> None:
    plan = plan_of("abc", ["add", "cold"])
    begun = [
        replace(measured(cell, *[[0.1, 0.1]] * runs), cell=cell, state=state)
        for cell, runs, state in zip(
            plan.cells,
            (3, 1, 0, 3, 3, 3),
            (State.MEASURED, State.FAILED, State.FAILED, *[State.MEASURED] * 3),
            strict=True,
        )
    ]
    outcome = run_shootout(plan, begun=begun)
    assert set(outcome.states().values()) == {"measured"}
    assert {len(result.runs) for result in outcome.results} == {3}
    assert Counter(outcome.site.measured()) == {"add b": 2, "add c": 3}


@pytest.mark.parametrize("how", [{"may_write": ["a"]}, {"zapped": {"a"}}, {}])
def test_only_expendable_databases_are_written_to_regardless_of_their_contents(
    how: dict[str, Any],
) -> None:
    outcome = run_shootout(plan_of("a", ["add", "tpc", "ex_commit"]), **how)
    assert outcome.site.may_write == {"a": bool(how)}
    # ex_commit writes nothing, so no database is prepared for it.
    assert [event.benchmark for event in outcome.site.did("prepare")][-1] == "tpc"


def test_a_fork_server_that_cannot_be_started_fails_only_the_cell_that_needs_it() -> None:
    site = Site(fails=lambda event, nth: BROKE if event.call == "fork" and nth == 0 else None)
    outcome = run_shootout(plan_of("ab", ["add", "cold"]), site)
    assert outcome.states() == {
        "add a": "failed", "add b": "measured", "cold a": "measured", "cold b": "measured",
    }  # fmt: skip


def test_an_environment_that_cannot_be_started_fails_only_its_own_cells() -> None:
    there = Interpreter("there", "python", "modules")
    site = Site(fails=lambda event, _: BROKE if event[:3] == ("fork", "", "there") else None)
    contenders = [contender("a"), contender("b", interpreter=there)]
    outcome = run_shootout(plan_of(contenders, ["add", "tpc"]), site)
    assert outcome.states() == {
        "add a": "measured", "add b": "failed", "tpc a": "measured", "tpc b": "failed",
    }  # fmt: skip


def test_a_row_whose_cells_have_all_failed_starts_no_more_fork_servers() -> None:
    site = Site(fails=lambda event, nth: BROKE if event.call == "attempt" else None)
    outcome = run_shootout(plan_of("ab"), site)
    assert set(outcome.states().values()) == {"failed"}
    assert len(site.did("fork")) == 1


def test_fail_fast_stops_at_the_first_failure_and_leaves_no_worker() -> None:
    site = Site(fails=failing("slice", "b", nth=1))
    outcome = shootout_of(plan_of("ab", ["add", "cold"]), site, fail_fast=True)
    with pytest.raises(UserError, match="--fail-fast"):
        outcome.run()
    assert list(outcome.states().values()) == ["not run", "failed", "not run", "not run"]
    assert (site.at_work, site.fork_servers) == ([], 0)


def test_fail_fast_stops_at_a_contender_that_could_not_be_opened() -> None:
    plan = replace(plan_of("ab"), unavailable={"b": BROKE})
    outcome = shootout_of(plan, Site(), fail_fast=True)
    with pytest.raises(UserError, match="--fail-fast"):
        outcome.run()
    assert outcome.site.events == []
    assert outcome.states() == {"add a": "not run", "add b": "failed"}


def test_fail_fast_does_not_stop_at_an_unsupported_cell() -> None:
    outcome = run_shootout(plan_of(["memory", "a"], ["warm"]), fail_fast=True)
    assert outcome.states() == {"warm memory": "not supported", "warm a": "measured"}


def test_every_run_is_kept_as_soon_as_it_is_made() -> None:
    outcome = run_shootout(plan_of("ab", processes=2))
    assert outcome.kept == [[0, 0], [1, 0], [1, 1], [2, 1], [2, 2]]


def test_an_interrupt_keeps_the_finished_runs_and_leaves_no_worker() -> None:
    site = Site(fails=interrupting("slice", "b", 3))
    outcome = shootout_of(plan_of("ab", ["add", "cold"], values=2), site)
    with pytest.raises(KeyboardInterrupt):
        outcome.run()
    assert outcome.states() == {
        "add a": "measured",
        "add b": "measured",
        "cold a": "not run",
        "cold b": "not run",
    }
    assert [result.reason for result in outcome.results][:2] == ["incomplete: 1 of 3 runs"] * 2
    assert (outcome.site.at_work, outcome.site.fork_servers) == ([], 0)


def test_contenders_of_one_zapped_database_are_never_set_up_at_the_same_time() -> None:
    twins = [contender("a", "/var/x.fs"), contender("b"), contender("again", "/var/x.fs")]
    plan = plan_of(twins, ["add", "cold"], processes=2)
    outcome = run_shootout(plan, zapped={"a", "b", "again"})
    assert outcome.site.together[:3] == [["a"], ["a", "b"], ["again"]]
    # In each run the database is zapped right before the crew that finds it empty is set up.
    of_add = [event for event in outcome.site.did("prepare", "set up") if event.benchmark == "add"]
    assert [(event.call, event.contender) for event in of_add] == [
        ("prepare", "a"), ("prepare", "b"), ("set up", "a"), ("set up", "b"),
        ("prepare", "again"), ("set up", "again"),
    ] * 2  # fmt: skip
    assert all(event.detail == (True, False) for event in of_add if event.call == "prepare")
    # Benchmarks that only read may run at the same time.
    assert outcome.site.together[-1] == ["a", "b", "again"]


def test_contenders_of_one_database_take_turns_if_it_is_not_zapped() -> None:
    twins = [contender("a", "/var/x.fs"), contender("again", "/var/x.fs")]
    assert run_shootout(plan_of(twins, processes=1)).site.together == [["a"], ["a", "again"]]


def test_a_database_is_left_to_one_contender_while_that_packs_it() -> None:
    twins = [contender("a", "/var/x.fs"), contender("b"), contender("again", "/var/x.fs")]
    plan = plan_of(twins, ["pack"], processes=1)
    assert run_shootout(plan).site.together == [["a"], ["a", "b"], ["again"]]


def test_contenders_are_measured_in_groups_if_they_have_too_many_clients() -> None:
    size = MAX_CLIENTS // 2
    outcome = run_shootout(plan_of("abcde", ["tpc"], concurrency=[size], processes=1))
    assert [group for group in outcome.site.together if len(group) == 2] == [["a", "b"], ["c", "d"]]
    assert outcome.site.together[-1] == ["e"]
    assert set(outcome.states().values()) == {"measured"}


def test_a_crew_larger_than_the_maximum_is_measured_by_itself() -> None:
    outcome = run_shootout(plan_of("ab", ["tpc"], concurrency=[MAX_CLIENTS + 1], processes=1))
    assert outcome.site.together == [["a"], ["b"]]


ENDED = "server pg was killed by SIGKILL: out  of memory"


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (Failure("connection lost"), f"connection lost; {ENDED}"),
        (
            Failure("server pg ended at once: out of memory"),
            "server pg ended at once: out of memory",
        ),
        (Failure("has no prefetch", state=State.UNSUPPORTED), "has no prefetch"),
    ],
)
def test_a_failure_reports_at_most_once_how_a_server_ended(failure: Failure, reason: str) -> None:
    site = Site(fails=failing("slice", "a", failure=failure))
    site.ended = lambda contender: ENDED if site.did("slice") else None
    (result,) = run_shootout(plan_of("a"), site).results
    assert (result.state, result.reason) == (failure.state, reason)


def test_a_contender_whose_server_ends_fails_and_its_later_cells_are_not_begun() -> None:
    site = Site()
    gone = "server mc was killed by SIGKILL: it logged nothing"
    site.ended = lambda name: gone if name == "a" and "add a" in site.measured()[1:] else None
    outcome = run_shootout(plan_of("ab", ["add", "warm"]), site)
    assert outcome.states() == {
        "add a": "failed",
        "add b": "measured",
        "warm a": "failed",
        "warm b": "measured",
    }
    assert {result.reason for result in outcome.results if result.state is State.FAILED} == {gone}
    assert site.measured().count("add a") == 2
    assert {event.benchmark for event in site.events if event.contender == "a"} == {"add"}


def test_the_reason_of_a_failure_ends_with_the_matching_advice() -> None:
    advised = replace(contender("a"), advice=(Advice("broke$", "write something else"),))
    outcome = run_shootout(plan_of([advised]), Site(fails=failing("begin", "a")))
    assert outcome.failure().reason == "it broke; write something else"


def test_nothing_is_advised_if_a_server_has_ended() -> None:
    gone = "server mc was killed by SIGKILL: it logged nothing"
    advised = replace(contender("a"), advice=(Advice("broke", "write something else"),))
    site = Site(fails=failing("begin", "a"))
    site.ended = lambda _: gone if site.did("begin") else None
    outcome = run_shootout(plan_of([advised], ["add"]), site)
    assert outcome.failure().reason == f"it broke; {gone}"


def test_every_run_is_profiled_under_the_name_of_its_cell(tmp_path: Path) -> None:
    plan = plan_of("a", ["add"], processes=2, concurrency=[1, 2])
    outcome = run_shootout(plan, profiles=tmp_path)
    profiles = [event.detail.profile for event in outcome.site.did("set up")]
    # No Path: one that Python 3.13 has pickled cannot be loaded by an older Python.
    assert profiles == [str(tmp_path / "a-add-c1")] * 2 + [str(tmp_path / "a-add-c2")] * 2


def test_a_database_is_packed_only_before_its_first_benchmark() -> None:
    outcome = run_shootout(plan_of("ab", ["tpc", "hot"]), pack=True)
    packed = [(event.benchmark, event.contender, event.detail[1]) for event in
              outcome.site.did("prepare")]  # fmt: skip
    assert packed == [
        ("tpc", "a", True), ("tpc", "b", True), ("hot", "a", False), ("hot", "b", False),
    ]  # fmt: skip


def test_contenders_of_one_database_have_separate_objects() -> None:
    twins = [contender("a", "/var/x.fs"), contender("again", "/var/x.fs")]
    outcome = run_shootout(plan_of(twins, ["update"], processes=1))
    owners = [event.detail.specification.parameters.owner for event in outcome.site.did("set up")]
    assert owners == ["a", "again"]


def precise(names: Sequence[str | Contender], **effort: Any) -> Plan:
    return plan_of(names, processes=3, precision=0.05, **{"cell_limit": 1e6, **effort})


def test_a_row_that_is_precise_enough_has_the_fewest_runs() -> None:
    outcome = run_shootout(precise("ab"))
    assert [len(result.runs) for result in outcome.results] == [3, 3]
    assert all(result.half_width == 0 for result in outcome.results)


def test_a_row_continues_until_every_contender_is_precise_enough() -> None:
    outcome = run_shootout(precise("ab"), Site(swings={"b": 0.1}))
    runs = {len(result.runs) for result in outcome.results}
    # Runs that are alternately 10 % slower and 10 % faster take 19 runs to be known within 5 %.
    assert runs == {19}
    widths = [result.half_width for result in outcome.results]
    assert widths == pytest.approx([0, 0.05], abs=0.002)


@pytest.mark.parametrize("names", ["ab", "b"])
def test_a_contender_that_takes_longer_with_time_does_not_prolong_its_row(names: str) -> None:
    plan = plan_of(names, processes=3, precision=0.2, cell_limit=1e6)
    outcome = run_shootout(plan, Site(rises={"b": 0.2}))
    assert {len(result.runs) for result in outcome.results} == {FEWEST_RUNS}
    # A rise that may be chance does.
    swinging = Site(rises={"b": 0.1}, swings={"b": 0.3})
    assert len(run_shootout(plan, swinging).results[-1].runs) > FEWEST_RUNS


def test_a_ratio_must_be_as_precise_as_the_figures() -> None:
    # Both swing by the same amount, in opposite directions.
    outcome = run_shootout(precise("ab"), Site(swings={"a": 0.08, "b": -0.08}))
    alone = run_shootout(precise("a"), Site(swings={"a": 0.08}))
    assert len(outcome.results[0].runs) > 1.5 * len(alone.results[0].runs)


ALL = ["add", "update", "warm", "cold", "prefetch_cold", "hot", "steamin"]


@pytest.mark.parametrize("counting", [0.1, 0.7, 1.2])
@pytest.mark.parametrize("set_up", [0.05, 0.3])
def test_every_cell_has_three_runs_within_the_limit_also_if_counting_trips_takes_long(
    counting: float, set_up: float
) -> None:
    site = Site(
        costs={"count": counting, "prepare": 0.3, "set up": set_up, "size_after_slice": 0.01},
        seconds={"a": 0.0004, "b": 0.001, "c": 0.0001},
        swings=dict.fromkeys("abc", 0.5),
    )
    contenders: list[str | Contender] = [far("a", 0.0), far("b", 0.0), "c"]
    effort: dict[str, Any] = {
        "precision": 0.001, "limit": 60.0, "min_time": 0.05, "run_time": 1.8,
    }  # fmt: skip
    results = run_shootout(plan_of(contenders, ALL, values=0, loops=0, **effort), site).results
    runs, seconds = min(len(result.runs) for result in results), site.now
    assert runs >= 3
    # Nor is much of the time left over.
    assert 50.0 <= seconds <= 61.0


def test_a_cell_without_time_left_is_not_run_and_says_why() -> None:
    outcome = run_shootout(precise("ab", limit=1e-9), Site())
    reason = "no time was left of the 1.67e-11 minutes (--at-most)"
    assert [(result.state, result.reason) for result in outcome.results] == [
        (State.NOT_RUN, reason)
    ] * 2
    assert outcome.site.events == []


@pytest.mark.parametrize("runs", [(1, 6), (2, 6), (6, 1)])
def test_a_resumed_run_with_a_precision_evens_out_the_runs_of_its_cells(
    runs: tuple[int, int],
) -> None:
    plan = precise("ab")
    begun = [
        measured(result.cell, *([result.mean * (1 + 0.001 * at)] for at in range(number)))
        for result, number in zip(run_shootout(plan).results, runs, strict=True)
    ]
    outcome = run_shootout(plan, begun=begun)
    assert [len(result.runs) for result in outcome.results] == [6, 6]


def test_a_failed_contender_does_not_prolong_its_row() -> None:
    outcome = run_shootout(precise("ab"), Site(fails=failing("slice", "b"), swings={"b": 0.5}))
    assert [(result.state, len(result.runs)) for result in outcome.results] == [
        (State.MEASURED, 3),
        (State.FAILED, 0),
    ]


def test_all_runs_that_zap_are_made_before_other_benchmarks_fill_the_database() -> None:
    plan = plan_of("a", ["add", "update", "cold"], processes=2, precision=0.05, cell_limit=1e6)
    outcome = run_shootout(plan, zapped=["a"])
    assert outcome.site.measured() == ["add a"] * 3 + ["update a", "cold a"] * 3


def test_a_larger_database_is_measured_after_all_runs_of_a_smaller_one() -> None:
    small = plan_of("a", ["update", "hot"], processes=2)
    large = plan_of("a", ["add", "cold"], {"min_objects": 5}, processes=2)
    outcome = run_shootout(replace(small, rows=[*large.rows, *small.rows]))
    assert outcome.site.measured() == [
        *["update a"] * 2, *["hot a"] * 2, *["add a"] * 2, *["cold a"] * 2
    ]  # fmt: skip


def test_ratios_are_relative_to_the_baseline() -> None:
    # The first and the last contender swing against each other, and the second does not swing.
    swings = {"a": 0.08, "b": 0.0, "c": -0.08}
    to_first = run_shootout(precise("abc"), Site(swings=swings))
    to_second = run_shootout(precise("abc"), Site(swings=swings), baseline="b")
    assert len(to_second.results[0].runs) < len(to_first.results[0].runs)


def test_a_variant_must_be_precise_relative_to_its_original() -> None:
    # The variant and its original swing against each other, the first contender does not swing.
    variant = replace(contender("b@new"), variant_of="b")
    swings = {"b": 0.08, "b@new": -0.08}
    variants = run_shootout(precise(["a", "b", variant]), Site(swings=swings))
    strangers = run_shootout(precise(["a", "b", "b@new"]), Site(swings=swings))
    only_two = run_shootout(precise(["b", "b@new"]), Site(swings=swings))
    named = run_shootout(precise(["a", "b", variant]), Site(swings=swings), baseline="a")
    runs = [len(outcome.results[0].runs) for outcome in (variants, only_two, strangers, named)]
    assert runs[0] == runs[1] > 1.5 * runs[2]
    assert runs[2] == runs[3]


def test_the_costs_of_servers_are_those_of_the_slices_of_their_contender() -> None:
    site = Site(served={"a"})
    outcome = run_shootout(plan_of("ab", ["add"], processes=1, loops=2, values=3), site)
    costs = {
        result.cell.contender: {
            key: value for key, value in result.metadata.items() if key.startswith("server_")
        }
        for result in outcome.results
    }
    assert costs["a"]["server_cpu_s"] == "1.5 1.5 1.5"
    assert costs["a"]["server_written_bytes"] == "30 30 30"
    assert costs["a"]["server_memory_bytes"] == 1000
    assert costs["a"]["server_cpu_s_pg"] == "0.75 0.75 0.75"
    assert costs["a"]["server_written_bytes_cache"] == "15 15 15"
    assert costs["a"]["server_memory_bytes_cache"] == 100
    assert "server_cpu_s" not in costs["b"]


def far(name: str, rtt: float) -> Contender:
    """Return a contender with a server at a distance."""
    one = contender(name)
    storage = replace(one.storage, distances=(Distance(rtt),))
    return replace(one, storage=storage, has_servers=True)


@pytest.mark.parametrize("cluster", [None, Cluster("", [], here=True)])
def test_traffic_is_counted_once_for_each_cell_with_a_server_before_it_is_set_up(
    cluster: Cluster | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zodbshootout.scheduling.shootout.calibrations_for", lambda *_: {})
    outcome = run_shootout(plan_of([far("a", 0.0), "b"], ["add", "cold"]), cluster=cluster)
    calls = [event[:3] for event in outcome.site.did("count", "set up") if event.contender == "a"]
    assert calls[:2] == [("count", "add", "a"), ("set up", "add", "a")]
    assert {event[1:3] for event in outcome.site.did("count")} == {("add", "a"), ("cold", "a")}
    assert len(outcome.site.did("count")) == 2
    trips = {result.cell: result.metadata.get("trips") for result in outcome.results}
    assert {(cell.contender, text) for cell, text in trips.items()} == {("a", "2 2 2"), ("b", None)}


def test_servers_that_are_not_at_a_distance_are_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zodbshootout.scheduling.shootout.calibrations_for", lambda *_: {})
    site = Site(counts=Counts({False: [Traffic(2, 30, 4)]}, [("cache", 11211), "/run/socket"]))
    outcome = shootout_of(plan_of([far("a", 0.002), far("b", 0.0)], ["add", "cold"]), site)
    lines: list[str] = []
    monkeypatch.setattr(outcome.observer, "relay", lines.append)
    outcome.run()
    others = "cache:11211 and /run/socket"
    assert lines == [f"a is also connected with {others}, where no round-trip time is added"]
    for result in outcome.results:
        assert "trips" not in result.metadata
        assert result.metadata["traffic_not_counted"] == f"it is also connected with {others}"


def test_a_database_is_asked_for_its_size_around_slices_that_write_and_by_no_server_used() -> None:
    site = Site(served={"a"})
    outcome = run_shootout(plan_of("a", ["add", "cold"], processes=1, loops=2, values=1), site)
    asked = [event.benchmark for event in site.did("size_before_slice", "size_after_slice")]
    assert asked == ["add", "add"]
    calls = [event.call for event in site.events if event.benchmark == "add"]
    first = calls.index("size_before_slice")
    assert calls[first : first + 3] == ["size_before_slice", "slice", "size_after_slice"]
    assert len(outcome.results) == 2


def run_for(duration: float, site: Site) -> FakedShootout:
    """Make runs of a second for some time."""
    site.costs = {"done": 0.5, **site.costs}
    return run_shootout(plan_of("ab", processes=1, values=2, duration=duration), site, retries=3)


def test_the_time_begins_with_the_first_run() -> None:
    site = Site(costs={"set up": 5.0, "attempt": 2.0})
    run_for(20.0, site)
    assert site.now == pytest.approx(10.0 + 4.0 + 20.0, abs=1.0)


def test_runs_for_some_time_share_their_workers_and_pair_up() -> None:
    outcome = run_for(20.0, Site())
    runs = [len(result.runs) for result in outcome.results]
    assert runs[0] == runs[1] > 4
    assert len(outcome.site.did("set up")) == len(outcome.site.did("end")) == 2
    slices = [event.detail for event in outcome.site.did("slice")]
    assert slices == [number for number in range(2 * runs[0]) for _ in "ab"]
    a, b = ([run.get_metadata()["round"] for run in result.runs] for result in outcome.results)
    assert a == b
    assert len(set(a)) == runs[0]
    assert [event.detail for event in outcome.site.did("finish")] == (
        [False] * (2 * runs[0] - 2) + [True] * 2
    )
    assert len(outcome.site.did("attempt")) == 2


def test_a_crash_ends_a_cell_that_is_measured_for_some_time_with_what_it_has() -> None:
    crash = replace(BROKE, crashed=True)
    site = Site(fails=failing("slice", "a", nth=5, failure=crash))
    a, b = run_for(20.0, site).results
    assert (a.state, len(a.runs), a.reason) == (State.FAILED, 2, "it broke")
    assert (b.state, len(b.runs) > 4) == (State.MEASURED, True)
    assert len(site.did("set up")) == 2


def test_an_interrupt_after_some_runs_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(fails=interrupting("slice", "b", 6))
    outcome = shootout_of(plan_of("ab", processes=1, values=2, duration=60.0), site)
    with pytest.raises(KeyboardInterrupt):
        outcome.run()
    assert [len(result.runs) for result in outcome.results] == [3, 3]


def test_the_estimate_counts_the_time_for_each_row() -> None:
    plan = plan_of("ab", ["add", "update"], processes=1, duration=90.0)
    assert plan.estimated_seconds() == 180.0


@pytest.mark.parametrize(("seconds", "runs"), [(15.0, 20), (1800.0, 40), (7200.0, 120)])
def test_runs_for_some_time_take_a_second_or_so_to_a_minute(seconds: float, runs: int) -> None:
    effort = plan_of("ab", processes=1, duration=seconds).effort.lasting(2)
    assert seconds / (2 * effort.run_time) == pytest.approx(runs)
    assert 0.05 <= effort.min_time <= 1.0


def test_traffic_is_counted_once_for_crews_of_all_sizes() -> None:
    site, served = Site(), far("a", 0.0)
    plan = plan_of([served, "b"], ["add"], processes=2, concurrency=[1, 4])
    outcome = run_shootout(plan, site)
    assert len(site.did("count")) == 1
    trips = {
        (result.cell.contender, result.cell.parameters.crew.size): result.metadata.get("trips")
        for result in outcome.results
    }
    assert trips == {("a", 1): "2 2 2", ("a", 4): "2 2 2", ("b", 1): None, ("b", 4): None}


DURING = {"rate": 20.0, "during": "pack", "garbage": 0.3, "revisions": 3}


def states_of_phases(outcome: FakedShootout) -> dict[str, list[str]]:
    states: dict[str, list[str]] = {}
    for result in outcome.results:
        states.setdefault(result.cell.contender, []).append(result.state.value)
    return states


def test_a_contender_after_the_other_is_measured_before_during_and_after_an_operation() -> None:
    outcome = run_shootout(plan_of("ab", shaped=DURING, processes=2))
    assert [result.cell.parameters.during for result in outcome.results] == [
        "before pack", "during pack", "after pack",
    ] * 2  # fmt: skip
    assert [len(result.runs) for result in outcome.results] == [2] * 6
    assert outcome.site.together == [["a"], ["b"]] * 2
    during = outcome.results[1].runs[0].get_metadata()
    assert (during["operation_s"], during["during"]) == (3.0, "during pack")
    operations = [event.detail for event in outcome.site.did("prepare_operation")]
    assert [(one.benchmark, one.storage.section) for one in operations] == [
        ("pack", "a"), ("pack", "b"),
    ] * 2  # fmt: skip
    assert operations[0].parameters.owner == "a"
    opened = [event.detail for event in outcome.site.did("operator")]
    assert [(storage.section, calibrations) for storage, calibrations in opened] == [
        ("a", {}), ("b", {}),
    ] * 2  # fmt: skip
    rounds = [run.get_metadata()["round"] for run in outcome.results[0].runs]
    assert rounds == [run.get_metadata()["round"] for run in outcome.results[4].runs]
    assert len(set(rounds)) == 2


def test_the_cells_of_a_contender_fail_together_if_its_operation_fails() -> None:
    def break_once(event: Event, nth: int) -> Failure | None:
        return BROKE if event.call == "operation_times" and nth == 0 else None

    outcome = run_shootout(plan_of("ab", shaped=DURING, processes=2), Site(break_once))
    assert states_of_phases(outcome) == {"a": ["failed"] * 3, "b": ["measured"] * 3}


def test_the_run_of_an_operation_whose_process_has_crashed_is_repeated() -> None:
    crash = replace(BROKE, crashed=True)

    def crash_once(event: Event, nth: int) -> Failure | None:
        return crash if event.call == "start_operation" and nth == 0 else None

    outcome = run_shootout(plan_of("a", shaped=DURING, processes=2), Site(crash_once), retries=1)
    assert states_of_phases(outcome) == {"a": ["measured"] * 3}
    assert [len(result.runs) for result in outcome.results] == [2] * 3
    assert [result.crashes for result in outcome.results] == [("it broke",)] * 3


def test_a_client_that_fails_during_an_operation_fails_all_phases() -> None:
    site = Site(failing("slice", "a", nth=6))
    outcome = run_shootout(plan_of("a", shaped=DURING, processes=1), site)
    assert states_of_phases(outcome) == {"a": ["failed"] * 3}
    assert not any(result.runs for result in outcome.results)


def test_a_database_that_cannot_be_prepared_fails_all_phases() -> None:
    site = Site(failing("prepare", "a"))
    outcome = run_shootout(plan_of("a", shaped=DURING, processes=1), site)
    assert states_of_phases(outcome) == {"a": ["failed"] * 3}


def test_a_storage_that_one_db_at_a_time_can_open_is_packed_by_its_clients_process() -> None:
    alone = contender("a", sharing=Sharing.EXCLUSIVE)
    plan = plan_of([alone], shaped=DURING, processes=1)
    outcome = run_shootout(plan)
    assert states_of_phases(outcome) == {"a": ["not supported"] * 3}
    shared = CrewShape(2, ClientKind.THREAD, shared=True)
    plan = plan_of([alone], shaped={**DURING, "crew": shared}, processes=1)
    outcome = run_shootout(plan)
    assert states_of_phases(outcome) == {"a": ["measured"] * 3}
    assert outcome.site.did("operator") == []
    assert [event.contender for event in outcome.site.did("start_operation")] == ["a"]


def restarted(how: str, site: Site | None = None) -> FakedShootout:
    server = SimpleNamespace(kind="zeoserver")
    served = replace(contender("a"), servers={"main": cast("Any", server)})
    plan = plan_of([served, "b"], shaped={"rate": 20.0, "during": how}, processes=1)
    return run_shootout(plan, site)


@pytest.mark.parametrize(("how", "ended"), [("restart", "kill"), ("restart:clean", "halt")])
def test_private_servers_are_restarted_while_clients_go_on(how: str, ended: str) -> None:
    outcome = restarted(how)
    assert states_of_phases(outcome) == {"a": ["measured"] * 3, "b": ["not supported"] * 3}
    assert "no server of its own to restart" in outcome.results[3].reason
    assert [event.call for event in outcome.site.did("kill", "halt", "resume")] == [ended, "resume"]
    (event,) = outcome.site.did("recovered")
    assert event.contender == "a"
    assert outcome.site.did("start_operation") == []


def test_a_server_that_does_not_come_up_again_fails_all_phases() -> None:
    def stay_away(event: Event, _: int) -> Failure | None:
        return BROKE if event.call == "resume" else None

    outcome = restarted("restart", Site(stay_away))
    assert states_of_phases(outcome)["a"] == ["failed"] * 3
    assert outcome.results[0].reason == "server main did not come up"


def test_a_run_of_a_lengthy_benchmark_is_one_iteration_and_there_are_three(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("zodbshootout.scheduling.shootout.calibrations_for", lambda *_: {})
    plan = plan_of(
        [far("a", 0.0)], ["pack"], processes=4, values=0, loops=0,
        precision=0.01, cell_limit=1e-9,
    )  # fmt: skip
    outcome = run_shootout(plan, Site(swings={"a": 0.5}))
    assert Counter(event.call for event in outcome.site.did("attempt", "slice", "count")) == {
        "slice": MIN_RUNS
    }
    (result,) = outcome.results
    assert [len(run.values) for run in result.runs] == [1] * MIN_RUNS


def test_upkeep_has_three_runs_whatever_the_limit_is() -> None:
    outcome = run_shootout(plan_of("a", ["add", "open"], precision=0.01, cell_limit=1e-9))
    runs = {result.cell.benchmark: len(result.runs) for result in outcome.results}
    assert runs == {"add": 0, "open": MIN_RUNS}


def test_a_limit_of_the_users_holds_for_a_lengthy_benchmark() -> None:
    outcome = run_shootout(plan_of("a", ["pack"], processes=4, precision=0.01, limit=1e-9))
    assert [result.state for result in outcome.results] == [State.NOT_RUN]
