"""Crews of threads, greenlets and forked processes, and the plan for starting a crew."""

from __future__ import annotations

import multiprocessing
import queue
import selectors
import sys
import threading
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.benchmarks.benchmark import Benchmark
from zodbshootout.client.client import Client, Neighbours
from zodbshootout.client.database import Database
from zodbshootout.client.finish import Finish, Memory
from zodbshootout.client.preparation import fill, populate
from zodbshootout.client.protocol import Channel, Clock, Prepare, Start, Stop, SystemClock
from zodbshootout.client.session import follow_orders
from zodbshootout.crews.crew import Crew
from zodbshootout.crews.profiling import Profiler, profiler_for
from zodbshootout.guardian import END_TIMEOUT, describe_exit, has_exited
from zodbshootout.model.outcome import Failed, Failure, Unsupported
from zodbshootout.model.specification import ClientKind, Parameters, Specification
from zodbshootout.model.storage_facts import Sharing

PULSE = 1.0
"""Seconds between calls of the function that watches a crew."""
_FORK = multiprocessing.get_context("fork")


class LocalCrew(Crew):
    """Sends orders to clients one by one; ``open_benchmark(n)`` opens client *n*'s benchmark."""

    watch: Callable[[], object] | None = None
    """A function that is called regularly while the crew waits; an exception ends the wait."""
    is_whole = True
    """Whether these are all clients, which then need no order to stop."""

    def __init__(
        self,
        size: int,
        open_benchmark: Callable[[int], Benchmark],
        clock: Clock,
        profiler: Profiler | None = None,
    ) -> None:
        super().__init__(size, clock)
        self._open_benchmark = open_benchmark
        self._profiler = profiler or Profiler()
        self._recording = ExitStack()
        self._finish: Memory
        self._counts = False

    @abstractmethod
    def launch(self) -> None:
        """Start the clients."""

    @abstractmethod
    def send(self, client: int, order: Any) -> None:
        """Send an order to one client."""

    @abstractmethod
    def receive(
        self, waiting_for: Sequence[int], seconds: float | None = None
    ) -> tuple[int, Any] | None:
        """Wait for a report from any of these clients; return the client's number and the report.

        Return ``None`` if no report arrives within *seconds*.  For a client that has exited, the
        report is a :class:`~zodbshootout.model.outcome.Failure`.
        """

    def start(self) -> None:
        self.launch()
        self._gather(range(self.size))

    def ask(self, order: Any, *, first_only: bool = False) -> list[Any]:
        if isinstance(order, Prepare):
            self._counts = order.counts
        if isinstance(order, Start) and self._counts:
            self._recording.enter_context(self._profiler.recording())
        asked = range(1 if first_only else self.size)
        for client in asked:
            self.send(client, order)
        reports = self._gather(asked)
        if isinstance(order, Stop) or (isinstance(order, Start) and reports[0] is not None):
            self._recording.close()
        return reports

    def follow_orders(self, channel: Channel, client: int) -> None:
        """Carry out the orders to a client; see :func:`~zodbshootout.client.session.follow_orders`.

        The client's process or thread calls this.
        """
        finish = Finish(self._finish, client) if self.is_whole else None
        follow_orders(channel, lambda: self._open_benchmark(client), self._clock, finish)

    def _gather(self, clients: Sequence[int]) -> list[Any]:
        reports: dict[int, Any] = {}
        failures: list[Failure] = []
        waiting = set(clients)
        while waiting:
            received = self.receive(sorted(waiting), PULSE if self.watch else None)
            if received is None:
                assert self.watch is not None
                self.watch()
                continue
            client, report = received
            waiting.discard(client)
            reports[client] = report
            if isinstance(report, Failure):
                failures.append(report)
                if not report.secondary:
                    break
        if failures:
            raise Failed(failures[-1])
        return [reports[client] for client in clients]


