"""Child processes, and the guardian: a small process that outlives the run and cleans up after it.

A run that is killed cannot stop its servers and clients, so the guardian stops them.  Through a
pipe, the run tells the guardian which process groups to end and which directories to remove.  The
pipe is closed when the run ends, in whatever way.  The guardian then ends these groups and removes
these directories.

The guardian process runs this module as a script, so it imports only the standard library.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

GRACE = 3.0
"""Seconds between asking a process group to end and killing it."""
END_TIMEOUT = 5.0
"""Seconds to wait for a process that should end by itself."""
CHECK_INTERVAL = 0.02
"""Seconds between two checks of whether a group has ended."""
TAIL_SIZE = 65536
"""The maximum number of bytes that :func:`last_lines` reads at the end of an output."""


@dataclass(frozen=True)
class Ending:
    """How to end a process group."""

    signal: int = signal.SIGTERM
    """The signal that asks the group to end; 0 to wait until the group ends by itself."""
    grace: float = GRACE
    """Seconds after which the group is killed if it has not ended."""


GENTLE = Ending()
_START_TIME = 19
"""The place of the start time in ``/proc/PID/stat``, counted from 0 after the name."""
_NEVER = "never"
"""When a process started that has ended already."""
_IN_OWN_GROUP: Mapping[str, Any] = (
    {"process_group": 0} if sys.version_info >= (3, 11) else {"preexec_fn": os.setpgrp}
)


class Process(subprocess.Popen[bytes]):
    """A process that can describe how it ended."""

    def exit_code(self, seconds: float = 0.0) -> int | None:
        """Return the exit code, or ``None`` if the process is still running after *seconds*."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(seconds)
        return None

    def describe_exit(self, seconds: float = 0.0) -> str:
        """Wait up to *seconds* for the process to end; return a description of its end."""
        return describe_exit(self.exit_code(seconds))


class Child(Process):
    """A process that :meth:`Guardian.start` has started in its own group."""

    guardian: Guardian
    ending: Ending = GENTLE
    started: str = ""
    """When it started; see :func:`start_of`."""

    def end(self, ending: Ending | None = None) -> None:
        """End the process's group and stop watching it; *ending* defaults to :attr:`ending`."""
        end_group(self.pid, ending or self.ending, reap=self.poll, started=self.started)
        self.wait()
        self.guardian.release_group(self.pid)


def describe_exit(exit_code: int | None) -> str:
    """Describe how a process ended, given an exit code of :class:`subprocess.Popen`.

    ``None`` stands for a process that is still running but does not answer.
    """
    if exit_code is None:
        return "no longer answers"
    if exit_code < 0:
        try:
            return f"was killed by {signal.Signals(-exit_code).name}"
        except ValueError:  # a real-time signal, which has no name
            return f"was killed by signal {-exit_code}"
    return f"ended with exit status {exit_code}"


def has_exited(exit_code: int | None) -> bool:
    """Return whether a process ended by itself; see :func:`describe_exit`."""
    return exit_code is not None and exit_code >= 0


def last_lines(
    output: Path | IO[bytes], count: int = 5, *, errors: str = "", start: int = 0
) -> list[str]:
    """Return the last non-blank lines of an output, at most *count*.

    If lines match the regular expression *errors*, return only such lines.  Read at most the last
    :data:`TAIL_SIZE` bytes, and nothing before *start*.  An unreadable output has no lines.
    """
    try:
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(output.open("rb")) if isinstance(output, Path) else output
            file.seek(max(start, file.seek(0, os.SEEK_END) - TAIL_SIZE))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return ([line for line in lines if re.search(errors, line)] or lines)[-count:]


class GuardianLost(Exception):  # noqa: N818
    """The guardian process ended during the run, so nothing would clean up after the run."""

    def __init__(self) -> None:
        super().__init__("the process that cleans up after the run has ended too early")


