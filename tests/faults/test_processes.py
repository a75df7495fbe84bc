"""Kill the fork server, the guardian or the command itself."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyperf
import pytest

from tests.faults.runs import BUSY, GOOD, faulty, measure, outcomes, runs_of
from tests.integration.command import (
    QUICK,
    Done,
    left_behind,
    processes_in,
    run,
    start,
    wait_until,
)

ALL = ["good add", "bad add", "good cold", "bad cold"]


def test_a_run_is_repeated_if_the_fork_server_is_killed(tmp_path: Path) -> None:
    done = measure(tmp_path, faulty("bad", "kill-fork-server", once=tmp_path / "done"), "-p", "2")
    assert done.status == 0, done.out + done.err
    assert "1 run repeated after a crash: " in done.out
    assert "was killed by SIGKILL" in done.out
    assert {state for state, _ in outcomes(tmp_path).values()} == {"measured"}
    assert runs_of(tmp_path) == dict.fromkeys(ALL, 2)
    assert left_behind(tmp_path) == []


def test_the_rows_after_a_killed_fork_server_are_measured(
    tmp_path: Path,
) -> None:
    done = measure(tmp_path, faulty("bad", "kill-fork-server"), "--retries", "0")
    assert done.status == 3, done.out + done.err
    states = outcomes(tmp_path)
    assert states["bad add"][0] == "failed"
    assert "was killed by SIGKILL" in states["bad add"][1]
    assert {states[name][0] for name in ("good cold", "bad cold")} == {"measured"}
    assert "Traceback" not in done.out + done.err
    assert left_behind(tmp_path) == []


def test_a_run_stops_if_the_guardian_is_killed(tmp_path: Path) -> None:
    done = measure(tmp_path, faulty("bad", "kill-guardian"), "cold", "-p", "2")
    assert done.status == 3, done.out + done.err
    assert "stopped: the process that cleans up after the run has ended too early" in done.err
    assert "Traceback" not in done.out + done.err
    assert left_behind(tmp_path) == []


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that was killed in the second round of ``add``."""
    place = tmp_path_factory.mktemp("killed")
    text = faulty("bad", "kill-command", when=place / "a.json", once=place / "done")
    done: Done = measure(place, text, "-p", "3")
    assert done.status == -signal.SIGKILL
    wait_until(lambda: left_behind(place) == [])
    return place


def values_in(place: Path) -> dict[str, list[tuple[float, ...]]]:
    suite = pyperf.BenchmarkSuite.load(str(place / "a.json"))
    return {
        benchmark.get_name(): [run.values for run in benchmark.get_runs()] for benchmark in suite
    }


@pytest.mark.xdist_group("killed command")
def test_a_killed_command_keeps_the_runs_of_the_first_round(killed: Path) -> None:
    assert {name.split()[0] for name in values_in(killed)} == {"good:", "bad:"}
    assert all(len(runs) == 1 for runs in values_in(killed).values())


def test_the_guardian_ends_a_hanging_client_if_the_command_is_killed(tmp_path: Path) -> None:
    # A hanging client cannot notice by itself that the command is gone.
    hung = tmp_path / "hung"
    (tmp_path / "x.conf").write_text(f"%import faulty\n{faulty('bad', 'hang', once=hung)}")
    with start(tmp_path, "x.conf", "add", "-c", "1", *BUSY, "-o", "a.json") as process:
        wait_until(hung.exists)
        process.kill()
    wait_until(lambda: left_behind(tmp_path) == [])


@pytest.mark.xdist_group("killed command")
def test_a_killed_run_is_resumed_after_its_last_stored_runs(killed: Path, tmp_path: Path) -> None:
    place = shutil.copytree(killed, tmp_path / "copy")
    before = values_in(place)
    words = ("x.conf", "add", "cold", "-c", "1", *QUICK, "-l", "8", "-p", "3")
    done = run(place, *words, "--resume", "a.json")
    assert done.status == 0, done.out + done.err
    after = values_in(place)
    assert {name: len(runs) for name, runs in after.items()} == dict.fromkeys(after, 3)
    assert len(after) == len(ALL)
    for name, runs in before.items():
        assert after[name][: len(runs)] == runs
    assert run(place, *words, "--resume", "a.json").status == 0
    assert values_in(place) == after


def test_resume_refuses_the_results_of_a_different_run(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text(GOOD)
    words = ("x.conf", "add", "-c", "1", *QUICK)
    assert run(tmp_path, *words, "-o", "a.json").status == 0
    for other, reason in (
        (("--seed", "5"), "good: add was measured with seed=0"),
        (("cold",), None),
        (("-add", "cold"), "a.json is from another run, which has good: add"),
    ):
        done = run(tmp_path, *words, *other, "--resume", "a.json")
        assert done.status == (2 if reason else 0)
        assert reason is None or f"zodbshootout: --resume: {reason}" in done.err
    assert run(tmp_path, *words, "--resume", "nowhere.json").status == 2


SERVERS = (
    "<zeoserver main>\n<filestorage>\npath $scratch/main.fs\n</filestorage>\n</zeoserver>\n"
    "<zodb good>\n<zeoclient>\nserver $main\n</zeoclient>\n</zodb>\n"
)
LONG = ("x.conf", "add", "cold", "-c", "2", "--object-counts", "20", "-p", "20", "-o", "a.json")


def has_process(word: str) -> Callable[[Path], bool]:
    return lambda place: any(word in command for command in processes_in(place).values())


STAGES: Mapping[str, Callable[[Path], bool]] = {
    "starting servers": has_process("runzeo"),
    "opening": has_process("workers.fork_server"),
    "measuring": lambda place: (place / "a.json").exists(),
}


@contextmanager
def started(place: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Start a run, and kill it at the end if it is still running."""
    process = start(place, *words)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("stage", "number"),
    [
        *((stage, signal.SIGINT) for stage in STAGES),
        *(("measuring", number) for number in (signal.SIGTERM, signal.SIGHUP)),
    ],
)
def test_a_signal_ends_a_run_cleanly_at_each_stage(stage: str, number: int, tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text(SERVERS)
    with started(tmp_path, *LONG) as process:
        wait_until(lambda: STAGES[stage](tmp_path))
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130, out + err
    assert "zodbshootout: interrupted" in err
    assert "Traceback" not in out + err
    if stage == "measuring":
        assert "results so far were saved" in err
        assert runs_of(tmp_path)
    assert left_behind(tmp_path) == []


def test_a_run_after_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text(SERVERS)
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the run inherits it
    try:
        words = ("x.conf", "add", "-c", "1", "--object-counts", "20", "-p", "3", "-o", "a.json")
        with started(tmp_path, *words) as process:
            wait_until(lambda: STAGES["measuring"](tmp_path))
            process.send_signal(signal.SIGHUP)
            out, err = process.communicate(timeout=60)
    finally:
        signal.signal(signal.SIGHUP, previous)
    assert process.returncode == 0, out + err