class ProcessCrew(LocalCrew):
    """Forks clients from this process, which must not have opened a database."""

    def launch(self) -> None:
        self._processes: list[BaseProcess] = []
        self._connections: list[Connection] = []
        self._selector = selectors.DefaultSelector()
        self._finish = Finish.among_processes(self.size)
        for index in range(self.size):
            ours, theirs = _FORK.Pipe()
            process = _FORK.Process(target=self._live, args=(index, theirs), name=f"client-{index}")
            self._connections.append(ours)
            process.start()
            theirs.close()
            self._processes.append(process)
        for index, connection in enumerate(self._connections):
            self._selector.register(connection, selectors.EVENT_READ, index)

    def _live(self, index: int, connection: Connection) -> None:
        # The fork has copied the crew's ends of all pipes so far.  While a copy is open, the client
        # at the other end does not notice that the crew has closed the pipe.
        for inherited in self._connections:
            inherited.close()
        with connection:
            self.follow_orders(connection, index)

    def send(self, client: int, order: Any) -> None:
        """Send an order to one client; :meth:`receive` notices if the client has exited."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self._connections[client].send(order)

    def receive(
        self, waiting_for: Sequence[int], seconds: float | None = None
    ) -> tuple[int, Any] | None:
        while ready := self._selector.select(seconds):
            client: int = ready[0][0].data
            try:
                return client, self._connections[client].recv()
            except (EOFError, ConnectionResetError):
                self._selector.unregister(self._connections[client])
                if client in waiting_for:
                    return client, self._end_of(client)
        return None

    def _end_of(self, client: int) -> Failure:
        process = self._processes[client]
        process.join(END_TIMEOUT)
        cause = f"client {client} (pid {process.pid}) {describe_exit(process.exitcode)}"
        return Failure(cause, cause, crashed=True, exited=has_exited(process.exitcode))

    def join(self) -> None:
        """Wait until the processes have ended; kill those that do not end in time."""
        for process in self._processes:
            process.join(END_TIMEOUT)
        self.abandon()

    def abandon(self) -> None:
        for process in self._processes:
            process.kill()
            process.join()
            process.close()
        self._selector.close()
        for connection in self._connections:
            connection.close()
        self._processes, self._connections = [], []


class Reports:
    """The reports of clients in threads, which wake the crew only once for each order.

    With each wake-up, threads compete for the interpreter.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reports: deque[tuple[int, Any]] = deque()
        self._missing = 0
        self._complete = threading.Event()

    def expect(self, number: int) -> None:
        """Wake the crew after *number* further reports, or after a failure."""
        with self._lock:
            self._missing += number
            self._complete.clear()

    def put(self, client: int, report: Any) -> None:
        with self._lock:
            self._reports.append((client, report))
            self._missing -= 1
            if not self._missing or isinstance(report, Failure):
                self._complete.set()

    def get(self, seconds: float | None) -> tuple[int, Any] | None:
        """Wait, at most for *seconds*, for all expected reports; return one of them."""
        if not self._complete.wait(seconds):
            return None
        with self._lock:
            report = self._reports.popleft()
            if self._missing and not self._reports:  # it was a failure that came early
                self._complete.clear()
            return report


class QueueChannel:
    """The queue of orders for one client, and the queue of reports for the crew."""

    def __init__(self, index: int, reports: Reports) -> None:
        self.orders: queue.Queue[Any] = queue.Queue()
        self._index = index
        self._reports = reports

    def send(self, report: Any) -> None:
        self._reports.put(self._index, report)

    def recv(self) -> Any:
        return self.orders.get()

    def poll(self) -> bool:
        """Let other clients run, as greenlets require, and return whether an order has come."""
        time.sleep(0)
        return not self.orders.empty()


class ThreadCrew(LocalCrew):
    """Starts clients as daemon threads, so that a hanging client does not keep the process alive.

    In a process patched by gevent, the threads are greenlets.
    """

    neighbours: Neighbours | None = None
    """The clients' barrier, if they share a DB."""

    def launch(self) -> None:
        self._finish = Finish.among_threads(self.size)
        self._reports = Reports()
        self._reports.expect(self.size)
        self._channels = [QueueChannel(index, self._reports) for index in range(self.size)]
        self._threads = [
            threading.Thread(target=self._live, args=(index,), name=f"client-{index}", daemon=True)
            for index in range(self.size)
        ]
        for thread in self._threads:
            thread.start()

    def _live(self, index: int) -> None:
        self.follow_orders(self._channels[index], index)

    def send(self, client: int, order: Any) -> None:
        self._reports.expect(1)
        self._channels[client].orders.put(order)

    def receive(
        self,
        waiting_for: Sequence[int],  # noqa: ARG002
        seconds: float | None = None,
    ) -> tuple[int, Any] | None:
        return self._reports.get(seconds)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def abandon(self) -> None:
        """Break the barrier, so that waiting clients fail; other clients end with the process."""
        if self.neighbours is not None:
            self.neighbours.abort()


