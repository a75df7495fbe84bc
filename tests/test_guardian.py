from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from zodbshootout import guardian
from zodbshootout.guardian import (
    TAIL_SIZE,
    Child,
    Ending,
    Group,
    Guardian,
    GuardianLost,
    describe_exit,
    end_group,
    last_lines,
)  # fmt: skip

pytestmark = pytest.mark.servers

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]
IGNORING_SIGTERM = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
STUBBORN = [sys.executable, "-c", f"{IGNORING_SIGTERM}; print(flush=True); time.sleep(600)"]


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        time.sleep(0.02)


def ended(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


NOTING_INTERRUPT = (
    "import signal, sys, time; "
    "signal.signal(signal.SIGINT, lambda *_: (open(sys.argv[1], 'w').close(), sys.exit())); "
    "print(flush=True); time.sleep(600)"
)


WATCHED = f"guardian.start({SLEEPER!r}, stdout=null)"
KilledRun = Callable[..., tuple[int, Path]]


@pytest.fixture
def killed_run(tmp_path: Path) -> KilledRun:
    """Return a function that starts and kills a run, and returns its process and directory."""

    def run(more: str = "", start: str = WATCHED) -> tuple[int, Path]:
        directory = tmp_path / "scratch"
        directory.mkdir()
        program = textwrap.dedent(
            f"""
            import os, signal, subprocess, pathlib
            from zodbshootout.guardian import Guardian
            guardian = Guardian()
            null = subprocess.DEVNULL
            server = {start}
            guardian.watch_directory(pathlib.Path({str(directory)!r}))
            {more}
            print(server.pid, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
            """
        )
        killed = subprocess.run(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=False
        )
        assert killed.returncode == -signal.SIGKILL
        return int(killed.stdout), directory

    return run


def test_a_killed_runs_process_is_ended_and_its_directory_removed(
    killed_run: KilledRun,
) -> None:
    pid, directory = killed_run()
    wait_until(lambda: ended(pid) and not directory.exists())


def test_a_group_that_the_guardian_did_not_start_can_be_watched(killed_run: KilledRun) -> None:
    started = f"subprocess.Popen({SLEEPER!r}, stdout=null, start_new_session=True)"
    pid, _ = killed_run("guardian.watch_group(server.pid)", started)
    wait_until(lambda: ended(pid))


def test_a_killed_runs_process_is_ended_by_the_signal_of_its_ending(
    killed_run: KilledRun, tmp_path: Path
) -> None:
    note = tmp_path / "interrupted"
    command = [sys.executable, "-c", NOTING_INTERRUPT, str(note)]
    _, directory = killed_run(
        "from zodbshootout.guardian import Ending\n            "
        f"server = guardian.start({command!r}, Ending(signal.SIGINT, 10.0),"
        " stdout=subprocess.PIPE)\n            server.stdout.readline()"
    )
    wait_until(lambda: not directory.exists())
    assert note.exists()


def test_a_released_group_survives_a_killed_run(
    killed_run: KilledRun,
) -> None:
    pid, directory = killed_run("guardian.release_group(server.pid)")
    wait_until(lambda: not directory.exists())
    assert not ended(pid)
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("session", [True, False])
def test_a_process_has_its_own_group_and_unless_disabled_its_own_session(*, session: bool) -> None:
    with Guardian() as guardian:
        process = guardian.start(SLEEPER, session=session)
        assert os.getpgid(process.pid) == process.pid
        assert os.getsid(process.pid) == (process.pid if session else os.getsid(0))
    assert process.wait(timeout=20) == -signal.SIGTERM


def test_a_process_that_ends_while_processes_are_scanned_is_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = Path.read_text
    vanished: list[Path] = []

    def read_text(path: Path, *args: Any, **options: Any) -> str:
        if path == Path("/proc/1/stat"):
            vanished.append(path)
            raise ProcessLookupError
        return original(path, *args, **options)

    monkeypatch.setattr(Path, "read_text", read_text)
    process = subprocess.Popen(SLEEPER, start_new_session=True)
    assert guardian._is_running(Group(process.pid))
    assert vanished
    end_group(process.pid, reap=process.poll)
    assert process.poll() == -signal.SIGTERM


def test_the_guardian_ends_with_the_run() -> None:
    with Guardian() as guardian:
        pid = guardian._process.pid
        assert not ended(pid)
    assert ended(pid)


def test_a_group_that_ignores_the_signal_is_killed() -> None:
    process = subprocess.Popen(STUBBORN, start_new_session=True, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    end_group(process.pid, Ending(grace=0.1), reap=process.poll)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()


def test_ending_a_group_that_has_ended_does_nothing() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], start_new_session=True)
    process.wait()
    end_group(process.pid)


def test_a_group_with_only_a_zombie_left_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []

    def signal_group(group: Group, number: int) -> bool:
        sent.append(number)
        return original(group, number)

    original = Group.signal
    monkeypatch.setattr(Group, "signal", signal_group)
    with subprocess.Popen(SLEEPER, start_new_session=True) as process:
        end_group(process.pid, Ending(grace=5.0))
    assert process.returncode == -signal.SIGTERM
    assert signal.SIGKILL not in sent


