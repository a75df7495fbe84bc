"""A client that crashes, hangs or raises, whatever it is doing.

Faulty contenders share a run: one of a crew of processes, one of threads, one in which every
mishap passes, and one without a second attempt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyperf
import pytest

from tests.faults.runs import Wreck, faulty, wreck

CRASHES = {
    "kill": "was killed by SIGKILL",
    "segv": "was killed by SIGSEGV",
    "exit": "ended with exit status 7",
}
STAGES = ("set_up", "supply", "run", "verify")
"""The methods that run before the start, at the start, on the clock, and while verifying."""
TIMEOUT = ("--timeout", "5")
FAULTS = {
    **{fault: {"fault": fault} for fault in (*CRASHES, "hang")},
    **{f"raise_{stage}": {"fault": "raise", "during": stage} for stage in STAGES},
}
OF_PROCESSES = {
    f"{fault}_{stage}": {"fault": fault, "during": stage}
    for fault in ("kill", "hang")
    for stage in ("set_up", "verify")
}
CREWS = {
    "processes": ((), {**FAULTS, **OF_PROCESSES}),
    "threads": (("-c", "2", "--threads"), FAULTS),
}


def in_a_group(name: str) -> Any:
    """Return a parameter whose tests are run by one process of pytest-xdist: they share a run."""
    return pytest.param(name, marks=pytest.mark.xdist_group(name))


@pytest.fixture(
    scope="module",
    params=[in_a_group(name) for name in CREWS],
)
def crew(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Wreck:
    """A run of each kind of crew with all faulty contenders."""
    words, faults = CREWS[request.param]
    text = "".join(faulty(name, **keys) for name, keys in faults.items())
    return wreck(tmp_path_factory.mktemp(request.param), text, *words, *TIMEOUT)


@pytest.mark.parametrize("fault", CRASHES)
def test_a_client_that_crashes_on_the_clock_fails_its_cell(fault: str, crew: Wreck) -> None:
    crew.check_failed(fault, CRASHES[fault], benchmarks=["add"])


def test_a_client_that_hangs_fails_its_cell_at_the_timeout(crew: Wreck) -> None:
    crew.check_failed(
        "hang", "not done within its time limit of 5 s (--timeout)", benchmarks=["add"]
    )


@pytest.mark.parametrize("stage", STAGES)
def test_a_client_that_raises_at_any_stage_fails_its_cell(stage: str, crew: Wreck) -> None:
    crew.check_failed(f"raise_{stage}", "StorageError: the disk is on fire")


@pytest.mark.parametrize("crew", [in_a_group("processes")], indirect=True)
@pytest.mark.parametrize("name", OF_PROCESSES)
def test_a_client_that_crashes_or_hangs_off_the_clock_fails_its_cell(
    name: str, crew: Wreck
) -> None:
    crew.check_failed(name)


def test_trap_15_several_cells_that_fail_leave_all_others_measured(crew: Wreck) -> None:
    faults = {name.split()[0] for name in crew.outcomes} - {"good"}
    assert len(faults) >= len(FAULTS)
    crew.check_others_are_measured(*faults)


# Mishaps that pass

GOOD_AGAIN = (*CRASHES, "kill-worker")
CLOCKS = ("clock-ahead", "clock-back")
ONCE = (*GOOD_AGAIN, "escape", *CLOCKS)
PROCESSES = 3


@pytest.fixture(scope="module")
def mishaps(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Wreck]:
    place = tmp_path_factory.mktemp("mishaps")
    text = "".join(
        faulty(fault.replace("-", "_"), fault, once=place / f"{fault}.done") for fault in ONCE
    )
    run = wreck(place, text, "-p", str(PROCESSES))
    # It is in a session of its own, and holds what its parent printed to for a minute.
    escaped = [command for command in run.left_behind if "time.sleep(60)" in command]
    assert len(escaped) == 1
    run.left_behind.remove(*escaped)
    return place, run


@pytest.mark.xdist_group("mishaps")
@pytest.mark.parametrize("fault", ONCE)
def test_a_transient_fault_loses_no_cell_and_no_run(
    fault: str, mishaps: tuple[Path, Wreck]
) -> None:
    place, run = mishaps
    assert (place / f"{fault}.done").exists()
    name = fault.replace("-", "_")
    for benchmark in ("add", "cold"):
        assert run.outcomes[f"{name} {benchmark}"][0] == "measured"
        assert run.runs[f"{name} {benchmark}"] == PROCESSES


@pytest.mark.xdist_group("mishaps")
def test_transient_faults_leave_nothing_behind(mishaps: tuple[Path, Wreck]) -> None:
    mishaps[1].check_others_are_measured()


@pytest.mark.xdist_group("mishaps")
@pytest.mark.parametrize("fault", GOOD_AGAIN)
def test_a_worker_that_crashes_once_is_retried_and_reported(
    fault: str, mishaps: tuple[Path, Wreck]
) -> None:
    _, run = mishaps
    again = [line for line in run.done.out.splitlines() if "1 run repeated after a crash: " in line]
    assert len(again) == len(GOOD_AGAIN)
    if fault in CRASHES:
        assert sum(CRASHES[fault] in line and "client 0 (pid " in line for line in again) == 1
    else:
        assert any("client" not in line and "was killed by SIGKILL" in line for line in again)


@pytest.mark.xdist_group("mishaps")
@pytest.mark.parametrize("fault", CLOCKS)
def test_a_clock_that_steps_does_not_distort_the_values(
    fault: str, mishaps: tuple[Path, Wreck]
) -> None:
    name = fault.replace("-", "_")
    suite = pyperf.BenchmarkSuite.load(str(mishaps[0] / "a.d" / f"{name}.json"))
    assert len(suite) == 2
    assert all(0 < value < 60 for benchmark in suite for value in benchmark.get_values())


# Without a second attempt


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Wreck:
    place = tmp_path_factory.mktemp("once")
    text = (
        faulty("killed", "kill", once=place / "done")
        + faulty("worker", "kill-worker", once=place / "done too")
        # By the second run there are results of the first one.
        + faulty("late", "raise", during="run", when=place / "a.json")
    )
    return wreck(place, text, "--retries", "0", "-p", "3")


@pytest.mark.xdist_group("once")
@pytest.mark.parametrize("name", ["killed", "worker"])
def test_a_crash_fails_the_cell_if_there_are_no_retries(name: str, once: Wreck) -> None:
    once.check_failed(name, "was killed by SIGKILL", benchmarks=["add"])
    assert "repeated after a crash" not in once.done.out
    once.check_others_are_measured("killed", "worker", "late")


@pytest.mark.xdist_group("once")
def test_a_cell_that_fails_keeps_its_earlier_runs(once: Wreck) -> None:
    reason = once.failures("late")["add"]
    assert once.runs["late add"] == 1
    assert f"{reason}; the figure is that of 1 run before that" in once.done.out
