"""Dask clusters on this host, started as a user starts them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.integration.command import environment, wait_until

QUIET = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0")


@dataclass(frozen=True)
class DaskCluster:
    """A scheduler and its workers."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: Mapping[str, subprocess.Popen[bytes]]

    def clients(self) -> list[psutil.Process]:
        """Return the descendants of the workers that are not workers themselves."""
        processes: list[psutil.Process] = []
        for worker in self.workers.values():
            if worker.poll() is None:
                processes += psutil.Process(worker.pid).children(recursive=True)
        return [
            process
            for process in processes
            if not any("dask_worker" in word for word in _words(process))
        ]


@contextmanager
def dask_cluster(
    place: Path,
    workers: Mapping[str, Sequence[str]],
    options: Sequence[str] = (),
    tls: Mapping[str, Any] | None = None,
    worker_options: Sequence[str] = ("--no-nanny",),
) -> Iterator[DaskCluster]:
    """Run a scheduler and *workers*: names, each with the words of a command that starts it.

    The command is empty, or one such as ``unshare``.  A worker whose name is an underscore gets no
    name, so that Dask calls it by its address.

    The working directory and all files of these processes are in *place*.  All of them get
    *options*; *tls* is Dask's configuration of the certificates of clients.
    """
    home = place / "dask"
    home.mkdir()
    scheduler_file = home / "scheduler.json"
    env = environment(home, DASK_TEMPORARY_DIRECTORY=str(home))
    with ExitStack() as stack:
        log = stack.enter_context((home / "log").open("wb"))

        def start(*words: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(words, cwd=home, env=env, stdout=log, stderr=log)
            stack.callback(_end, process)
            return process

        program = (sys.executable, "-m", "distributed.cli.dask_scheduler")
        scheduler = start(
            *program, "--port", "0", "--scheduler-file", str(scheduler_file), *QUIET, *options
        )
        wait_until(lambda: scheduler_file.exists() and scheduler_file.stat().st_size > 0)
        address = json.loads(scheduler_file.read_text())["address"]
        program = (sys.executable, "-m", "distributed.cli.dask_worker")
        quiet = ("--nthreads", "1", *worker_options, *QUIET, *options)
        started = {
            name: start(*before, *program, address, *_named(name), *quiet)
            for name, before in workers.items()
        }
        # Imported in the context below, it would lose its defaults at the end of that.
        import dask
        from distributed import Client

        connect: Any = Client  # it has no types
        known = {f"distributed.comm.tls.{key}": value for key, value in (tls or {}).items()}
        with dask.config.set(known):
            wait_until(lambda: _registered(connect, address) == len(workers))
        yield DaskCluster(address, scheduler, started)


def _named(name: str) -> Sequence[str]:
    return () if name == "_" else ("--name", name)


def _registered(connect: Any, address: str) -> int:
    with connect(address) as client:
        return len(client.scheduler_info(n_workers=-1)["workers"])


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
        process.kill()
    process.wait()
