"""Start fork servers and, through them, workers; communicate with both."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any

import pyperf

from zodbshootout.client.preparation import Preparation
from zodbshootout.client.protocol import Call
from zodbshootout.crews.logs import LogSettings
from zodbshootout.crews.traffic import Counts
from zodbshootout.guardian import (
    END_TIMEOUT,
    Child,
    Guardian,
    describe_exit,
    end_group,
    has_exited,
)
from zodbshootout.model.outcome import Failed, Failure
from zodbshootout.model.specification import (
    Interpreter,
    Specification,
    Storage,
    for_another_python,
)
from zodbshootout.model.storage_facts import StorageInfo
from zodbshootout.workers.histograms import histogram
from zodbshootout.workers.measuring import Calibrations, Measure, Slice, Turns
from zodbshootout.workers.output_file import OutputFile

START_TIMEOUT = 60.0
"""Seconds to wait for a fork server to fork a worker."""
LEAVING_TIME = 0.5
"""Seconds in which a worker that has answered may end by itself.  Ending it takes longer, because
processes of its group are looked for among all processes of the machine."""
SILENCE = 30.0
"""Seconds after which the user is told who is awaited."""
CHECK_INTERVAL = 0.5
"""Seconds between two checks of the sizes of files with output."""
_PROGRAM = "zodbshootout.workers.fork_server"
_IN_ANOTHER_PYTHON = (
    "import os, sys; "
    "sys.path[:] = filter(None, [*sys.argv.pop(1).split(os.pathsep), *sys.path]); "
    f"from {_PROGRAM} import main; main()"
)


@dataclass(frozen=True)
class TimeLimit:
    """The maximum time that a worker may spend on its task or, if it measures, on each run."""

    seconds: float
    option: str = ""
    """The command's option that sets the limit, if there is one."""

    def __str__(self) -> str:
        return f"{self.seconds:g} s" + (f" ({self.option})" if self.option else "")


@dataclass(frozen=True)
class Launcher:
    """Starts fork servers, all with the same settings."""

    directory: Path
    """The directory for the output of running processes."""
    guardian: Guardian
    environment: Mapping[str, str]
    working: TimeLimit
    opening: TimeLimit
    """The time limit of a worker that only opens a storage."""
    python: str = sys.executable
    options: Sequence[str] = ()
    """pyperf's options for measuring, such as hooks and tracing."""
    affinity: str = ""
    """The numbers of the CPUs that workers may use, separated by commas; empty for all."""
    logging: LogSettings = field(default_factory=LogSettings)
    gevent: bool = False
    own_sessions: bool = True
    """Whether each process gets its own session; see :meth:`Guardian.start`."""
    relay: Callable[[str], None] = lambda _: None
    """A function that is called with each line that a worker prints."""
    awaited: Callable[[str], None] = lambda _: None
    """A function that is called with a line about a worker that has not answered for long, once
    for each contender and benchmark."""
    _told: set[str] = field(default_factory=set)
    _numbers: count[int] = field(default_factory=count)

    def tell(self, subject: str, limit: TimeLimit) -> None:
        """Say, once, that a measurement has not answered for :data:`SILENCE`."""
        if subject and subject not in self._told:
            self._told.add(subject)
            self.awaited(f"{subject}: no answer for {SILENCE:g} s; waiting for at most {limit}")

    @contextmanager
    def fork_server(self, interpreter: Interpreter | None = None) -> Iterator[ForkServer]:
        """Start a process that forks workers; when the context ends, end the process.

        The process runs in *interpreter*, by default in the Python of this launcher.

        :raises Failed: if the process cannot be started
        """
        ours, theirs = socket.socketpair()
        with ours, theirs:
            path = self.directory / f"fork-server-{next(self._numbers)}"
            try:
                with _starting(interpreter), path.open("ab") as output:
                    process = self.guardian.start(
                        self._command(interpreter, theirs.fileno()),
                        session=self.own_sessions,
                        env=self._variables(interpreter),
                        pass_fds=[theirs.fileno()],
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                    )
                theirs.close()
                try:
                    if self.affinity:  # PyPy cannot set its own affinity
                        with _starting(interpreter):
                            os.sched_setaffinity(process.pid, map(int, self.affinity.split(",")))
                    yield ForkServer(self, ours, process, OutputFile(path), interpreter)
                finally:
                    ours.close()
                    process.exit_code(END_TIMEOUT)
                    process.end()
            finally:
                path.unlink(missing_ok=True)

    def _command(self, interpreter: Interpreter | None, descriptor: int) -> Sequence[str]:
        program = [self.python, "-m", _PROGRAM]
        gevent = self.gevent
        if interpreter is not None:
            gevent = interpreter.gevent
            program = [interpreter.executable, "-c", _IN_ANOTHER_PYTHON, interpreter.modules]
        return [
            *program, f"--socket={descriptor}",
            *(["--gevent"] if gevent else []),
            *([] if self.own_sessions else ["--one-session"]),
        ]  # fmt: skip

    def _variables(self, interpreter: Interpreter | None) -> Mapping[str, str]:
        # Killed clients leave files, which are removed with this directory.
        variables = {**self.environment, "TMPDIR": str(self.directory)}
        if interpreter is None or interpreter.sees_ours:
            return variables
        return for_another_python(variables)


