"""Running the command as a user does, and looking at what it leaves."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyperf

import zodbshootout

TESTS = Path(__file__).parents[1]
SOURCES = Path(zodbshootout.__file__).parents[1]
"""The sources of the command that is tested; another copy may be installed."""
QUICK = ("--object-counts", "20", "-p", "1", "-n", "2", "--min-time", "0.001")


@contextmanager
def open_directory() -> Iterator[Path]:
    """Have a directory that any user may enter, as those do that root has run servers."""
    path = Path(tempfile.mkdtemp(prefix="zodbshootout-test-", dir="/tmp")).resolve()
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path)


Cells = dict[tuple[str, str], tuple[str, str]]
"""The state of each cell and the reason for it, by contender and benchmark."""
END_OF_INPUT = "\x04"
"""The character that Ctrl-D sends on a terminal."""


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    status: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The only line on standard error."""
        (line,) = self.err.splitlines()
        return line


def environment(directory: Path, **more: str) -> dict[str, str]:
    """Return an environment in which everything temporary and of the user is in *directory*."""
    temporary = directory / "tmp"
    temporary.mkdir(exist_ok=True)
    return {
        **os.environ,
        "TMPDIR": str(temporary),
        "XDG_DATA_HOME": str(directory / "data"),
        "PYTHONPATH": f"{TESTS}{os.pathsep}{SOURCES}",
        "COLUMNS": "200",
        **more,
    }


def start(directory: Path, *words: str, **more: str) -> subprocess.Popen[str]:
    return _started(directory, words, subprocess.PIPE, more)


def _started(
    directory: Path, words: Sequence[str], stdin: int, more: Mapping[str, str]
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "zodbshootout", *words],
        cwd=directory,
        env=environment(directory, **more),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(directory: Path, *words: str, answers: str | None = None, **more: str) -> Done:
    """Run the command; with *answers* there is a terminal on which they are typed."""
    if answers is None:
        process = start(directory, *words, **more)
        return _ended(process, "")
    keyboard, terminal = pty.openpty()
    try:
        process = _started(directory, words, terminal, more)
        os.write(keyboard, f"{answers}{END_OF_INPUT}".encode())
        return _ended(process)
    finally:
        os.close(terminal)
        os.close(keyboard)


def _ended(process: subprocess.Popen[str], answers: str | None = None) -> Done:
    """Wait for the end of a process, which is killed if it takes too long."""
    with process:
        try:
            out, err = process.communicate(answers, timeout=280)
        finally:
            process.kill()
    return Done(process.returncode, out, err)


def processes_in(directory: Path) -> dict[int, str]:
    """Return the commands of the processes that are at work in *directory*, by their ids.

    The command line of a server's process need not say where its data are.  A process without a
    command line is about to end.
    """
    commands = {}
    for process in psutil.process_iter():
        try:
            words, place = process.cmdline(), process.cwd()
        except psutil.Error:  # it has ended, or is somebody else's
            continue
        if words and (Path(place).is_relative_to(directory) or str(directory) in " ".join(words)):
            commands[process.pid] = " ".join(words)
    return commands


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.05)


def left_behind(directory: Path) -> list[str]:
    """Return the processes and temporary files that a command in *directory* left."""
    files = [path.name for path in (directory / "tmp").iterdir()]
    return [*processes_in(directory).values(), *files]


def cells(path: Path) -> Cells:
    return {
        (cell["contender"], cell["benchmark"]): (cell["state"], cell["reason"])
        for cell in map(json.loads, path.read_text().splitlines())
    }


def names_in(path: Path) -> set[str]:
    return set(pyperf.BenchmarkSuite.load(str(path)).get_benchmark_names())


def metadata_of(path: Path, name: str) -> Mapping[str, object]:
    benchmark = pyperf.BenchmarkSuite.load(str(path)).get_benchmark(name)
    return dict(benchmark.get_metadata())


def pyperf_says(directory: Path, *words: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "pyperf", *words],
        cwd=directory, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
