"""A client that crashes, hangs or raises, wherever it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.runs import check_failed, faulty, measure, outcomes, runs_of
from tests.integration.command import left_behind

CRASHES = {
    "kill": "was killed by SIGKILL",
    "segv": "was killed by SIGSEGV",
    "exit": "ended with exit status 7",
}
CREWS = {"processes": (), "threads": ("--threads",)}


@pytest.mark.parametrize("crew", CREWS)
@pytest.mark.parametrize("fault", CRASHES)
def test_a_client_that_crashes_on_the_clock(fault: str, crew: str, tmp_path: Path) -> None:
    done = measure(tmp_path, faulty("bad", fault), *CREWS[crew])
    check_failed(done, tmp_path, CRASHES[fault])


@pytest.mark.parametrize("fault", CRASHES)
def test_a_client_that_crashes_once_is_tried_again(fault: str, tmp_path: Path) -> None:
    text = faulty("bad", fault, once=tmp_path / "done")
    done = measure(tmp_path, text)
    assert done.status == 0, done.out + done.err
    assert "1 run repeated after a crash: client 0 (pid " in done.out
    assert CRASHES[fault] in done.out
    assert set(outcomes(tmp_path).values()) >= {("measured", "")}
    assert runs_of(tmp_path) == dict.fromkeys(["good add", "bad add", "good cold", "bad cold"], 1)
    assert left_behind(tmp_path) == []


def test_how_often_it_is_tried_again_can_be_set(tmp_path: Path) -> None:
    text = faulty("bad", "kill", once=tmp_path / "done")
    done = measure(tmp_path, text, "--retries", "0")
    check_failed(done, tmp_path, "was killed by SIGKILL")


@pytest.mark.parametrize("crew", CREWS)
def test_a_client_that_hangs_for_ever(crew: str, tmp_path: Path) -> None:
    done = measure(tmp_path, faulty("bad", "hang"), *CREWS[crew])
    check_failed(done, tmp_path, "not done within its time limit of 8 s (--timeout)")


WHERE = {
    "before the start": "set_up",
    "at the start": "supply",
    "on the clock": "run",
    "while verifying": "verify",
}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("crew", CREWS)
def test_a_client_that_raises(where: str, crew: str, tmp_path: Path) -> None:
    done = measure(tmp_path, faulty("bad", "raise", during=WHERE[where]), *CREWS[crew])
    failed = tuple(
        name
        for name, (state, _) in outcomes(tmp_path).items()
        if name.startswith("bad") and state == "failed"
    )
    assert failed
    check_failed(done, tmp_path, "StorageError: the disk is on fire", failed=failed)


@pytest.mark.parametrize("fault", ["kill", "hang"])
@pytest.mark.parametrize("where", ["set_up", "verify"])
def test_a_client_that_crashes_or_hangs_elsewhere(fault: str, where: str, tmp_path: Path) -> None:
    done = measure(tmp_path, faulty("bad", fault, during=where))
    failed = tuple(name for name, (state, _) in outcomes(tmp_path).items() if state == "failed")
    assert failed
    check_failed(done, tmp_path, failed=failed)


def test_what_was_measured_before_it_fails_is_kept(tmp_path: Path) -> None:
    # By the second run there are results of the first one.
    text = faulty("bad", "raise", during="run", when=tmp_path / "a.json")
    done = measure(tmp_path, text, "-p", "3")
    assert done.status == 3
    state, reason = outcomes(tmp_path)["bad add"]
    assert (state, runs_of(tmp_path)["bad add"]) == ("failed", 1)
    assert f"{reason}; the figure is that of 1 run before that" in done.out
    assert left_behind(tmp_path) == []


def test_a_descendant_that_keeps_the_output_open_holds_nothing_up(tmp_path: Path) -> None:
    text = faulty("bad", "escape", once=tmp_path / "done")
    done = measure(tmp_path, text)
    assert done.status == 0, done.out + done.err
    assert set(outcomes(tmp_path).values()) == {("measured", "")}


@pytest.mark.parametrize("crew", [("-c", "1"), ("-c", "2", "--threads")])
def test_trap_15_several_cells_that_fail_leave_all_others_measured(
    crew: tuple[str, ...], tmp_path: Path
) -> None:
    faults = ("raise", "kill", "hang")
    done = measure(tmp_path, "".join(faulty(fault, fault) for fault in faults), *crew)
    check_failed(done, tmp_path, failed=tuple(f"{fault} add" for fault in faults))
