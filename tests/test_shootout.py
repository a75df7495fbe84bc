"""How a plan is gone through, with workers that are made up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyperf
import pytest

from tests.runs import run
from zodbshootout.config.configuration import Source
from zodbshootout.contenders.contender import Contender
from zodbshootout.model import Cell, CrewShape, Effort, Parameters, Unit
from zodbshootout.perf.launch import WorkerFailed
from zodbshootout.perf.task import Action, Report, Subject, Task
from zodbshootout.plan import Plan, Sweep, make_plan
from zodbshootout.progress import Silence
from zodbshootout.results import CellResult, State
from zodbshootout.shootout import Conduct, GaveUp, Shootout

SUBJECT = Subject(Source(Path("x.conf"), ""), {})


class Section:
    """A section of a kind that is not known."""


@dataclass
class FakeLauncher:
    """Takes notes of what it is asked for, and fails where it is told to."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    fails: Callable[[Task, int], bool] = lambda task, nth: False
    report: Report | None = None
    """What is reported of a failure."""
    log: list[tuple[str, str, str, int]] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)

    def do(self, task: Task) -> Mapping[str, str]:
        self._note(task, 0)
        return {}

    def measure(self, task: Task, effort: Effort) -> pyperf.Benchmark:
        self._note(task, effort.loops)
        seconds = self.seconds.get(task.contender, 0.1)
        return run(*[seconds] * effort.values, loops=effort.loops)

    def _note(self, task: Task, loops: int) -> None:
        assert task.cell is not None
        self.tasks.append(task)
        nth = sum(entry[:3] == self._key(task) for entry in self.log)
        self.log.append((*self._key(task), loops))
        if self.fails(task, nth):
            broke = Report("failed", f"{task.contender} broke", "Traceback")
            raise WorkerFailed(self.report or broke)

    @staticmethod
    def _key(task: Task) -> tuple[str, str, str]:
        assert task.cell is not None
        return task.action.value, task.cell.benchmark, task.contender

    def measured(self) -> list[str]:
        return [contender for action, _, contender, _ in self.log if action == "measure"]


class Counting(Silence):
    def __init__(self) -> None:
        self.advanced = 0
        self.settled: list[str] = []

    def worker_done(self, result: CellResult) -> None:
        self.advanced += 1

    def cell_done(self, result: CellResult, workers_spared: int) -> None:
        self.advanced += workers_spared
        self.settled.append(f"{result.cell.contender} {result.cell.benchmark} {result.state.value}")


def plan_of(
    names: Sequence[str],
    benchmarks: Sequence[str] = ("add",),
    shaped: Mapping[str, Any] | None = None,
    **effort: Any,
) -> Plan:
    wanted = Effort(
        **{"processes": 3, "values": 2, "warmups": 0, "loops": 0, "min_time": 0.1, **effort}
    )
    sweep = Sweep(
        [2], [10], [300], Parameters(CrewShape(1, Unit.THREAD, shared=True), **(shaped or {}))
    )
    return make_plan([Contender(name, Section(), {}) for name in names], benchmarks, sweep, wanted)


def shootout(plan: Plan, launcher: FakeLauncher, **more: Any) -> Shootout:
    more = {"keep": lambda results: None, "observer": Counting(), "facts": {}, **more}
    return Shootout(plan=plan, subject=SUBJECT, launcher=launcher, **more)


def states(of: Shootout) -> dict[tuple[str, str], str]:
    return {(each.cell.benchmark, each.cell.contender): each.state.value for each in of.results}


def test_trap_13_contenders_are_interleaved_run_by_run_and_none_always_comes_first() -> None:
    launcher = FakeLauncher()
    shootout(plan_of("abc", loops=1), launcher).run()
    assert "".join(launcher.measured()) == "abc" + "bca" + "cab"


