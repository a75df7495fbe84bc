from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from zodbshootout import guardian
from zodbshootout.guardian import Ending, Guardian, end_group

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]
IGNORANT = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
STUBBORN = [sys.executable, "-c", f"{IGNORANT}; print(flush=True); time.sleep(600)"]


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


LAMENTING = (
    "import signal, sys, time; "
    "signal.signal(signal.SIGINT, lambda *_: (open(sys.argv[1], 'w').close(), sys.exit())); "
    "print(flush=True); time.sleep(600)"
)


@pytest.fixture
def killed_run(tmp_path: Path) -> Callable[[str], tuple[int, Path]]:
    """Return how to start a run that is killed: what it watched over, and its directory."""

    def start(more: str = "") -> tuple[int, Path]:
        directory = tmp_path / "scratch"
        directory.mkdir()
        program = textwrap.dedent(
            f"""
            import os, signal, subprocess, pathlib
            from zodbshootout.guardian import Guardian
            guardian = Guardian()
            null = subprocess.DEVNULL
            server = guardian.start({SLEEPER!r}, stdout=null)
            guardian.watch_directory(pathlib.Path({str(directory)!r}))
            {more}
            print(server.pid, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
            """
        )
        run = subprocess.run(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=False
        )
        assert run.returncode == -signal.SIGKILL
        return int(run.stdout), directory

    return start


def test_what_a_killed_run_watched_over_is_ended_and_removed(
    killed_run: Callable[[str], tuple[int, Path]],
) -> None:
    pid, directory = killed_run("")
    wait_until(lambda: gone(pid) and not directory.exists())


def test_a_killed_run_ends_what_it_watched_over_as_it_was_told_to(
    killed_run: Callable[[str], tuple[int, Path]], tmp_path: Path
) -> None:
    witness = tmp_path / "interrupted"
    command = [sys.executable, "-c", LAMENTING, str(witness)]
    _, directory = killed_run(
        "from zodbshootout.guardian import Ending\n            "
        f"server = guardian.start({command!r}, Ending(signal.SIGINT, 10.0),"
        " stdout=subprocess.PIPE)\n            server.stdout.readline()"
    )
    wait_until(lambda: not directory.exists())
    assert witness.exists()


def test_what_was_released_is_left_alone(
    killed_run: Callable[[str], tuple[int, Path]],
) -> None:
    pid, directory = killed_run("guardian.release_group(server.pid)")
    wait_until(lambda: not directory.exists())
    assert not gone(pid)
    os.kill(pid, signal.SIGKILL)


def test_the_guardian_ends_with_the_run() -> None:
    with Guardian() as guardian:
        pid = guardian._process.pid
        assert not gone(pid)
    assert gone(pid)


def test_a_group_that_does_not_listen_is_killed() -> None:
    process = subprocess.Popen(STUBBORN, start_new_session=True, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    end_group(process.pid, Ending(grace=0.1), reap=process.poll)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()


def test_a_group_that_is_gone_is_nothing_to_worry_about() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], start_new_session=True)
    process.wait()
    end_group(process.pid)


def test_a_group_that_nobody_collects_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []

    def signal_group(group: int, number: int) -> bool:
        sent.append(number)
        return original(group, number)

    original = guardian._signal_group
    monkeypatch.setattr(guardian, "_signal_group", signal_group)
    with subprocess.Popen(SLEEPER, start_new_session=True) as process:
        end_group(process.pid, Ending(grace=5.0))
    assert process.returncode == -signal.SIGTERM
    assert signal.SIGKILL not in sent


def test_a_group_with_a_process_that_runs_is_waited_for_though_another_is_not_collected() -> None:
    program = (
        f"import os, subprocess, sys; subprocess.Popen({STUBBORN!r}, stdout=1); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as leader:  # fmt: skip
        assert leader.stdout is not None
        leader.stdout.readline()
        end_group(leader.pid, Ending(grace=0.3))
        assert leader.stdout.read() == b""


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_while_a_process_starts_waits_until_it_is_watched() -> None:
    with Guardian() as guardian:
        told = guardian._tell
        pids: list[int] = []

        def tell_late(word: str, argument: str) -> None:
            signal.raise_signal(signal.SIGINT)
            told(word, argument)
            pids.append(int(argument.split(maxsplit=1)[0]))

        guardian._tell = tell_late  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            guardian.start(SLEEPER, stdout=subprocess.DEVNULL)
        assert not gone(pids[0])
    wait_until(lambda: gone(pids[0]))


def test_an_interrupt_while_the_run_ends_waits_until_nothing_is_left() -> None:
    lasting = Ending(signal=0, grace=1.0)
    guardian = Guardian()
    with guardian, guardian.start(SLEEPER, lasting, stdout=subprocess.DEVNULL) as process:
        waiting = guardian._process.wait

        def interrupted(timeout: float | None = None) -> int:
            signal.raise_signal(signal.SIGINT)
            return waiting(timeout)

        with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(guardian._process, "wait", interrupted)
            guardian.__exit__()
        assert gone(process.pid)


def test_a_group_that_is_stopped_hears_that_it_is_to_end() -> None:
    with subprocess.Popen(SLEEPER, start_new_session=True) as process:
        os.kill(process.pid, signal.SIGSTOP)
        wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
        end_group(process.pid, Ending(grace=5.0), reap=process.poll)
    assert process.returncode == -signal.SIGTERM
