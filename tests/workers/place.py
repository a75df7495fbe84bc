"""A directory of real fork servers and workers, for tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pyperf
import pytest
from ZODB.FileStorage import FileStorage

from tests.integration.command import SOURCES, TESTS
from zodbshootout.client.preparation import Preparation
from zodbshootout.guardian import Guardian
from zodbshootout.model.outcome import Failed
from zodbshootout.model.specification import (
    ClientKind,
    CrewShape,
    Parameters,
    Specification,
    Storage,
)
from zodbshootout.workers.coordinator import (
    ForkServer,
    Launcher,
    TimeLimit,
    Worker,
)
from zodbshootout.workers.measuring import Measure


class Place:
    """A directory of workers and databases, and the lines relayed from workers."""

    def __init__(self, path: Path, guardian: Guardian) -> None:
        self.path = path
        self.guardian = guardian
        self.workers = path / "workers"
        self.workers.mkdir()
        self.relayed: list[str] = []
        self.others = {process.pid for process in psutil.Process().children(recursive=True)}
        """Processes that were running before, such as multiprocessing's resource tracker."""
        self.launcher = Launcher(
            directory=self.workers,
            guardian=guardian,
            environment={**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{SOURCES}"},
            working=TimeLimit(600.0, "--timeout"),
            opening=TimeLimit(60.0),
            options=["--quiet"],
            relay=self.relayed.append,
            awaited=self.relayed.append,
        )

    def storage(
        self, name: str = "x", *, fault: str = "", commit: int = 1000, shared: bool = False
    ) -> Storage:
        """Return a storage with a fault, or one that several processes may open."""
        if shared:
            inner = f"<sqlite3>\ndata-dir {self.path / name}\n</sqlite3>\n"
            section = f"<relstorage>\nkeep-history false\n{inner}</relstorage>\n"
            return Storage(f"%import relstorage\n<zodb {name}>\n{section}</zodb>\n")
        inner = f"<filestorage>\npath {self.path / name}.fs\n</filestorage>\n"
        if fault:
            inner = f"<faulty>\nfault {fault}\nbenchmark-commit {commit}\n{inner}</faulty>\n"
        return Storage(f"%import faulty\n<zodb {name}>\n{inner}</zodb>\n")

    def specification(self, benchmark: str = "add", *, fault: str = "", commit: int = 1000,
                      unit: ClientKind = ClientKind.PROCESS,
                      size: int = 1) -> Specification:  # fmt: skip
        shape = CrewShape(size, unit, shared=unit is not ClientKind.PROCESS)
        return Specification(
            self.storage(
                fault=fault, commit=commit, shared=size > 1 and unit is ClientKind.PROCESS
            ),
            benchmark,
            Parameters(shape, objects=5),
        )

    def prepared(self, fork_server: ForkServer, **how: Any) -> Specification:
        specification = self.specification(**how)
        fork_server.prepare(Preparation(specification))
        return specification

    def measured(self, fork_server: ForkServer, **how: Any) -> pyperf.Benchmark:
        """Return a run of a value with two iterations of each client."""
        with self.measuring(fork_server, **how) as worker:
            worker.begin(loops=2, values=1, warmups=0)
            worker.take_slice(0)
            worker.start("finish", True)
            return worker.finish()

    @contextmanager
    def measuring(
        self, fork_server: ForkServer, *, leaks: bool = False,
        profile: str | None = None, **how: Any,
    ) -> Iterator[Worker]:  # fmt: skip
        specification = self.prepared(fork_server, **how)
        metadata = {"contender": "x", "name": "x"}
        with fork_server.measure(
            Measure(specification, metadata, leaks=leaks, profile=profile)
        ) as worker:
            worker.wait()
            yield worker

    def objects(self) -> int:
        """Return how many objects are in the database."""
        with closing(FileStorage(str(self.path / "x.fs"), read_only=True)) as storage:
            return len(storage)

    def assert_tidy(self) -> None:
        """Check that nothing is left: no process, and no file of a worker."""
        assert list(self.workers.iterdir()) == []
        assert self.processes() == []

    def processes(self) -> list[psutil.Process]:
        """Return the descendants of this process, except the guardian and :attr:`others`."""
        return [
            process
            for process in psutil.Process().children(recursive=True)
            if is_at_work(process) and process.pid not in self.others
        ]

    def worker_group(self) -> list[int]:
        """Return the process ids of the only worker's group, the worker itself first."""
        by_group = groups(self.processes())
        (fork_server,) = [pid for pid in by_group if psutil.Process(pid).ppid() == os.getpid()]
        (group,) = [pid for pid in by_group if pid != fork_server]
        return sorted(by_group[group], key=lambda pid: pid != group)


def is_at_work(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def groups(processes: list[psutil.Process]) -> dict[int, list[int]]:
    """Return the ids of processes by their groups."""
    by_group: dict[int, list[int]] = {}
    for process in processes:
        by_group.setdefault(os.getpgid(process.pid), []).append(process.pid)
    return by_group


def cause(failure: pytest.ExceptionInfo[Failed]) -> str:
    return failure.value.failure.cause
