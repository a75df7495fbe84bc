"""Running the command in its own process, as a user does, and reading what it wrote."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyperf

from benchmarks.line import NotMeasured
from zodbshootout.results.files import read_results
from zodbshootout.results.result import CellResult

ROOT = Path(__file__).parents[1]
"""The directory that contains this package."""


@dataclass(frozen=True)
class Run:
    """One run of a cell."""

    values: Sequence[float]
    """Seconds per iteration, one for each slice."""
    metadata: Mapping[str, Any]

    @property
    def slices(self) -> list[int]:
        """The number of the slice of each value."""
        return [int(number) for number in str(self.metadata["slices"]).split()]

    @property
    def starts(self) -> list[float]:
        """The starts of the slices, in seconds of :func:`time.perf_counter`."""
        return [float(start) for start in str(self.metadata["slice_starts_s"]).split()]

    @property
    def ends(self) -> list[float]:
        """The instants at which the last client had done its counted iterations of each slice."""
        return [float(end) for end in str(self.metadata["slice_ends_s"]).split()]

    @property
    def on_clock(self) -> float:
        """Seconds from the starts until the last client had done its counted iterations, summed."""
        return float(self.metadata["on_clock_s"])

    @property
    def slice_seconds(self) -> list[float]:
        """For each slice, value x loops: the mean time in seconds that its iterations took."""
        loops = int(self.metadata["loops"])
        return [value * loops for value in self.values]


def runs_of(result: CellResult) -> list[Run]:
    """Return the runs of a cell."""
    return [Run(run.values, run.get_metadata()) for run in result.runs]


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    wall: float
    """Seconds from its start to its end."""
    results: Sequence[CellResult]
    """The measured cells in its file."""

    @property
    def runs(self) -> list[Run]:
        """The runs of all cells."""
        return [run for result in self.results for run in runs_of(result)]

    @property
    def on_clock(self) -> float:
        """Seconds on the clock, of all runs together."""
        return sum(run.on_clock for run in self.runs)

    @property
    def slice_seconds(self) -> float:
        """The values times their loops, of all runs together."""
        return sum(sum(run.slice_seconds) for run in self.runs)


Measured = Mapping[tuple[str, str], Sequence[Run]]
"""The runs of each cell, by its contender and benchmark."""


def shoot_out(configuration: str, *words: str) -> Done:
    """Run the command on a configuration, with *words*, in a temporary directory.

    :raises NotMeasured: if the command could not measure everything
    """
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as name:
        output = Path(name, "out.json")
        wall = _run(configuration, words, output)
        return Done(wall, [result for result in read_results(output) if result.measured])


def measure_with(configuration: str, *words: str, sources: Path | None = None) -> Measured:
    """Run the command, by default that of this checkout, on a configuration; return all runs.

    *sources* is the directory of the sources of another version.  Results are read as pyperf reads
    them, because this version may not know all metadata of another one.

    :raises NotMeasured: if the command could not measure everything
    """
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as name:
        output = Path(name, "out.json")
        _run(configuration, words, output, sources)
        runs: dict[tuple[str, str], list[Run]] = {}
        for benchmark in pyperf.BenchmarkSuite.load(str(output)).get_benchmarks():
            for run in benchmark.get_runs():
                metadata = run._metadata
                if run.values:
                    cell = metadata["contender"], metadata["benchmark"]
                    runs.setdefault(cell, []).append(Run(run.values, metadata))
        return runs


def _run(
    configuration: str, words: Sequence[str], output: Path, sources: Path | None = None
) -> float:
    """Run the command beside its *output*; return the seconds that it took."""
    file = output.with_name("contenders.conf")
    file.write_text(configuration, encoding="utf-8")
    command = [sys.executable, "-m", "zodbshootout", str(file), *words, "-q", "-o", str(output)]
    began = time.perf_counter()
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment(sources),
        cwd=output.parent,
    )  # fmt: skip
    wall = time.perf_counter() - began
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise NotMeasured(f"the command ended with {done.returncode}: {''.join(last)}")
    return wall


def environment(sources: Path | None = None) -> dict[str, str]:
    """Return an environment in which this package can be imported.

    If *sources* are given, zodbshootout is imported from there.
    """
    paths = map(str, filter(None, [sources, ROOT, os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