@contextmanager
def _starting(interpreter: Interpreter | None = None) -> Iterator[None]:
    """Turn a system error, such as a full disk, into :class:`Failed`."""
    try:
        yield
    except OSError as error:
        cause = f"cannot start a worker: {error}"
        if interpreter is not None and interpreter.name:
            cause = f"the Python of environment {interpreter.name} cannot be started: {error}"
        raise Failed(Failure(cause)) from error


class ForkServer:
    """Sends orders to a process that forks workers.

    Methods raise :class:`Failed` if a worker cannot be started, or fails at its task.
    """

    def __init__(
        self,
        launcher: Launcher,
        connection: socket.socket,
        process: Child,
        output: OutputFile,
        interpreter: Interpreter | None = None,
    ) -> None:
        self._launcher = launcher
        self._name = "the process that starts workers"
        if interpreter is not None and interpreter.name:
            self._name = f"the Python of environment {interpreter.name}"
        self.socket = connection
        self._process = process
        self._output = output
        self._unread = b""
        self._running: dict[int, Worker] = {}
        """The workers that have not ended, by process ID."""
        self._gone = False
        """Whether the process has closed the socket."""
        self._answers = True
        self.imported: list[str] = []
        """The modules that the process was asked to import."""
        self._imports = False
        """Whether the process has not answered yet that it has imported them."""

    def is_usable(self) -> bool:
        """Return whether the process is running and has answered so far."""
        return self._answers and self._process.exit_code() is None

    def import_modules(self, modules: Sequence[str]) -> None:
        """Import *modules* in the process before it forks workers."""
        self.start_import(modules)
        self._finish_import()

    def start_import(self, modules: Sequence[str]) -> None:
        """Have the process import *modules*; do not wait until it has."""
        missing = [module for module in modules if module not in self.imported]
        if missing:
            self._finish_import()
            self._send(" ".join(missing).encode())
            self.imported += missing
            self._imports = True

    def _finish_import(self) -> None:
        if self._imports:
            self._answer("imported")
            self._imports = False

    def pause(self) -> None:
        """Let the process pause, unless it has ended."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let the process go on after a pause."""
        self._process.send_signal(signal.SIGCONT)

    def end_now(self) -> None:
        """End the process, which has no workers, even if it imports modules or pauses."""
        self._process.end()

    def inspect(self, storage: Storage) -> StorageInfo:
        """Have a worker open *storage*; return facts about it."""
        info: StorageInfo = self._result("inspect", storage, self._launcher.opening)
        return info

    def prepare(self, preparation: Preparation) -> None:
        """Have a worker prepare a database."""
        self._result("prepare", preparation, self._launcher.working)

    def count(self, specification: Specification) -> Counts:
        """Have a worker count the traffic of single iterations."""
        counts: Counts = self._result("count", specification, self._launcher.working)
        return counts

    def measure(self, task: Measure) -> AbstractContextManager[Worker]:
        """Start a worker that sets up clients; :meth:`Worker.wait` waits until they are ready."""
        call = Call("measure", (task, self._launcher.options))
        specification = task.specification
        subject = f"{specification.parameters.owner}: {specification.benchmark}"
        return self._worker(call, self._launcher.working, subject=subject)

    def lead(self) -> AbstractContextManager[Worker]:
        """Start a worker that answers calls to :class:`~zodbshootout.crews.hosts.Leading`."""
        return self._worker(Call("lead"), self._launcher.working, "the process of its clients")

    def operate(
        self, operation: Specification, calibrations: Calibrations
    ) -> AbstractContextManager[Worker]:
        """Start a worker that answers calls to :class:`~zodbshootout.client.operation.Operation`.

        The worker's round trips to servers take as long as those of clients on this host.
        """
        call = Call("operate", (operation.storage, calibrations.get("", {})))
        return self._worker(call, self._launcher.working, f"the process of {operation.benchmark}")

    def _result(self, name: str, argument: object, limit: TimeLimit) -> Any:
        with self._worker(Call(name, (argument,)), limit) as worker:
            return worker.wait()

    @contextmanager
    def _worker(
        self, call: Call, limit: TimeLimit, name: str = "the worker", subject: str = ""
    ) -> Iterator[Worker]:
        """Start a worker; when the context ends, end the worker's remaining processes."""
        launcher = self._launcher
        path = launcher.directory / f"output-{next(launcher._numbers)}"
        with ExitStack() as stack:
            stack.callback(path.unlink, missing_ok=True)
            with _starting():
                path.touch(mode=0o600)
                ours, theirs = Pipe()
            stack.enter_context(ours)
            with theirs:
                pid = self._order(os.fsencode(path), [theirs.fileno()], "started")
                launcher.guardian.watch_group(pid)
            output = OutputFile(path, launcher.relay)
            awaited = partial(launcher.tell, subject, limit)
            worker = Worker(self, pid, ours, output, limit, name, awaited)
            self._running[pid] = worker
            stack.callback(worker.output.close)
            stack.callback(self.end, worker)
            worker.send(launcher.logging)
            worker.send(call)
            yield worker
            self.exit_code(worker, LEAVING_TIME)

    def _order(self, text: bytes, descriptors: Sequence[int], answer: str) -> int:
        """Send an order; wait for a message that has the key *answer*; return the key's value."""
        self._finish_import()
        self._send(text, descriptors)
        return self._answer(answer)

    def _send(self, text: bytes, descriptors: Sequence[int] = ()) -> None:
        if not self._answers:  # a late answer would be mistaken for this order's
            raise Failed(self.failure())
        with _starting(), suppress(BrokenPipeError):
            socket.send_fds(self.socket, [text], descriptors)

    def _answer(self, name: str) -> int:
        """Wait for a message that has the key *name*; return the key's value."""
        with _starting():
            while (message := self.next_message(START_TIMEOUT)) and name not in message:
                pass
        if not message:
            self._answers = False
            raise Failed(self.failure())
        return message[name]

    def end(self, worker: Worker) -> None:
        """End a worker and its clients, unless they have ended."""
        self.exit_code(worker, 0.0)
        if self._running.get(worker.pid) is not worker:
            return  # the process ID may have been reused
        end_group(worker.pid, reap=lambda: self.exit_code(worker, 0.0))
        self.exit_code(worker, END_TIMEOUT)
        self._forget(worker.pid)

    def _forget(self, pid: int) -> Worker | None:
        worker = self._running.pop(pid, None)
        if worker is not None:
            self._launcher.guardian.release_group(pid)
        return worker

    def exit_code(self, worker: Worker, seconds: float) -> int | None:
        """Return the exit code of a worker, or ``None`` if it is still running after *seconds*."""
        deadline = time.monotonic() + seconds
        while worker.exit_code is None:
            left = max(0.0, deadline - time.monotonic())
            if not self.next_message(left) and (self._gone or time.monotonic() >= deadline):
                break
        return worker.exit_code

    def next_message(self, seconds: float) -> dict[str, int] | None:
        """Return the next message, or ``None`` if *seconds* pass or the socket closes."""
        while b"\n" not in self._unread:
            if not wait([self.socket], seconds):
                return None
            try:
                received = self.socket.recv(65536)
            except ConnectionError:
                received = b""
            if not received:
                self._gone = True
                return None
            self._unread += received
        line, _, self._unread = self._unread.partition(b"\n")
        message: dict[str, int] = json.loads(line)
        if "ended" in message:
            ended = self._forget(message["ended"])
            if ended is not None:
                ended.exit_code = message["exit_code"]
        return message

    @property
    def is_gone(self) -> bool:
        """Whether the process has closed the socket."""
        return self._gone

    def limit_outputs(self) -> None:
        """Empty each output file of the process and its workers that is too large."""
        for output in [self._output, *(worker.output for worker in self._running.values())]:
            output.limit()

    def failure(self) -> Failure:
        """Return the reason why the process no longer forks workers."""
        cause = f"{self._name} {self._process.describe_exit(END_TIMEOUT)}"
        printed = self._output.last_lines()
        if printed:
            cause = f"{cause}: {printed[-1]}"
        return Failure(cause, "\n".join(printed), crashed=True)


