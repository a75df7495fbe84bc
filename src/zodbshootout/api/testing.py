"""Functions for tests of plug-ins: run a benchmark, open a storage, start a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from zodbshootout.client.benchmarks.benchmark import Benchmark
from zodbshootout.client.database import Database
from zodbshootout.config.configuration import parse
from zodbshootout.config.source import Source
from zodbshootout.crews.crew import Sample
from zodbshootout.crews.local import CrewPlan
from zodbshootout.guardian import Guardian
from zodbshootout.model.specification import ClientKind, CrewShape, Parameters, Storage
from zodbshootout.servers.address import given_names
from zodbshootout.servers.server import Server, ServerContext

__all__ = ["Sample", "measured", "opened", "started"]


def measured(
    benchmark: type[Benchmark], iterations: int, *, threads: int = 1, **parameters: Any
) -> Sample:
    """Measure and verify a benchmark in threads that share a MappingStorage.

    *threads* is the number of threads; each does *iterations* iterations.  *parameters* are
    attributes of :class:`~zodbshootout.api.benchmarks.Parameters`, such as ``objects=10``.

    :raises Failed: if a client or a check fails
    """
    crew = CrewShape(threads, ClientKind.THREAD, shared=True)
    storage = Storage("<zodb memory>\n<mappingstorage/>\n</zodb>\n")
    plan = CrewPlan(benchmark, Parameters(crew, **parameters), partial(Database, storage))
    with plan.started() as clients:
        sample = clients.measure(iterations)
        clients.verify()
    return sample


def opened(text: str) -> Database:
    """Open the contender that a configuration describes; use the result as a context manager.

    *text* has one section such as ``<zodb>``, and before it an ``%import`` line for each package
    that defines the section's types.  These packages have to be installed.

    :raises BadSection: if the configuration is wrong
    """
    return Database(Storage(text))


@contextmanager
def started(server: type[Server], text: str, directory: Path) -> Iterator[Server]:
    """Start the server that a configuration describes, and stop it when the context ends.

    *text* has an ``%import`` and the server's section; *directory* is an empty directory for files.

    :raises ServerFailed: if the server does not start
    """
    source = Source(directory / "server.conf", text)
    with Guardian() as guardian, given_names(source, directory) as names:
        (section,) = parse(source, names).servers
        running = server(section, ServerContext(directory, source, names, guardian))
        try:
            running.start()
            yield running
        finally:
            running.stop()