def test_benchmarks_come_one_after_the_other() -> None:
    launcher = FakeLauncher()
    shootout(plan_of("ab", ["add", "cold"], loops=1, processes=1), launcher).run()
    assert [entry[:3] for entry in launcher.log] == [
        ("prepare", "add", "a"),
        ("measure", "add", "a"),
        ("prepare", "add", "b"),
        ("measure", "add", "b"),
        ("prepare", "cold", "a"),
        ("measure", "cold", "a"),
        ("prepare", "cold", "b"),
        ("measure", "cold", "b"),
    ]


def test_objects_that_several_benchmarks_read_are_written_once() -> None:
    launcher = FakeLauncher()
    shootout(plan_of("a", ["warm", "cold", "hot"], loops=1), launcher).run()
    prepared = [entry[:3] for entry in launcher.log if entry[0] == "prepare"]
    assert prepared == [("prepare", "warm", "a")]


def test_a_benchmark_that_needs_no_objects_needs_no_preparation() -> None:
    launcher = FakeLauncher()
    shootout(plan_of("a", ["tpc", "new_oid"], loops=1), launcher).run()
    assert {entry[0] for entry in launcher.log} == {"measure"}


def test_a_database_is_filled_and_packed_before_its_first_benchmark_and_once() -> None:
    launcher = FakeLauncher()
    plan = plan_of("a", ["tpc", "new_oid", "ex_commit"], {"min_objects": 5}, loops=1, processes=1)
    shootout(plan, launcher, conduct=Conduct(pack=True)).run()
    assert [(task.action.value, task.pack) for task in launcher.tasks][:2] == [
        ("prepare", True),
        ("measure", False),
    ]
    assert sum(task.pack for task in launcher.tasks) == 1


def test_with_servers_restarted_a_cold_value_is_one_iteration() -> None:
    launcher = FakeLauncher(seconds={"a": 0.01})
    observer = Counting()
    plan = plan_of("ab", ["cold", "hot"], processes=1)
    conduct = Conduct(restart=True)
    shootout(plan, launcher, conduct=conduct, served=["a"], observer=observer).run()
    measured = [
        (task.contender, task.cell.benchmark, loops, task.restart)
        for task, (action, _, _, loops) in zip(launcher.tasks, launcher.log, strict=True)
        if action == "measure" and task.cell is not None
    ]
    assert measured == [
        ("a", "cold", 1, True),
        ("b", "cold", 1, False),
        ("a", "hot", 1, False),  # calibration
        ("b", "hot", 1, False),
        ("a", "hot", 16, False),
        ("b", "hot", 2, False),
    ]
    assert observer.advanced == plan.total_workers


def test_the_same_database_listed_twice_is_empty_before_each_run_of_add() -> None:
    launcher = FakeLauncher()
    plan = plan_of("ab", ["add", "cold"], processes=2)
    shootout(plan, launcher, conduct=Conduct(zapped={"a", "b"})).run()
    of_add = [task for task in launcher.tasks if task.cell and task.cell.benchmark == "add"]
    # A calibration and two runs of each contender.
    assert [(task.action.value, task.contender, task.zap) for task in of_add] == [
        entry
        for contender in ("a", "b", "a", "b", "b", "a")
        for entry in (("prepare", contender, True), ("measure", contender, False))
    ]
    assert not any(task.zap for task in launcher.tasks if task not in of_add)


def test_only_those_are_zapped_that_were_chosen_and_before_add_alone() -> None:
    launcher = FakeLauncher()
    shootout(
        plan_of("ab", ["add", "update"], loops=1), launcher, conduct=Conduct(zapped={"b"})
    ).run()
    zapped = [task for task in launcher.tasks if task.zap]
    assert {(task.contender, task.cell.benchmark) for task in zapped if task.cell} == {("b", "add")}
    assert len(zapped) == 3


