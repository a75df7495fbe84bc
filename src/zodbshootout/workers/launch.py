"""Starting workers: a fork server for them, and the other end of each one's pipe."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any

import pyperf

from zodbshootout.client.outcome import BadSection, Failed, Failure
from zodbshootout.client.storage_info import StorageInfo
from zodbshootout.client.tasks import InspectStorage, Prepare, ValidateSection
from zodbshootout.guardian import Guardian, describe_exit, end_group
from zodbshootout.workers.task import (
    Assignment,
    Begin,
    CloseDatabases,
    Finish,
    Measure,
    PrepareSlice,
    ReopenDatabases,
    Slice,
    TakeSlice,
    Task,
    Try,
)

RUN_FILE = "run.json"
OUTPUT_FILE = "output"
"""What the directory of a worker holds: pyperf's run, and what the worker printed."""
PATIENCE = 5.0
"""Seconds in which a worker ends after its last answer, and its end is told of."""
PRINTED_LINES = 5
"""Of what a worker has printed last, so many lines are kept where it was killed."""


@dataclass(frozen=True)
class Launcher:
    """Starts workers that are all alike but for their tasks."""

    directory: Path
    """Where runs and what workers print are kept while these are at work."""
    guardian: Guardian
    environment: Mapping[str, str]
    python: str = sys.executable
    options: Sequence[str] = ()
    """What pyperf is given where something is measured: hooks, tracing."""
    affinity: str = ""
    """The numbers of the CPUs that workers may use, separated by commas; all where empty."""
    log: str | None = None
    secrets: Sequence[str] = ()
    """What workers are to log nowhere."""
    gevent: bool = False
    timeout: float | None = None
    """Seconds for which a worker may be at work."""
    open_timeout: float | None = None
    """Seconds for which a worker may be at work that looks at a contender."""
    relay: Callable[[str], None] = lambda _: None
    """Called with each line that a worker has printed."""
    interrupted: threading.Event = field(default_factory=threading.Event)
    """Set when the run is interrupted while a worker is at work."""
    _numbers: count[int] = field(default_factory=count)

    @contextmanager
    def fork_server(self, modules: Sequence[str] = ()) -> Iterator[ForkServer]:
        """Have an interpreter that forks workers; it has imported *modules* besides what all need.

        :raises Failed: when it cannot be started
        """
        ours, theirs = socket.socketpair()
        with ours, theirs:
            command = [
                self.python, "-m", "zodbshootout.workers.fork_server",
                f"--socket={theirs.fileno()}",
                f"--affinity={self.affinity}", *(f"--import={module}" for module in modules),
                *(["--gevent"] if self.gevent else []),
            ]  # fmt: skip
            path = self.directory / f"fork-server-{next(self._numbers)}"
            try:
                with path.open("wb") as output:
                    process = self.guardian.start(
                        command,
                        env=dict(self.environment),
                        pass_fds=[theirs.fileno()],
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                    )
            except OSError as error:
                path.unlink(missing_ok=True)
                raise Failed(Failure(f"no worker can be started: {error}")) from error
            theirs.close()
            try:
                yield ForkServer(self, ours, process, path)
            except BaseException:
                self.interrupted.set()
                raise
            finally:
                ours.close()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(PATIENCE)
                end_group(process.pid, reap=process.poll)
                process.wait()
                self.guardian.release_group(process.pid)
                path.unlink(missing_ok=True)


