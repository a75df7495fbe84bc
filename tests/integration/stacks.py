"""End a command, and show where each of its processes was."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

PATIENCE = 10.0
"""Seconds after which a process that does not end by itself is killed."""
ISOLATED = {"guardian.py", "relay.py"}
"""The names of forked processes that stand for isolated Pythons."""


def end_with_stacks(pid: int) -> None:
    """End a command and its descendants; print the stacks of those in Python on standard error.

    Its guardian goes on, to end servers and to remove what all of them leave.
    """
    try:
        command = psutil.Process(pid)
        processes = [command, *command.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    ours = [process for process in processes if _shows_stacks(process)]
    # Otherwise the end of one would change the stacks of the others.
    for process in ours:
        with suppress(psutil.Error):
            process.suspend()
    for process in reversed(ours):  # after the command has ended, the guardian ends the others
        with suppress(psutil.Error, OSError):
            words = " ".join(process.cmdline())
            sys.stderr.write(f"\n{process.pid} {words}\n{_stacks(process)}")
    _wait(processes)


def _shows_stacks(process: psutil.Process) -> bool:
    """Return whether sitecustomize is in effect in a process: in Pythons that are not isolated.

    A forked guardian or relay is not either, but has the command line of the command.
    """
    with suppress(psutil.Error):
        words = process.cmdline()
        isolated = "-I" in words or process.name() in ISOLATED
        return "python" in next(iter(words), "") and not isolated
    return False


def _stacks(process: psutil.Process) -> str:
    """Abort a suspended process, and return what it prints into a file.

    What it prints into a pipe is left to the reader of the pipe.
    """
    printed = Path(f"/proc/{process.pid}/fd/2")
    if not printed.is_file():
        _abort(process)
        return ""
    with printed.open(errors="replace") as file:
        file.seek(0, 2)
        _abort(process)
        return file.read()


def _abort(process: psutil.Process) -> None:
    process.send_signal(signal.SIGABRT)
    process.resume()
    _wait([process])


def _wait(processes: Sequence[psutil.Process]) -> None:
    """Wait until processes have ended; kill those that do not."""
    deadline = time.monotonic() + PATIENCE
    while any(map(_is_running, processes)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for process in filter(_is_running, processes):
        with suppress(psutil.Error):
            process.kill()


def _is_running(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