def test_profiles_are_of_the_runs_that_count_and_named_for_the_cell(tmp_path: Path) -> None:
    launcher = FakeLauncher()
    plan = plan_of("a", ["add"], processes=2)
    shootout(plan, launcher, conduct=Conduct(profiles=tmp_path)).run()
    found = [task.profiling for task in launcher.tasks if task.action is Action.MEASURE]
    assert [each and each.name for each in found] == [None, "a-add", "a-add"]


def test_trap_14_calibration_does_the_same_work_for_every_contender() -> None:
    launcher = FakeLauncher(seconds={"fast": 0.01, "slow": 0.9})
    shootout(plan_of(["fast", "slow"]), launcher).run()
    loops = [entry[2:] for entry in launcher.log if entry[0] == "measure"]
    assert loops[:2] == [("fast", 1), ("slow", 1)]
    assert set(loops[2:]) == {("fast", 16), ("slow", 1)}


def test_calibration_is_not_a_run_of_the_result() -> None:
    going = shootout(plan_of("a"), FakeLauncher())
    going.run()
    assert len(going.results[0].runs) == 3
    assert len(going.results[0].benchmark().get_values()) == 6


@pytest.mark.parametrize("nth", [0, 1, 2, 3])
def test_trap_15_a_cell_that_fails_fails_alone(nth: int) -> None:
    launcher = FakeLauncher(
        fails=lambda task, n: (
            (task.contender, n) == ("b", nth)
            and task.action is Action.MEASURE
            and task.cell is not None
            and task.cell.benchmark == "add"
        )
    )
    observer = Counting()
    going = shootout(plan_of("abc", ["add", "cold"]), launcher, observer=observer)
    going.run()
    assert states(going) == {
        ("add", "a"): "measured",
        ("add", "b"): "failed",
        ("add", "c"): "measured",
        ("cold", "a"): "measured",
        ("cold", "b"): "measured",
        ("cold", "c"): "measured",
    }
    failed = next(each for each in going.results if each.state is State.FAILED)
    assert (failed.reason, failed.detail, failed.runs) == ("b broke", "Traceback", ())
    assert all(len(each.runs) == 3 for each in going.results if each is not failed)
    assert observer.advanced == going.plan.total_workers
    assert len(observer.settled) == 6


def test_what_cannot_be_written_is_a_failure_of_its_cell() -> None:
    launcher = FakeLauncher(fails=lambda task, n: task.action is Action.PREPARE)
    going = shootout(plan_of("a"), launcher)
    going.run()
    assert states(going) == {("add", "a"): "failed"}
    assert launcher.measured() == []


def test_contenders_that_could_not_be_opened_fail_without_being_tried() -> None:
    launcher = FakeLauncher()
    going = shootout(plan_of("ab"), launcher, absent={"b": "no server"})
    going.run()
    assert states(going) == {("add", "a"): "measured", ("add", "b"): "failed"}
    assert set(launcher.measured()) == {"a"}


def test_unsupported_as_the_worker_finds_out() -> None:
    class Refusing(FakeLauncher):
        def measure(self, task: Task, effort: Effort) -> pyperf.Benchmark:
            raise WorkerFailed(Report("unsupported", "it has none"))

    going = shootout(plan_of("a"), Refusing())
    going.run()
    assert states(going) == {("add", "a"): "unsupported"}


def test_fail_fast_stops_at_the_first_failure() -> None:
    launcher = FakeLauncher(fails=lambda task, n: task.contender == "a")
    going = shootout(plan_of("ab", ["add", "cold"]), launcher, conduct=Conduct(fail_fast=True))
    with pytest.raises(GaveUp):
        going.run()
    assert list(states(going).values()) == ["failed", "not run", "not run", "not run"]


def test_fail_fast_stops_at_a_contender_that_could_not_be_opened() -> None:
    launcher = FakeLauncher()
    going = shootout(
        plan_of("ab"), launcher, absent={"b": "no server"}, conduct=Conduct(fail_fast=True)
    )
    with pytest.raises(GaveUp):
        going.run()
    assert launcher.log == []
    assert states(going) == {("add", "a"): "not run", ("add", "b"): "failed"}