@dataclass
class Worker:
    """Sends calls to a worker through a pipe, and receives the answers.

    Methods raise :class:`Failed` if the worker has failed, has ended or exceeds its time limit.
    """

    fork_server: ForkServer
    pid: int
    connection: Connection
    output: OutputFile
    limit: TimeLimit
    name: str = "the worker"
    """The worker's name in messages."""
    awaited: Callable[[], None] = lambda: None
    """A function that is called if the worker has not answered for :data:`SILENCE` seconds."""
    exit_code: int | None = None
    """The worker's exit code, once the fork server has reported the worker's end."""
    _worked: float = 0.0
    """Seconds that the worker has worked on the current run."""

    def start(self, name: str, *args: Any) -> None:
        """Call a method of :class:`~.measuring.Measuring`, or ``finish``; return immediately."""
        self.send(Call(name, args))

    def attempt(self, loops: int) -> Slice:
        """Have each client do *loops* iterations that are not part of a value."""
        taken: Slice = self.call("attempt", loops)
        return taken

    def begin(self, loops: int, values: int, warmups: int, expected: float = 0.0) -> None:
        """Begin a run; *expected* is a value from an earlier run, or 0."""
        self.call("begin", loops, values, warmups, expected)

    def take_slice(self, number: int) -> Slice:
        """Have the worker prepare and take the slice with this *number*."""
        self.call("prepare_lap", [number])
        self.call("take_lap", Turns())
        (taken,) = self.call("end_lap")
        assert isinstance(taken, Slice)
        return taken

    def finish(self) -> pyperf.Benchmark:
        """Wait for the answer to ``finish``; return pyperf's run.

        The run's metadata contain histograms of latencies in nanoseconds, in HdrHistogram's
        encoding (V2, base64).  The time limit begins anew for the next run.
        """
        text, latencies = self.wait()
        self._worked = 0.0
        run = pyperf.Benchmark.loads(text)
        run.update_metadata(
            {
                f"{name}_histogram": histogram(recorded).encode().decode("ascii")
                for name, recorded in latencies.items()
            }
        )
        return run

    def abandon(self) -> None:
        """End the worker and its clients at once, even if they are busy."""
        self.fork_server.end(self)

    def call(self, name: str, *args: Any) -> Any:
        """Call a method, and return the answer."""
        self.start(name, *args)
        return self.wait()

    def send(self, message: object) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # wait() says how the worker ended
            self.connection.send(message)

    def has_news(self, seconds: float = 0.0) -> bool:
        """Return whether :meth:`wait` returns or raises at once.

        *seconds* is the time that the worker has spent on the current slice, which counts for the
        time limit.
        """
        if seconds >= SILENCE:
            self.awaited()
        if self._worked + seconds >= self.limit.seconds:
            self._worked = self.limit.seconds
            return True
        ended = self.fork_server.exit_code(self, 0.0) is not None or self.fork_server.is_gone
        return ended or self.connection.poll()

    def spend(self, seconds: float) -> None:
        """Count the *seconds* of slices that were taken without :meth:`wait`."""
        self._worked += seconds

    def poll(self, seconds: float) -> bool:
        """Wait up to *seconds* for an answer or the worker's end; return whether either came."""
        self.fork_server.limit_outputs()
        return bool(wait([self.connection, self.fork_server.socket], seconds))

    def wait(self) -> Any:
        """Wait for the worker's answer to the last call, and return it.

        If the worker measures, its first answer comes when all clients are ready.
        """
        began = time.monotonic()
        answer = self._received()
        self.output.relay()
        self._worked += time.monotonic() - began
        if isinstance(answer, Failure):
            raise Failed(self._with_last_lines(answer))
        return answer

    def _with_last_lines(self, failure: Failure) -> Failure:
        """Add a process's last lines to the failure if the process exited."""
        printed = self.output.last_lines()
        if not (failure.exited and printed):
            return failure
        return replace(failure, cause=f"{failure.cause}: {printed[-1]}", detail="\n".join(printed))

    def _received(self) -> Any:
        began = time.monotonic()
        deadline = began + self.limit.seconds - self._worked
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return Failure(f"not done within its time limit of {self.limit}")
            seconds = min(left, CHECK_INTERVAL)
            ready = wait([self.connection, self.fork_server.socket], seconds)
            self.fork_server.limit_outputs()
            if not ready:
                self._go_on_waiting(time.monotonic() - began)
            if self.connection in ready:
                try:
                    return self.connection.recv()
                except (EOFError, OSError):
                    return self._end_as_failure(self.fork_server.exit_code(self, END_TIMEOUT))
            if ready and not self.fork_server.next_message(0.0) and not self.connection.poll():
                return self.fork_server.failure()
            code = self.fork_server.exit_code(self, 0.0)
            if code is not None and not self.connection.poll():
                return self._end_as_failure(code)

    def _go_on_waiting(self, seconds: float) -> None:
        self.output.relay()
        if seconds >= SILENCE:
            self.awaited()

    def _end_as_failure(self, exit_code: int | None) -> Failure:
        cause = f"{self.name} {describe_exit(exit_code)}"
        detail = "\n".join(self.output.last_lines())
        return Failure(cause, detail, crashed=True, exited=has_exited(exit_code))


def wait_for_news(workers: Sequence[Worker], pipe: int) -> None:
    """Wait until a worker answers or ends, or *pipe* can be read; return soon in any case."""
    servers = {worker.fork_server.socket: worker.fork_server for worker in workers}
    awaited: list[Any] = [*(worker.connection for worker in workers), *servers, pipe]
    if wait(awaited, CHECK_INTERVAL):
        return
    for worker in workers:
        worker.output.relay()
    for server in servers.values():
        server.limit_outputs()
