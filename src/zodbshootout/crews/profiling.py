"""Profile the measurement: each client by itself if possible, otherwise the whole process.

cProfile cannot distinguish the greenlets of a thread, nor, since Python 3.12, the threads of a
process.  For such clients, there is one profile of the whole process.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zodbshootout.client.benchmarks.benchmark import Benchmark
from zodbshootout.model.specification import ClientKind

LISTED = 60
"""The number of functions listed in a profile's text, by descending cumulative time."""


class Profiler:
    """A profiler that records nothing."""

    def instrument(self, benchmark: Benchmark) -> None:
        """Prepare to record the iterations of *benchmark*, which one client runs."""

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record everything that this process does while the context lasts."""
        yield


class PerClient(Profiler):
    """Writes a file for each client: a profile of the client's timed iterations."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def instrument(self, benchmark: Benchmark) -> None:
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
    """Writes one profile of everything that happens while values are measured."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "all.prof"
        self._profile = cProfile.Profile()

    @contextmanager
    def recording(self) -> Iterator[None]:
        self._profile.enable()
        try:
            yield
        finally:
            self._profile.disable()
        self._profile.dump_stats(self._path)


def profiler_for(client_kind: ClientKind, directory: Path) -> Profiler:
    """Return a profiler that suits *client_kind* and writes files into *directory*."""
    shared_profiler = sys.version_info >= (3, 12) and client_kind is ClientKind.THREAD
    if client_kind is ClientKind.GREENLET or shared_profiler:
        return WholeProcess(directory)
    return PerClient(directory)


def collect(parts: Path, profile: Path) -> None:
    """Add the profiles in *parts* to the profile of earlier runs; write a binary and a text file.

    *profile* is the path of these two files, without their suffixes.

    :raises OSError: if a file cannot be written
    """
    paths = sorted(parts.glob("*.prof"))
    if not paths:
        return
    path = profile.with_name(f"{profile.name}.prof")  # the name itself may contain dots
    with profile.with_name(f"{profile.name}.txt").open("w", encoding="utf-8") as text:
        earlier = [path] if path.exists() else []
        stats = pstats.Stats(*map(str, [*earlier, *paths]), stream=text)
        stats.files = []  # type: ignore[attr-defined]  # the merged files no longer exist
        stats.sort_stats("cumulative").print_stats(LISTED)
    temporary = path.with_name(f".{path.name}")
    stats.dump_stats(temporary)
    temporary.replace(path)
