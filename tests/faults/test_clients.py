"""Clients that crash, hang or raise at any stage.

Faulty contenders share a run: one with a crew of processes, one with threads, one with faults that
occur only once, and one without retries.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyperf
import pytest

from tests.faults.runs import FaultyRun, faulty, measure_together

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
PROCESS_FAULTS = {
    f"{fault}_{stage}": {"fault": fault, "during": stage}
    for fault in ("kill", "hang")
    for stage in ("set_up", "verify")
}
CREWS = {
    "processes": ((), {**FAULTS, **PROCESS_FAULTS}),
    "threads": (("-c", "2", "--threads"), FAULTS),
}


def in_a_group(name: str) -> Any:
    """Return a parameter whose tests run in one pytest-xdist process, because they share a run."""
    return pytest.param(name, marks=pytest.mark.xdist_group(name))


@pytest.fixture(
    scope="module",
    params=[in_a_group(name) for name in CREWS],
)
def crew(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FaultyRun:
    """A run of each kind of crew with all faulty contenders."""
    words, faults = CREWS[request.param]
    text = "".join(faulty(name, **keys) for name, keys in faults.items())
    return measure_together(tmp_path_factory.mktemp(request.param), text, *words, *TIMEOUT)


@pytest.mark.parametrize("fault", CRASHES)
def test_a_client_that_crashes_on_the_clock_fails_its_cell(fault: str, crew: FaultyRun) -> None:
    crew.check_failed(fault, CRASHES[fault], benchmarks=["add"])


def test_a_client_that_hangs_fails_its_cell_at_the_timeout(crew: FaultyRun) -> None:
    crew.check_failed(
        "hang", "not done within its time limit of 5 s (--timeout)", benchmarks=["add"]
    )


@pytest.mark.parametrize("stage", STAGES)
def test_a_client_that_raises_at_any_stage_fails_its_cell(stage: str, crew: FaultyRun) -> None:
    crew.check_failed(f"raise_{stage}", "StorageError: the disk is on fire")


@pytest.mark.parametrize("crew", [in_a_group("processes")], indirect=True)
@pytest.mark.parametrize("name", PROCESS_FAULTS)
def test_a_client_that_crashes_or_hangs_off_the_clock_fails_its_cell(
    name: str, crew: FaultyRun
) -> None:
    crew.check_failed(name)


def test_trap_15_several_cells_that_fail_leave_all_others_measured(crew: FaultyRun) -> None:
    faults = {name.split()[0] for name in crew.outcomes} - {"good"}
    assert len(faults) >= len(FAULTS)
    crew.check_others_are_measured(*faults)


# Transient faults

RETRIED = (*CRASHES, "kill-worker")
CLOCKS = ("clock-ahead", "clock-back")
TRANSIENT = (*RETRIED, "escape", *CLOCKS)
PROCESSES = 2


@pytest.fixture(scope="module")
def transient_faults(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, FaultyRun]:
    place = tmp_path_factory.mktemp("mishaps")
    text = "".join(
        faulty(fault.replace("-", "_"), fault, once=place / f"{fault}.done") for fault in TRANSIENT
    )
    run = measure_together(place, text, "-p", str(PROCESSES))
    # The escaped process has a session of its own, and keeps its parent's output open for a minute.
    escaped = [command for command in run.left_behind if "time.sleep(60)" in command]
    assert len(escaped) == 1
    run.left_behind.remove(*escaped)
    return place, run


@pytest.mark.xdist_group("mishaps")
@pytest.mark.parametrize("fault", TRANSIENT)
def test_a_transient_fault_loses_no_cell_and_no_run(
    fault: str, transient_faults: tuple[Path, FaultyRun]
) -> None:
    place, run = transient_faults
    assert (place / f"{fault}.done").exists()
    name = fault.replace("-", "_")
    for benchmark in ("add", "cold"):
        assert run.outcomes[f"{name} {benchmark}"][0] == "measured"
        assert run.runs[f"{name} {benchmark}"] == PROCESSES


@pytest.mark.xdist_group("mishaps")
def test_transient_faults_leave_nothing_behind(transient_faults: tuple[Path, FaultyRun]) -> None:
    transient_faults[1].check_others_are_measured()


@pytest.mark.xdist_group("mishaps")
@pytest.mark.parametrize("fault", RETRIED)
def test_a_worker_that_crashes_once_is_retried_and_reported(
    fault: str, transient_faults: tuple[Path, FaultyRun]
) -> None:
    _, run = transient_faults
    repeated = [
        line for line in run.done.out.splitlines() if "1 run repeated after a crash: " in line
    ]
    assert len(repeated) == len(RETRIED)
    if fault in CRASHES:
        assert sum(CRASHES[fault] in line and "client 0 (pid " in line for line in repeated) == 1
    else:
        assert any("client" not in line and "was killed by SIGKILL" in line for line in repeated)


@pytest.mark.xdist_group("mishaps")
@pytest.mark.parametrize("fault", CLOCKS)
def test_a_clock_that_steps_does_not_distort_the_values(
    fault: str, transient_faults: tuple[Path, FaultyRun]
) -> None:
    name = fault.replace("-", "_")
    suite = pyperf.BenchmarkSuite.load(str(transient_faults[0] / "a.d" / f"{name}.json"))
    assert len(suite) == 2
    assert all(0 < value < 60 for benchmark in suite for value in benchmark.get_values())


# Faults without retries


@pytest.fixture(scope="module")
def without_retries(tmp_path_factory: pytest.TempPathFactory) -> FaultyRun:
    place = tmp_path_factory.mktemp("once")
    text = (
        faulty("killed", "kill", once=place / "done")
        + faulty("worker", "kill-worker", once=place / "done too")
        # The results of the first run exist when the second one starts.
        + faulty("late", "raise", during="run", when=place / "a.json")
    )
    return measure_together(place, text, "--retries", "0", "-p", "2")


@pytest.mark.xdist_group("once")
@pytest.mark.parametrize("name", ["killed", "worker"])
def test_a_crash_fails_the_cell_if_there_are_no_retries(
    name: str, without_retries: FaultyRun
) -> None:
    without_retries.check_failed(name, "was killed by SIGKILL", benchmarks=["add"])
    assert "repeated after a crash" not in without_retries.done.out
    without_retries.check_others_are_measured("killed", "worker", "late")


@pytest.mark.xdist_group("once")
def test_a_cell_that_fails_keeps_its_earlier_runs(without_retries: FaultyRun) -> None:
    reason = without_retries.failures("late")["add"]
    assert without_retries.runs["late add"] == 1
    assert f"{reason}; the figure is from 1 run before that" in without_retries.done.out