def test_everything_measured_is_kept_at_every_moment() -> None:
    kept: list[list[int]] = []

    def keep(results: Sequence[CellResult]) -> None:
        kept.append([len(each.runs) for each in results])

    shootout(plan_of("ab", loops=4), FakeLauncher(), keep=keep).run()
    assert kept == [[0, 0], [1, 0], [1, 1], [1, 2], [2, 2], [3, 2], [3, 3]]


def test_an_interrupt_leaves_what_was_measured() -> None:
    def interrupt(task: Task, nth: int) -> bool:
        if task.action is Action.MEASURE and task.contender == "b" and nth == 1:
            raise KeyboardInterrupt
        return False

    going = shootout(plan_of("ab", ["add", "cold"]), FakeLauncher(fails=interrupt))
    with pytest.raises(KeyboardInterrupt):
        going.run()
    assert states(going) == {
        ("add", "a"): "measured",
        ("add", "b"): "not run",
        ("cold", "a"): "not run",
        ("cold", "b"): "not run",
    }


def test_the_plan_tells_how_many_workers_it_takes() -> None:
    assert plan_of("abc", ["add", "cold"]).total_workers == 2 * 3 * (3 + 1)
    assert plan_of("abc", ["add", "cold"], loops=5).total_workers == 2 * 3 * 3
    assert plan_of("a").estimated_seconds() > 0


def test_a_benchmark_without_objects_is_measured_once_however_many_there_are() -> None:
    sweep = Sweep([1, 2], [10, 20], [128, 300], Parameters(CrewShape(1)))
    effort = plan_of("a").effort
    plan = make_plan([Contender("a", Section(), {})], ["tpc", "new_oid"], sweep, effort)
    rows = [(row.benchmark, row.parameters.crew.size) for row in plan.rows]
    assert rows.count(("tpc", 1)) == rows.count(("tpc", 2)) == 1
    assert rows.count(("new_oid", 1)) == rows.count(("new_oid", 2)) == 2


def test_a_cell_names_its_contender() -> None:
    plan = plan_of("ab")
    of = Cell("add", "b", plan.rows[0].parameters)
    assert plan.contender(of).name == "b"
    assert of.parameters.crew == CrewShape(2, Unit.THREAD, shared=True)


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (
            Report("failed", "connection lost"),
            "connection lost; server pg was killed by SIGKILL: out  of memory",
        ),
        (
            Report("failed", "server pg ended at once: out of memory"),
            "server pg ended at once: out of memory",
        ),
        (Report("unsupported", "has no prefetch"), "has no prefetch"),
    ],
)
def test_a_failure_tells_once_how_a_server_has_ended(report: Report, reason: str) -> None:
    launcher = FakeLauncher(fails=lambda task, nth: True, report=report)
    ended = "server pg was killed by SIGKILL: out  of memory"
    obituary = lambda contender: ended if launcher.log else None  # noqa: E731
    going = shootout(plan_of("a", loops=1), launcher, obituary=obituary)
    going.run()
    (result,) = going.results
    assert (result.state.value, result.reason) == (report.state, reason)


def test_what_goes_on_without_its_server_is_failed_and_what_comes_after_not_begun() -> None:
    launcher = FakeLauncher()

    def obituary(contender: str) -> str | None:
        gone = contender == "a" and launcher.measured().count("a") == 2
        return "server mc was killed by SIGKILL: it logged nothing" if gone else None

    going = shootout(plan_of("ab", ["add", "warm"], loops=1), launcher, obituary=obituary)
    going.run()
    assert states(going) == {
        ("add", "a"): "failed",
        ("add", "b"): "measured",
        ("warm", "a"): "failed",
        ("warm", "b"): "measured",
    }
    assert launcher.measured().count("a") == 2
    reasons = {each.reason for each in going.results if each.state is State.FAILED}
    assert reasons == {"server mc was killed by SIGKILL: it logged nothing"}