def test_a_group_with_a_running_process_is_waited_for_despite_a_zombie() -> None:
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
def test_an_interrupt_during_a_start_is_held_until_the_process_is_watched() -> None:
    with Guardian() as guardian:
        send = guardian._send
        pids: list[int] = []

        def send_late(word: str, argument: str) -> None:
            signal.raise_signal(signal.SIGINT)
            send(word, argument)
            pids.append(int(argument.split(maxsplit=1)[0]))

        guardian._send = send_late  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            guardian.start(SLEEPER, stdout=subprocess.DEVNULL)
        assert not ended(pids[0])
    wait_until(lambda: ended(pids[0]))


def test_an_interrupt_during_the_exit_is_held_until_processes_have_ended() -> None:
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
        assert ended(process.pid)


def test_a_stopped_group_is_continued_so_that_it_can_end() -> None:
    with subprocess.Popen(SLEEPER, start_new_session=True) as process:
        os.kill(process.pid, signal.SIGSTOP)
        wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
        end_group(process.pid, Ending(grace=5.0), reap=process.poll)
    assert process.returncode == -signal.SIGTERM


@pytest.fixture
def lost_guardian() -> Iterator[Guardian]:
    with Guardian() as lost:
        lost._process.kill()
        lost._process.wait()
        yield lost


def test_watching_without_a_guardian_process_is_an_error(
    lost_guardian: Guardian, tmp_path: Path
) -> None:
    message = "^the process that cleans up after the run has ended too early$"
    with pytest.raises(GuardianLost, match=message):
        lost_guardian.watch_group(1)
    with pytest.raises(GuardianLost, match=message):
        lost_guardian.watch_directory(tmp_path)


def test_a_process_started_without_a_guardian_process_is_ended(
    lost_guardian: Guardian, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Recorded(Child):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            started.append(self)

    monkeypatch.setattr(guardian, "Child", Recorded)
    with pytest.raises(GuardianLost):
        lost_guardian.start(SLEEPER, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    (process,) = started
    assert process.returncode == -signal.SIGTERM
    assert process.stdout is not None
    assert process.stdout.closed


def test_groups_can_be_released_without_a_guardian_process(lost_guardian: Guardian) -> None:
    lost_guardian.release_group(1)


def test_a_child_is_waited_for_and_ended_with_its_group() -> None:
    with Guardian() as guardian:
        child = guardian.start(STUBBORN, Ending(grace=0.1), stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        assert child.exit_code(0.05) is None
        assert child.describe_exit() == "no longer answers"
        child.end()
        assert child.exit_code() == -signal.SIGKILL
        assert child.describe_exit() == "was killed by SIGKILL"
        child.stdout.close()


@pytest.mark.parametrize(
    ("exit_code", "description"),
    [
        (-signal.SIGKILL, "was killed by SIGKILL"),
        (-signal.SIGRTMIN - 1, f"was killed by signal {signal.SIGRTMIN + 1}"),
        (3, "ended with exit status 3"),
        (None, "no longer answers"),
    ],
)
def test_the_end_of_a_process_is_described(exit_code: int | None, description: str) -> None:
    assert describe_exit(exit_code) == description


def test_the_last_lines_of_an_output_are_read_from_its_end(tmp_path: Path) -> None:
    output = tmp_path / "output"
    assert last_lines(output) == []
    output.write_bytes(b"ERROR far\n" + b"x\n" * TAIL_SIZE + b"one  \xff\n\n  two\nthree")
    assert last_lines(output, 3) == ["one \N{REPLACEMENT CHARACTER}", "two", "three"]
    assert last_lines(output, errors="^ERROR") == [
        "x",
        "x",
        "one \N{REPLACEMENT CHARACTER}",
        "two",
        "three",
    ]
    assert last_lines(output, errors="t") == ["two", "three"]
    with output.open("rb") as file:
        assert last_lines(file, start=output.stat().st_size - 2) == ["ee"]


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """Start a process of another program, in its own group, as if it had a reused number."""
    with subprocess.Popen(SLEEPER, start_new_session=True) as process:
        yield process
        assert process.poll() is None
        process.kill()


def test_a_reused_number_is_not_signalled(stranger: subprocess.Popen[bytes]) -> None:
    with Guardian() as guardian:
        child = guardian.start([sys.executable, "-c", "import time; time.sleep(0.1)"])
        child.wait()
        child.pid = stranger.pid
        child.end(Ending(grace=0.0))
        assert stranger.poll() is None
        end_group(stranger.pid, Ending(signal.SIGKILL), started="1")


def test_the_guardian_does_not_signal_a_reused_number(stranger: subprocess.Popen[bytes]) -> None:
    with Guardian() as guardian:
        for started in (child_start(guardian), "never"):
            guardian._send("watch", f"{stranger.pid} {int(signal.SIGKILL)} 0.0 {started}")


def child_start(guardian: Guardian) -> str:
    child = guardian.start([sys.executable, "-c", "pass"])
    child.wait()
    guardian.release_group(child.pid)
    return child.started


def test_what_a_group_leaves_behind_is_ended_without_its_first_process() -> None:
    program = (
        "import subprocess, sys; "
        f"print(subprocess.Popen({SLEEPER!r}, stdout=subprocess.DEVNULL).pid, flush=True)"
    )
    with Guardian() as guardian:
        child = guardian.start([sys.executable, "-c", program], stdout=subprocess.PIPE)
        assert child.stdout is not None
        left = int(child.stdout.readline())
        child.wait()
        child.end()
        child.stdout.close()
    wait_until(lambda: ended(left))
