"""The work of a worker: inspecting a contender, preparing its database, or running a crew.

A worker runs in the Python that opens the storage, so it needs only Python 3.9 or later, ZODB and
the storage; zodbshootout and pyperf come from the command's Python.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from io import StringIO
from multiprocessing.connection import Connection
from pathlib import Path

import pyperf

from zodbshootout.client import preparation
from zodbshootout.client.database import Database
from zodbshootout.client.operation import OPERATION_CALLS, Operation
from zodbshootout.client.preparation import TASKS
from zodbshootout.client.protocol import Call
from zodbshootout.crews.crew import Crew
from zodbshootout.crews.hosts import LEADING_CALLS, Leading
from zodbshootout.crews.logs import LogSettings, configure_logging
from zodbshootout.crews.profiling import collect
from zodbshootout.crews.traffic import at_distance, count, crew_at_distance
from zodbshootout.model.latencies import Latencies
from zodbshootout.model.outcome import failure_of
from zodbshootout.model.specification import Storage
from zodbshootout.network.calibration import Calibration
from zodbshootout.workers.measuring import Measure, Measuring, received
from zodbshootout.workers.summary import latencies_by_name, storable
from zodbshootout.workers.variables import for_storages

PROFILE_PREFIX = "profile: "
"""The prefix of lines about profiles that a worker prints for the user."""


def work(connection: Connection, runner: pyperf.Runner) -> int:
    """Do one task that *connection* brings, with a new *runner*; return an exit status.

    The first message is :class:`LogSettings`.  The second is a call of :func:`measure`,
    :func:`lead`, :func:`operate`, :func:`~zodbshootout.crews.traffic.count` or a function of
    :mod:`~zodbshootout.client.preparation`.  If an exception is raised, the answer is a
    :class:`~zodbshootout.model.outcome.Failure`.
    """
    # If a client had a copy of the connection, the coordinator would not notice this worker's end.
    os.register_at_fork(after_in_child=connection.close)
    try:
        settings: LogSettings = connection.recv()
        configure_logging(settings)
        call: Call = connection.recv()
        if call.name == "measure":
            connection.send(measure(connection, runner, settings, *call.args))
        elif call.name == "lead":
            lead(connection)
        elif call.name == "operate":
            operate(connection, *call.args)
        elif call.name == "count":
            connection.send(count(*call.args))
        else:
            connection.send(call.on(preparation, TASKS))
    except BaseException as error:  # noqa: BLE001 - any exception is the cell's failure
        connection.send(failure_of(error))
        return 1
    return 0


def measure(
    connection: Connection,
    runner: pyperf.Runner,
    settings: LogSettings,
    task: Measure,
    options: Sequence[str],
) -> tuple[str, Mapping[str, Latencies]]:
    """Measure a cell in one run or more, with pyperf's *options*.

    Send ``None`` when the crew is set up, and the result of the first iterations if the task wants
    them; then :class:`Measuring` answers calls.  When ``finish``
    is called, send the run in pyperf's format, with its latencies by name.  Return the last run
    instead of sending it.
    """
    with _directory_for_profiles(task) as profiles, _crew(task, profiles, settings) as crew:
        measuring = Measuring(task, crew, connection)
        connection.send(None)
        if task.tries_first:
            connection.send(measuring.attempt(1))
        run = measuring.run(runner, options)
        while not measuring.is_last():
            connection.send(_answer(run, measuring))
            run = measuring.run(runner, options)
        crew.verify()
        return _answer(run, measuring)


def _answer(run: pyperf.Benchmark, measuring: Measuring) -> tuple[str, Mapping[str, Latencies]]:
    """Add the summary to a run; return the run in pyperf's format, and its latencies by name."""
    run.update_metadata(storable(measuring.summary()))
    text = StringIO()
    run.dump(text)
    return text.getvalue(), latencies_by_name(measuring.samples)


def lead(connection: Connection) -> None:
    """Answer calls to a :class:`Leading` of this host until the connection is closed."""
    with ExitStack() as stack:
        _answer_calls(connection, Leading(stack), LEADING_CALLS)


def operate(
    connection: Connection, storage: Storage, calibrations: Mapping[float, Calibration]
) -> None:
    """Answer calls to an :class:`Operation`.

    The operation's round trips take as long as the clients' round trips.
    """
    with at_distance(storage, calibrations) as (routed, _):
        _answer_calls(connection, Operation(partial(Database, routed)), OPERATION_CALLS)


def _answer_calls(connection: Connection, target: object, allowed: Collection[str]) -> None:
    """Call methods of *target* until the connection is closed."""
    while True:
        try:
            call = received(connection)
        except EOFError:
            return
        connection.send(call.on(target, allowed))


@contextmanager
def _directory_for_profiles(task: Measure) -> Iterator[Path | None]:
    """Create a directory for profiles; merge them when the context ends without a failure."""
    if task.profile is None:
        yield None
        return
    profile, parts = Path(task.profile), Path(tempfile.mkdtemp())
    try:
        yield parts
        try:
            collect(parts, profile)
        except OSError as error:
            print(f"{PROFILE_PREFIX}{profile.name} could not be written: {error}", flush=True)  # noqa: T201
    finally:
        shutil.rmtree(parts, ignore_errors=True)


def _crew(
    task: Measure, profiles: Path | None, settings: LogSettings
) -> AbstractContextManager[Crew]:
    """Return the crew of a task; a crew on this host writes profiles into *profiles*."""
    if task.cluster is None:
        return crew_at_distance(task.specification, task.calibrations.get("", {}), profiles)
    # Only the command's Python has Dask and other packages that this import needs.
    from zodbshootout.workers.agent import hosts_crew

    variables = for_storages(os.environ, task.variables)
    return hosts_crew(task.cluster, task.specification, settings, variables, task.calibrations)
