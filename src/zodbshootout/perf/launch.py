"""Starting workers, one at a time, and taking what they leave."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO

import pyperf

from zodbshootout.guardian import Guardian, end_group, manner_of_end
from zodbshootout.model import Effort
from zodbshootout.perf.restarting import answer_to
from zodbshootout.perf.task import REPORT_FILE, RUN_FILE, TASK_FILE, Report, Task


class WorkerFailed(Exception):  # noqa: N818
    """A worker that left no run behind; ``report`` says why."""

    def __init__(self, report: Report) -> None:
        super().__init__(report.cause)
        self.report = report


@dataclass(frozen=True)
class Launcher:
    """Starts workers that are all alike but for their tasks."""

    directory: Path
    """Where tasks and reports are exchanged."""
    guardian: Guardian
    environment: Mapping[str, str]
    python: str = sys.executable
    options: Sequence[str] = ()
    """What every worker's pyperf is given: hooks, affinity, tracing."""
    gevent: bool = False
    timeout: float | None = None
    """Seconds that one worker may take."""
    relay: Callable[[str], None] = lambda _: None
    """Called with each line that a worker prints, as it comes."""
    restart: Callable[[str], None] = lambda _: None
    """Called where a worker asks that the servers of a contender, which it names, be restarted."""
    interrupted: threading.Event = field(default_factory=threading.Event)
    """Set when the run is interrupted while a worker is at work."""
    _numbers: count[int] = field(default_factory=count)

    def do(self, task: Task) -> Mapping[str, str]:
        """Have a worker look or plant; return the facts that it reports.

        :raises WorkerFailed: when it could not
        """
        effort = Effort(processes=1, values=1, warmups=0, loops=1, min_time=0.0)
        directory = self._work(task, effort)
        facts = Report.read(directory / REPORT_FILE).facts
        shutil.rmtree(directory)
        return facts

    def measure(self, task: Task, effort: Effort) -> pyperf.Benchmark:
        """Have a worker measure a cell; return its run as pyperf has it.

        :raises WorkerFailed: when it could not
        """
        directory = self._work(task, effort)
        try:
            benchmark = pyperf.Benchmark.load(str(directory / RUN_FILE))
        except (OSError, ValueError, KeyError) as error:
            report = Report("failed", f"the worker's run cannot be read: {error}")
            raise WorkerFailed(report) from error
        shutil.rmtree(directory)
        return benchmark

    def _work(self, task: Task, effort: Effort) -> Path:
        directory = self.directory / f"worker-{next(self._numbers)}"
        last_words: deque[str] = deque(maxlen=5)
        try:
            directory.mkdir(mode=0o700)
            task.write(directory / TASK_FILE)
            exit_code = self._run(self._command(directory, effort), last_words)
        except OSError as error:
            report = Report("failed", f"no worker can be started: {error}")
            raise WorkerFailed(report) from error
        try:
            report = Report.read(directory / REPORT_FILE)
        except (OSError, ValueError, TypeError):
            report = self._post_mortem(exit_code, last_words)
        if report.state != "done":
            raise WorkerFailed(report)
        return directory

    def _command(self, directory: Path, effort: Effort) -> list[str]:
        return [
            self.python,
            "-m",
            "zodbshootout.perf.worker",
            "--worker",
            "--worker-task=0",
            f"--values={effort.values}",
            f"--warmups={effort.warmups}",
            f"--loops={effort.loops}",
            f"--min-time={effort.min_time}",
            *self.options,
            *(["--gevent"] if self.gevent else []),
            f"--task={directory}",
        ]

    def _run(self, command: Sequence[str], last_words: deque[str]) -> int | None:
        """Run a worker to its end, or to the end of its time; leave none of its processes.

        Return its exit code, or ``None`` where its time was up.
        """
        worker = self.guardian.start(
            command,
            env=dict(self.environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert worker.stdout is not None
        assert worker.stdin is not None
        listener = threading.Thread(
            target=self._listen, args=(worker.stdout, worker.stdin, last_words), daemon=True
        )
        try:
            listener.start()
            return worker.wait(self.timeout)
        except subprocess.TimeoutExpired:
            return None
        except BaseException:
            self.interrupted.set()
            raise
        finally:
            # Its clients are of its group, and outlive it where it was killed.
            end_group(worker.pid, reap=worker.poll)
            worker.wait()
            self.guardian.release_group(worker.pid)
            listener.join()
            worker.stdout.close()
            with suppress(BrokenPipeError):
                worker.stdin.close()

    def _post_mortem(self, exit_code: int | None, last_words: Sequence[str]) -> Report:
        if exit_code is None:
            return Report(
                "failed", f"not done within its time limit of {self.timeout:g} s (--timeout)"
            )
        cause = f"the worker {manner_of_end(exit_code)}"
        said = [line for line in last_words if line]
        if exit_code > 0 and said:
            cause = f"{cause}: {said[-1]}"
        return Report("failed", cause, "\n".join(said))

    def _listen(self, output: IO[str], answers: IO[str], last_words: deque[str]) -> None:
        for line in output:
            answer = answer_to(line.rstrip("\n"), self.restart)
            if answer is None:
                last_words.append(line.strip())
                self.relay(line.rstrip("\n"))
                continue
            with suppress(BrokenPipeError):  # a worker that is gone waits for nothing
                answers.write(answer)
                answers.flush()


_KEPT = (
    "PATH", "HOME", "USER", "LOGNAME", "TEMP", "TMP", "TMPDIR", "PYTHONPATH", "PYTHONHASHSEED",
    "PYTHON_CPU_COUNT", "PYTHON_GIL", "PYPERF_PERF_RECORD_DATA_DIR",
    "PYPERF_PERF_RECORD_EXTRA_OPTS", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
    "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
"""What pyperf keeps of the environment, and what Python and dynamic libraries depend on."""
_KEPT_PREFIXES = (
    "PG", "MYSQL", "MARIADB", "ORACLE", "TNS_", "NLS_", "RS_", "RELSTORAGE_", "ZEO_", "ZODB_",
    "GEVENT",
)  # fmt: skip
"""What database clients and storages take from the environment."""
_LOCALE_PREFIXES = ("LANG", "LC_")


def worker_environment(
    environment: Mapping[str, str], inherit: Sequence[str], *, locale: bool, copy_all: bool
) -> dict[str, str]:
    """Return the part of *environment* that workers get.

    As pyperf has it that is little, lest a long PATH or a debugging aid tell in the timings; what
    storages need to reach their servers stays, and what is named in *inherit*.
    """
    if copy_all:
        return dict(environment)
    prefixes = _KEPT_PREFIXES + (_LOCALE_PREFIXES if locale else ())
    names = {*_KEPT, *inherit}
    return {
        name: value
        for name, value in environment.items()
        if name in names or name.startswith(prefixes)
    }


def default_affinity() -> str | None:
    """Return the CPUs that this process may use, as pyperf's ``--affinity`` takes them.

    Without that option pyperf pins workers to isolated CPUs, if there are any: a crew's clients
    would then share them however few they are.
    """
    if not hasattr(os, "sched_getaffinity"):
        return None
    return ",".join(map(str, sorted(os.sched_getaffinity(0))))