class ForkServer:
    """An interpreter that forks workers."""

    def __init__(
        self, launcher: Launcher, connection: socket.socket, process: subprocess.Popen[Any],
        output: Path,
    ) -> None:  # fmt: skip
        self._launcher = launcher
        self._socket = connection
        self._process = process
        self._output = output
        self._unread = b""
        self._ended: dict[int, int] = {}
        self._gone = False
        """Whether it says nothing any more."""

    def look(self, task: InspectStorage) -> StorageInfo:
        """Have a worker look at a contender.

        :raises Failed: when it could not
        """
        with self._worker(task) as worker:
            info: StorageInfo = worker.answer()
        return info

    def check(self, task: ValidateSection) -> BadSection | None:
        """Have a worker read the section of a contender; return what is wrong with it.

        :raises Failed: when it could not
        """
        with self._worker(task) as worker:
            flaw: BadSection | None = worker.answer()
        return flaw

    def prepare(self, task: Prepare) -> None:
        """Have a worker prepare a database.

        :raises Failed: when it could not
        """
        with self._worker(task) as worker:
            worker.answer()

    @contextmanager
    def measure(self, make_task: Callable[[Path], Measure]) -> Iterator[Worker]:
        """Have a worker that sets up its crew; :meth:`Worker.wait` waits until it has.

        *make_task* is told where its run goes.

        :raises Failed: when no worker can be had
        """
        directory = self._launcher.directory / f"run-{next(self._launcher._numbers)}"
        directory.mkdir(mode=0o700)
        try:
            with self._worker(make_task(directory / RUN_FILE)) as worker:
                yield worker
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    @contextmanager
    def _worker(self, task: Task) -> Iterator[Worker]:
        """Start a worker; when the context ends none of its processes is left."""
        launcher = self._launcher
        output = launcher.directory / f"{OUTPUT_FILE}-{next(launcher._numbers)}"
        output.touch(mode=0o600)
        ours, theirs = Pipe()
        with ExitStack() as stack:
            stack.callback(output.unlink, missing_ok=True)
            stack.enter_context(ours)
            with theirs:
                pid = self._fork(output, theirs)
            worker = Worker(self, launcher, pid, ours, output, task)
            stack.callback(worker.relay)
            stack.callback(self.end, pid)
            with suppress(BrokenPipeError, ConnectionResetError):  # its answer tells of its end
                ours.send(Assignment(task, launcher.log, launcher.secrets, launcher.options))
            yield worker

    def _fork(self, output: Path, connection: Connection) -> int:
        try:
            order = json.dumps(str(output)).encode()
            socket.send_fds(self._socket, [order], [connection.fileno()])
            while (said := self.next_message(PATIENCE * 12)) and "started" not in said:
                pass
        except BrokenPipeError:
            said = None
        except OSError as error:
            raise Failed(Failure(f"no worker can be started: {error}")) from error
        if not said:
            raise Failed(self.failure())
        pid = said["started"]
        self._launcher.guardian.watch_group(pid)
        return pid

    def end(self, pid: int) -> None:
        """End a worker and its clients, if they have not ended."""
        # Its clients are of its group, and outlive it where it was killed.
        end_group(pid, reap=lambda: self.exit_code(pid, 0.0))
        self.exit_code(pid, PATIENCE)
        self._launcher.guardian.release_group(pid)

    def exit_code(self, pid: int, seconds: float) -> int | None:
        """Return how a worker has ended, ``None`` where it has not within so many *seconds*."""
        deadline = time.monotonic() + seconds
        while pid not in self._ended:
            left = max(0.0, deadline - time.monotonic())
            if not self.next_message(left) and (self._gone or time.monotonic() >= deadline):
                return None
        return self._ended[pid]

    def next_message(self, seconds: float) -> dict[str, int] | None:
        """Return what the process says next; ``None`` where it says nothing, or is gone."""
        while b"\n" not in self._unread:
            if not wait([self._socket], seconds):
                return None
            try:
                received = self._socket.recv(65536)
            except ConnectionError:
                received = b""
            if not received:
                self._gone = True
                return None
            self._unread += received
        line, _, self._unread = self._unread.partition(b"\n")
        said: dict[str, int] = json.loads(line)
        if "ended" in said:
            self._ended[said["ended"]] = said["exit_code"]
        return said

    @property
    def socket(self) -> socket.socket:
        """Where it says something."""
        return self._socket

    def failure(self) -> Failure:
        """Return why nothing can be forked any more."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE)
        cause = f"the process that starts workers {describe_exit(self._process.returncode)}"
        printed = _last_lines(self._output)
        if printed:
            cause = f"{cause}: {printed[-1]}"
        return Failure(cause, "\n".join(printed), crashed=True)


@dataclass
class Worker:
    """A worker at work, or waiting for its turn."""

    fork_server: ForkServer
    launcher: Launcher
    pid: int
    connection: Connection
    output: Path
    """Where what it prints goes."""
    task: Task
    _left: float | None = field(init=False)
    """Seconds for which it may still be at work."""
    _relayed: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._left, self._option = self.launcher.timeout, "--timeout"
        if isinstance(self.task, (ValidateSection, InspectStorage)):
            self._left, self._option = self.launcher.open_timeout, "--open-timeout"
        self._limit = self._left

    def start_attempt(self, loops: int) -> None:
        """Begin with :meth:`attempt`; :meth:`wait` waits for its end."""
        self._send(Try(loops))

    def start_preparing(self) -> None:
        """Begin to prepare the next slice; :meth:`wait` waits until it is."""
        self._send(PrepareSlice())

    def wait(self) -> None:
        """Wait until what was begun is done, at first the crew's being set up.

        :raises Failed: when it could not be done
        """
        self.answer()

    def attempt(self, loops: int) -> Slice:
        """Have a slice taken that does not count.

        :raises Failed: when it could not be
        """
        found: Slice = self._ask(Try(loops))
        return found

    def begin(self, loops: int, values: int, warmups: int) -> None:
        """Get ready for the slices that count.

        :raises Failed: when it cannot
        """
        self._ask(Begin(loops, values, warmups))

    def take_slice(self, number: int) -> Slice:
        """Have the slice taken that was prepared.

        :raises Failed: when it could not be
        """
        found: Slice = self._ask(TakeSlice(number))
        return found

    def close_databases(self) -> None:
        """Have all clients close their databases.

        :raises Failed: when they could not
        """
        self._ask(CloseDatabases())

    def reopen_databases(self) -> None:
        """Have all clients open their databases again.

        :raises Failed: when they could not
        """
        self._ask(ReopenDatabases())

    def start_finishing(self) -> None:
        """Begin to have everything checked; :meth:`finish` waits until it is."""
        self._send(Finish())

    def finish(self) -> pyperf.Benchmark:
        """Wait until everything is checked; return the run as pyperf has it.

        :raises Failed: when something is not as it should be
        """
        self.answer()
        assert isinstance(self.task, Measure)
        try:
            return pyperf.Benchmark.load(str(self.task.run_file))
        except (OSError, ValueError, KeyError) as error:
            raise Failed(Failure(f"the worker's run cannot be read: {error}")) from error

    def abandon(self) -> None:
        """End the worker and its clients at once, whatever they are doing."""
        self.fork_server.end(self.pid)

    def _ask(self, order: object) -> Any:
        self._send(order)
        return self.answer()

    def _send(self, order: object) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # its answer tells of its end
            self.connection.send(order)

    def answer(self) -> Any:
        """Wait for an answer, or for the end of the worker or of its time.

        :raises Failed: when it failed
        """
        began = time.monotonic()
        answer = self._received()
        self.relay()
        if self._left is not None:
            self._left -= time.monotonic() - began
        if isinstance(answer, Failure):
            raise Failed(self._with_what_was_printed(answer))
        return answer

    def _with_what_was_printed(self, failure: Failure) -> Failure:
        """Return the failure of a process that has printed why it ended."""
        printed = _last_lines(self.output)
        if not (failure.crashed and "ended with exit status" in failure.cause and printed):
            return failure
        return replace(failure, cause=f"{failure.cause}: {printed[-1]}", detail="\n".join(printed))

    def _received(self) -> Any:
        deadline = None if self._left is None else time.monotonic() + self._left
        while True:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                limit = f"{self._limit:g} s ({self._option})"
                return Failure(f"not done within its time limit of {limit}")
            ready = wait([self.connection, self.fork_server.socket], left)
            if self.connection in ready:
                try:
                    return self.connection.recv()
                except (EOFError, OSError):
                    return self._end_as_failure(self.fork_server.exit_code(self.pid, PATIENCE))
            if ready and not self.fork_server.next_message(0.0) and not self.connection.poll():
                return self.fork_server.failure()
            code = self.fork_server.exit_code(self.pid, 0.0)
            if code is not None and not self.connection.poll():
                return self._end_as_failure(code)

    def _end_as_failure(self, exit_code: int | None) -> Failure:
        cause = f"the worker {describe_exit(exit_code)}"
        return Failure(cause, "\n".join(_last_lines(self.output)), crashed=True)

    def relay(self) -> None:
        """Pass on what the worker has printed since it was asked last."""
        with suppress(FileNotFoundError), self.output.open("rb") as file:
            file.seek(self._relayed)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._relayed += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            self.launcher.relay(line)


def _last_lines(path: Path) -> list[str]:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return [line.strip() for line in lines if line.strip()][-PRINTED_LINES:]
