"""Profiles of what clients do on the clock, or of a process where they cannot be told apart.

cProfile follows a thread.  Greenlets are one thread, and with Python 3.12 and later all threads
share one profiler, so there the whole process is profiled.  vmprof samples a process.
"""

from __future__ import annotations

import cProfile
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from zodbshootout.client.benchmarks.benchmark import Benchmark
from zodbshootout.client.specification import ClientKind

PROFILERS = ("cprofile", "vmprof")


class Profiler:
    """Records nothing."""

    def instrument(self, benchmark: Benchmark) -> None:
        """Have what one client does on the clock recorded."""

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Have what this process does meanwhile recorded."""
        yield


class PerClient(Profiler):
    """A profile of each client, with nothing in it but what is on the clock."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def instrument(self, benchmark: Benchmark) -> None:
        """Have what one client does on the clock recorded; it is written when the client leaves."""
        profile = cProfile.Profile()
        run, leave = benchmark.run, benchmark.tear_down

        def run_profiled() -> None:
            if benchmark.timed:
                profile.runcall(run)
            else:
                run()

        def leave_with_profile() -> None:
            profile.dump_stats(self._directory / f"{benchmark.client.index}.prof")
            leave()

        benchmark.run = run_profiled  # type: ignore[method-assign]
        benchmark.tear_down = leave_with_profile  # type: ignore[method-assign]


class WholeProcess(Profiler):
    """One profile of everything that happens while values are measured."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "all.prof"
        self._profile = cProfile.Profile()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Add what happens meanwhile to the profile, and write it."""
        self._profile.enable()
        try:
            yield
        finally:
            self._profile.disable()
        self._profile.dump_stats(self._path)


class Sampled(Profiler):
    """What vmprof sees of this process, or of each client where these are processes."""

    def __init__(self, directory: Path, *, clients_are_processes: bool) -> None:
        self._directory = directory
        self._clients_are_processes = clients_are_processes
        self._taken = 0

    def instrument(self, benchmark: Benchmark) -> None:
        """Sample a client's process from its first value until it leaves."""
        if not self._clients_are_processes:
            return
        prepare, leave = benchmark.prepare, benchmark.tear_down
        stop: Callable[[], None] | None = None

        def prepare_sampled() -> None:
            nonlocal stop
            if stop is None:
                stop = _sample(self._directory / f"{benchmark.client.index}.vmprof")
            prepare()

        def leave_with_samples() -> None:
            if stop is not None:
                stop()
            leave()

        benchmark.prepare = prepare_sampled  # type: ignore[method-assign]
        benchmark.tear_down = leave_with_samples  # type: ignore[method-assign]

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Sample this process meanwhile, if the clients are in it."""
        if self._clients_are_processes:
            yield
            return
        self._taken += 1
        stop = _sample(self._directory / f"value-{self._taken}.vmprof")
        try:
            yield
        finally:
            stop()


def _sample(path: Path) -> Callable[[], None]:
    import vmprof

    file = path.open("w+b")
    vmprof.enable(file.fileno())

    def stop() -> None:
        vmprof.disable()
        file.close()

    return stop


def profiler_for(profiler: str, unit: ClientKind, directory: Path) -> Profiler:
    """Return what records clients of that kind; its files go to *directory*."""
    if profiler == "vmprof":
        return Sampled(directory, clients_are_processes=unit is ClientKind.PROCESS)
    shared_profiler = sys.version_info >= (3, 12) and unit is ClientKind.THREAD
    if unit is ClientKind.GREENLET or shared_profiler:
        return WholeProcess(directory)
    return PerClient(directory)