@dataclass(frozen=True)
class CrewPlan:
    """How to start a crew, and how to open and fill the crew's database."""

    benchmark: type[Benchmark]
    parameters: Parameters
    open_database: Callable[[], Database]
    clock: Clock = field(default_factory=SystemClock)
    profiler: Profiler = field(default_factory=Profiler)
    clients: Sequence[int] | None = None
    """The numbers of the clients that run here; ``None`` for all clients."""
    watch: Callable[[], object] | None = None
    """The crew's :attr:`~LocalCrew.watch`."""

    @contextmanager
    def started(self) -> Iterator[Crew]:
        """Start a crew, wait until all its clients are set up, and end it when the context ends.

        A database in the memory of this process is filled here; others must be filled before.

        :raises Failed: if a client fails
        """
        with ExitStack() as stack:
            crew = self._crew(stack)
            crew.most_at_once = self.benchmark.shape(self.parameters).most_at_once
            crew.watch = self.watch
            crew.is_whole = self.clients is None
            yield stack.enter_context(crew.started())

    def _crew(self, stack: ExitStack) -> LocalCrew:
        shape, here = self.parameters.crew, self._here
        if shape.client_kind is ClientKind.PROCESS:
            return ProcessCrew(len(here), self.open_benchmark, self.clock, self.profiler)
        if not shape.shared:
            return ThreadCrew(len(here), self.open_benchmark, self.clock, self.profiler)
        database = self._filled_database()
        # After a failure, clients may still use the database; it closes when the process ends.
        stack.push(lambda kind, *_: database.close() if kind is None else None)
        neighbours = Neighbours(len(here), here[0])
        open_shared = partial(self._benchmark, database, neighbours)
        crew = ThreadCrew(len(here), open_shared, self.clock, self.profiler)
        crew.neighbours, crew.database = neighbours, database
        return crew

    def open_benchmark(self, index: int) -> Benchmark:
        """Open a DB for the *index*-th client that runs here; return the client's benchmark."""
        return self._benchmark(self._filled_database(), None, index)

    @property
    def _here(self) -> Sequence[int]:
        return range(self.parameters.crew.size) if self.clients is None else self.clients

    def _filled_database(self) -> Database:
        database = self.open_database()
        if database.facts.sharing is Sharing.VOLATILE:
            fill(database, self.parameters)
            populate(database, self.benchmark.dataset, self.parameters)
        return database

    def _benchmark(
        self, database: Database, neighbours: Neighbours | None, index: int
    ) -> Benchmark:
        client = Client(self._here[index], self.parameters, database, neighbours)
        benchmark = self.benchmark(client)
        self.profiler.instrument(benchmark)
        return benchmark


def plan_of(
    specification: Specification,
    profiles: Path | None = None,
    clients: Sequence[int] | None = None,
    watch: Callable[[], object] | None = None,
) -> CrewPlan:
    """Return the plan for a crew of this process, or for only these *clients* of the crew.

    The clients' profiles go to the directory *profiles*, if it is given; *watch* is as in
    :class:`LocalCrew`.

    :raises Unsupported: if this Python lacks the benchmark, or gevent for greenlets
    """
    benchmark = benchmarks().get(specification.benchmark)
    if benchmark is None:
        raise Unsupported(
            f"{specification.benchmark} is not installed in the contender's environment"
        )
    parameters = specification.parameters
    if parameters.crew.client_kind is ClientKind.GREENLET and "gevent" not in sys.modules:
        raise Unsupported("gevent is not installed in the contender's environment")
    profiler = profiler_for(parameters.crew.client_kind, profiles) if profiles else Profiler()
    return CrewPlan(
        benchmark, parameters, partial(Database, specification.storage),
        profiler=profiler, clients=clients, watch=watch,
    )  # fmt: skip