class Guardian:
    """Starts the guardian process and sends it orders; lets it clean up when the context ends."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,  # so that nothing is left to be written when the pipe is closed
        )

    def __enter__(self) -> Guardian:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        # An interrupt here would let the run remove directories that programs still use.
        with _signals_deferred():
            self._process.stdin.close()
            self._process.wait()

    def start(
        self,
        command: Sequence[str],
        ending: Ending = GENTLE,
        *,
        session: bool = True,
        **options: Any,
    ) -> Child:
        """Start a process in its own group, and watch the group as :meth:`watch_group` does.

        If *session*, the process also begins its own session.  Linux gives every session an equal
        share of processor time, however many processes it has.  *options* are those of
        :class:`subprocess.Popen`.

        :raises OSError: if the command cannot be run
        :raises GuardianLost: if the guardian process has ended; the new process has ended, too
        """
        # An interrupt between starting and watching would leave a process that nothing ends.
        with _signals_deferred():
            group = {"start_new_session": True} if session else _IN_OWN_GROUP
            child = Child(command, **group, **options)
            child.guardian, child.ending, child.started = self, ending, start_of(child.pid)
            try:
                self.watch_group(child.pid, ending)
            except GuardianLost:
                with child:  # closes its pipes
                    child.end()
                raise
        return child

    def watch_group(self, group: int, ending: Ending = GENTLE) -> None:
        """Have the guardian end a group after the run, unless :meth:`release_group` comes first.

        :raises GuardianLost: if the guardian process has ended
        """
        started = start_of(group) or _NEVER
        self._send("watch", f"{group} {int(ending.signal)} {ending.grace} {started}")

    def release_group(self, group: int) -> None:
        """Stop watching a process group that has ended: its number may soon be reused."""
        with contextlib.suppress(GuardianLost):  # a lost guardian ends no group
            self._send("release", str(group))

    def watch_directory(self, path: Path) -> None:
        """Have the guardian remove a directory after the run.

        :raises GuardianLost: if the guardian process has ended
        """
        self._send("remove", str(path))

    def _send(self, word: str, argument: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(os.fsencode(f"{word} {argument}\n"))
        except BrokenPipeError:
            raise GuardianLost from None


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Defer SIGINT, SIGTERM and SIGHUP until the context ends, if this is the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    previous = {
        number: signal.signal(number, lambda number, _: arrived.append(number))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        if arrived:
            signal.raise_signal(arrived[0])


def start_of(pid: int) -> str:
    """Return when a process started, in clock ticks; "" if it has ended, or without ``/proc``."""
    with contextlib.suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        return stat.rpartition(")")[2].split()[_START_TIME]
    return ""


def end_group(
    group: int,
    ending: Ending = GENTLE,
    reap: Callable[[], object] = lambda: None,
    *,
    started: str = "",
) -> None:
    """Ask every process of a group to end, wait, and kill those that have not ended in time.

    The number of a group that has ended may be that of another program's group.  So nothing is
    signalled if the group's first process did not start when the group was *started*.  *reap* is
    called repeatedly, and can collect the exit status of a child of the caller.
    """
    end_groups({Group(group, started): ending}, reap)


@dataclass(frozen=True)
class Group:
    """A process group that this program has started."""

    number: int
    started: str = ""
    """When its first process started; see :func:`start_of`.  "" if its number is surely its own."""

    def signal(self, number: int) -> bool:
        """Send signal *number* to the group (0 sends none); return whether the group exists.

        While any process of the group is running, no other group can have its number.  So if there
        is a process with this number, it is the group's first one, or the group has ended.
        """
        if self.started and start_of(self.number) not in {"", self.started}:
            return False
        try:
            os.killpg(self.number, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True


def end_groups(endings: Mapping[Group, Ending], reap: Callable[[], object] = lambda: None) -> None:
    """End several groups at the same time; see :func:`end_group`."""
    start = time.monotonic()
    running = {group: ending for group, ending in endings.items() if group.signal(ending.signal)}
    for group in running:
        group.signal(signal.SIGCONT)  # a stopped process does not handle the first signal
    while running:
        time.sleep(CHECK_INTERVAL)
        reap()
        waited = time.monotonic() - start
        for group in [group for group, ending in running.items() if waited > ending.grace]:
            group.signal(signal.SIGKILL)
            del running[group]
        running = {group: ending for group, ending in running.items() if _is_running(group)}
    reap()


def _is_running(group: Group) -> bool:
    """Return whether any process of a group is still running.

    A process that has ended stays in its group as a zombie until its parent collects it.  If the
    parent has ended too, process 1 should collect the zombie, but in a container it may not do so.
    """
    if not group.signal(0):
        return False
    states = []
    for path in Path("/proc").glob("[0-9]*"):  # on Linux only
        with contextlib.suppress(OSError):  # the process has ended meanwhile
            stat = (path / "stat").read_text(errors="replace")
            state, _, its_group, *_ = stat.rpartition(")")[2].split()
            if int(its_group) == group.number:
                states.append(state)
    return not states or any(state not in "ZX" for state in states)


def _clean_up_after(lines: Iterable[str]) -> None:
    """Read orders until the pipe is closed; then end the groups and remove the directories."""
    groups: dict[int, tuple[Group, Ending]] = {}
    directories: list[str] = []
    for line in lines:
        word, _, argument = line.rstrip("\n").partition(" ")
        if word == "watch":
            group, number, grace, started = argument.split()
            groups[int(group)] = Group(int(group), started), Ending(int(number), float(grace))
        elif word == "release":
            groups.pop(int(argument), None)
        elif word == "remove":
            directories.append(argument)
    # A group may take seconds to end, so do not end the groups one after the other.
    end_groups(dict(groups.values()))
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with contextlib.suppress(OSError):
            signal.signal(_number, signal.SIG_IGN)
    _clean_up_after(map(os.fsdecode, sys.stdin.buffer))
