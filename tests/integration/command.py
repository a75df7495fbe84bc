"""Run the command as a user does, and inspect its results and leftovers."""

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
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil
import pyperf

import zodbshootout
from tests.integration.stacks import PATIENCE, end_with_stacks
from tests.integration.zygote import zygote
from zodbshootout.results.cell import cell_of

TESTS = Path(__file__).parents[1]
SOURCES = Path(zodbshootout.__file__).parents[1]
"""The sources of the tested command; another copy may be installed."""
OBJECTS = 5
"""Few, because a client that reads has up to 256 sets of as many objects written."""
QUICK = ("--object-counts", str(OBJECTS), "-p", "1", "-n", "2", "--min-time", "0.001")


@contextmanager
def open_directory() -> Iterator[Path]:
    """Create a temporary directory that any user may enter, because root's servers need that."""
    path = Path(tempfile.mkdtemp(prefix="zodbshootout-test-", dir="/tmp")).resolve()
    path.chmod(0o755)
    try:
        yield path
    finally:
        _remove(path)


def _remove(directory: Path) -> None:
    """Remove a directory from which a killed command's processes may still remove files."""
    for _ in range(100):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            return
        time.sleep(0.05)
    shutil.rmtree(directory)


Cells = dict[tuple[str, str], tuple[str, str]]
"""The state of each cell and the reason for it, by the contender's title and the benchmark."""
LONGEST = 280.0
"""Seconds after which a command is killed."""
END_OF_INPUT = "\x04"
"""The character that Ctrl-D sends on a terminal."""


@dataclass(frozen=True)
class Done:
    """The result of a finished command."""

    status: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The only line on standard error."""
        (line,) = self.err.splitlines()
        return line


def environment(directory: Path, **more: str) -> dict[str, str]:
    """Return environment variables that put temporary files and user data in *directory*."""
    temporary = directory / "tmp"
    temporary.mkdir(exist_ok=True)
    # With this variable, hundreds of processes would compile all sources.
    ours = {name: os.environ[name] for name in os.environ if name != "PYTHONDONTWRITEBYTECODE"}
    return {
        **ours,
        "TMPDIR": str(temporary),
        "XDG_DATA_HOME": str(directory / "data"),
        "PYTHONPATH": f"{TESTS}{os.pathsep}{SOURCES}",
        "COLUMNS": "1000",
        **more,
    }


class Command(subprocess.Popen[str]):
    """A process that ends if an exception leaves its context; what it was doing is printed."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            end_with_stacks(self.pid)
            # A server that is left may hold the pipes, and a test may have closed one.
            with suppress(subprocess.TimeoutExpired, ValueError):
                sys.stderr.write("\n".join(self.communicate(timeout=PATIENCE)))
        super().__exit__(kind, value, traceback)


def start(directory: Path, *words: str, **more: str) -> Command:
    return _start(directory, words, subprocess.PIPE, more)


def _start(directory: Path, words: Sequence[str], stdin: int, more: Mapping[str, str]) -> Command:
    return Command(
        [sys.executable, "-m", "zodbshootout", *words],
        cwd=directory,
        env=environment(directory, **more),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(directory: Path, *words: str, answers: str | None = None, **more: str) -> Done:
    """Run the command; *answers*, if given, are typed on a terminal."""
    with _keyboard(answers) as stdin:
        # An interpreter reads variables of Python's at its start.
        if sys.platform != "linux" or any(name.startswith("PYTHON") for name in more):
            with _start(directory, words, stdin, more) as process:
                out, err = process.communicate(timeout=LONGEST)
            return Done(process.returncode, out, err)
        variables = environment(directory, **more)
        forking = zygote(f"{TESTS}{os.pathsep}{SOURCES}")
        return Done(*forking.run(words, directory, variables, stdin, LONGEST))


@contextmanager
def _keyboard(answers: str | None) -> Iterator[int]:
    """Yield the descriptor of a terminal on which *answers* are typed, or of an empty file."""
    if answers is None:
        with Path(os.devnull).open() as file:
            yield file.fileno()
        return
    keyboard, terminal = pty.openpty()
    try:
        os.write(keyboard, f"{answers}{END_OF_INPUT}".encode())
        yield terminal
    finally:
        os.close(terminal)
        os.close(keyboard)


def shown_table(directory: Path, file: str) -> str:
    """Return what ``show`` prints of a file before the next commands."""
    done = run(directory, "show", file)
    assert done.status == 0, done.err
    return done.out.partition("Next:\n")[0]


def processes_in(directory: Path) -> dict[int, str]:
    """Return the command lines of the processes that run in *directory*, by process id.

    The command line of a server's process may lack the path of its data.  A process without a
    command line is about to end.
    """
    commands = {}
    for process in psutil.process_iter():
        try:
            words, place = process.cmdline(), process.cwd()
        except psutil.Error:  # it has ended, or belongs to another user
            continue
        if words and (Path(place).is_relative_to(directory) or str(directory) in " ".join(words)):
            commands[process.pid] = " ".join(words)
    return commands


def wait_until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
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
        (cell_of(one).title, one["benchmark"]): (one["state"], one["reason"])
        for one in map(json.loads, path.read_text().splitlines())
    }


def names_in(path: Path) -> set[str]:
    return set(pyperf.BenchmarkSuite.load(str(path)).get_benchmark_names())


def metadata_of(path: Path, name: str) -> Mapping[str, Any]:
    benchmark = pyperf.BenchmarkSuite.load(str(path)).get_benchmark(name)
    return dict(benchmark.get_metadata())


def pyperf_output(directory: Path, *words: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "pyperf", *words],
        cwd=directory, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
