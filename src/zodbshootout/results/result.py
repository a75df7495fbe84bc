"""The results of cells: figures of runs, and rates and latencies computed from the figures."""

from __future__ import annotations

import json
import math
import statistics
import sys
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, count, takewhile
from typing import Any

import pyperf
from hdrh.histogram import HdrHistogram

from zodbshootout.model.arrivals import KEPT_UP
from zodbshootout.model.latencies import NANOSECONDS
from zodbshootout.model.outcome import Failure, State
from zodbshootout.model.parameters import metadata_of
from zodbshootout.model.settings import Settings, settings_in
from zodbshootout.model.wording import counted
from zodbshootout.results.cell import Cell
from zodbshootout.results.estimate import MIN_RUNS, mean_of
from zodbshootout.results.figures import Figures

MAX_WARMING_UP = 2
"""A run with at most this many values cannot show whether its first value is slower."""
NEARLY = 0.9
"""A result is complete if it lasted at least this fraction of the requested time."""
CELLS, STATE = OF_FILES = "cells_of_file", "state"
"""Metadata that every run in a file has: the list of the file's cells, and the state of its own."""
_NAME = "cell"
"""A name for all runs in memory: pyperf joins only runs that have the same name."""


@dataclass(frozen=True)
class Trend:
    """The change of a cell's times from the first run to the last."""

    times: float
    """The time at the end as a multiple of the time at the start."""
    interval: tuple[float, float]
    """The ends of the 95 % confidence interval of :attr:`times`."""
    p_value: float
    """The probability of such a rise by chance, corrected for the number of cells tested; 1 if
    times did not rise, or if only the other contenders' times fell."""
    alone: bool = False
    """Whether the cell was tested without another contender.  If so, the rise may be due to the
    machine."""
    found: bool = False
    """Whether times rise significantly, and by more than a little."""


@dataclass(frozen=True)
class CellResult:
    """A cell, its state and its runs."""

    cell: Cell
    state: State = State.NOT_RUN
    reason: str = ""
    """The reason for a missing figure, or a warning about a figure, in one line."""
    detail: str = ""
    """A traceback, if there is one."""
    runs: tuple[pyperf.Run, ...] = ()
    crashes: tuple[str, ...] = ()
    """The reasons for repeated runs: a line for each crash of a process."""
    trend: Trend | None = None
    """The change of the cell's times; ``None`` if it was not tested, or there are too few runs."""

    def with_run(self, benchmark: pyperf.Benchmark) -> CellResult:
        """Return the result with added runs: a worker's run, or the runs in a file."""
        benchmark.update_metadata({"name": _NAME})
        runs = map(_compact, benchmark.get_runs())
        return replace(self, state=State.MEASURED, runs=(*self.runs, *runs))

    def failed(self, failure: Failure) -> CellResult:
        """Return the result after a *failure*, which ends the runs of a cell.

        The result keeps its runs only if the failure's state is ``FAILED`` and the runs stay valid.
        """
        keeps_runs = failure.state is State.FAILED and not failure.invalidates_results
        return replace(
            self,
            state=failure.state,
            reason=failure.cause,
            detail=failure.detail,
            runs=self.runs if keeps_runs else (),
        )

    def crashed(self, cause: str) -> CellResult:
        return replace(self, crashes=(*self.crashes, cause))

    def with_warnings(self, planned: int) -> CellResult:
        if self.state is not State.MEASURED:
            return self
        warnings = []
        if len(self.runs) < planned:
            warnings.append(f"incomplete: {len(self.runs)} of {planned} runs")
        if self.wanted_seconds and self.lasted < NEARLY * self.wanted_seconds:
            minutes = f"{self.lasted / 60:.3g} of {self.wanted_seconds / 60:.3g} minutes"
            warnings.append(f"incomplete: {minutes}")
        if self.crashes:
            runs = counted(len(self.crashes), "run")
            warnings.append(f"{runs} repeated after a crash: {self.crashes[-1]}")
        return replace(self, reason="; ".join(warnings))

    @property
    def measured(self) -> bool:
        return bool(self.runs)

    @property
    def timed(self) -> bool:
        """Whether the cell was measured, and its values are times rather than memory."""
        return self.measured and self.metadata.get("unit") != "byte"

    @property
    def gets_slower(self) -> bool:
        """Whether times rise with time, so that more runs do not make the figure precise."""
        return self.trend is not None and self.trend.found

    def benchmark(self, name: str = _NAME, **more: str) -> pyperf.Benchmark:
        """Return the runs in the form of pyperf, with *more* metadata."""
        benchmark = pyperf.Benchmark(self.runs)
        benchmark.update_metadata({"name": name, **more})
        return benchmark

    @property
    def facts(self) -> Sequence[Mapping[str, Any]]:
        """The metadata of each run."""
        return [run.get_metadata() for run in self.runs]  # a cache would take much memory

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """The cell's parameters, by their metadata keys."""
        return metadata_of(self.cell.parameters)

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of the first run."""
        return self.runs[0].get_metadata() if self.runs else {}

    @cached_property
    def keeps_up(self) -> bool:
        """Whether iterations at a rate were done in time; true if the cell has no rate.

        Iterations were late if they took much longer than their schedule.  They were also late if
        the mean lag was greater in the second halves of slices than in the first halves,
        significantly and by more than a limit.
        """
        if not self.cell.parameters.rate:
            return True  # slices at the recorded speed are too short to show a growing lag
        if self.cell.parameters.during:
            return True  # an operation ends, and with it the queue that it causes
        facts = self.facts
        parts = [one["part_of_schedule"] for one in facts if "part_of_schedule" in one]
        if parts and statistics.median(parts) < KEPT_UP:
            return False
        growths = [seconds for run in self.numbers("lag_growth_s") for seconds in run]
        if len(growths) < MIN_RUNS:
            return True
        iterations = sum(one["iterations"] for one in facts)
        half_a_slice = iterations / self.cell.parameters.rate / len(growths) / 2
        allowed = half_a_slice * (1 - KEPT_UP) / 2
        return not (mean_of(growths).interval[0] > 0 and statistics.fmean(growths) > allowed)

    @property
    def wanted_seconds(self) -> float:
        """The requested seconds for all runs together; 0 unless runs share their clients."""
        return float(self.metadata.get("for_s", 0))

    @property
    def over_time(self) -> bool:
        """Whether runs share clients, and it is known when the slices started."""
        return self.timed and bool(self.wanted_seconds and self.starts)

    @property
    def lasted(self) -> float:
        """The seconds from the start of the first slice to the end of the last run."""
        if not self.starts:
            return 0.0
        last = float(self.runs[-1].get_metadata().get("duration", 0.0))
        return self.starts[-1][0] - self.starts[0][0] + last

    @cached_property
    def starts(self) -> list[list[float]]:
        """The starts of the slices of each run, in seconds; empty if a start is unknown."""
        starts = self.numbers("slice_starts_s")
        return starts if list(map(len, starts)) == [len(run.values) for run in self.runs] else []

    def numbers(self, key: str) -> list[list[float]]:
        """Return the numbers under a key of each run's metadata."""
        return [list(map(float, str(one.get(key, "")).split())) for one in self.facts]

    @property
    def uncleared_caches(self) -> list[str]:
        """The caches that workers could not empty before cold reads."""
        caches: list[str] = json.loads(self.metadata.get("uncleared_caches", "[]"))
        return caches

    @property
    def versions(self) -> dict[str, str]:
        """The versions of packages and servers, by name."""
        return versions_in(self.metadata)

    @cached_property
    def settings(self) -> Settings:
        """The settings of the contender and of its private servers, without secrets."""
        return settings_in(json.loads(self.metadata.get("settings", "{}")))

    @property
    def first_value(self) -> float | None:
        """The relative size of first values, as a median over runs.

        The first value of each run is divided by the median of the run's later values.  ``None``
        if the Python has no just-in-time compiler, or runs have too few values.
        """
        python = self.metadata.get("python_implementation")
        ratios = [
            run.values[0] / statistics.median(run.values[1:])
            for run in self.runs
            if len(run.values) > MAX_WARMING_UP
        ]
        return None if python in {"cpython", None} or not ratios else statistics.median(ratios)

    @property
    def slowest_host(self) -> tuple[float, str] | None:
        """The slowest host: its time divided by the mean time of all clients, and its name.

        The ratio is a mean over runs.  ``None`` if there is only one host.
        """
        ratios: dict[str, list[float]] = {}
        for metadata in self.facts:
            hosts = list(takewhile(metadata.__contains__, map("host_{}".format, count(1))))
            clients = sum(metadata[f"{key}_clients"] for key in hosts)
            seconds = sum(metadata[f"{key}_s"] * metadata[f"{key}_clients"] for key in hosts)
            mean = seconds / clients if len(hosts) > 1 and clients else 0.0
            for key in hosts if mean else ():
                ratios.setdefault(metadata[key], []).append(metadata[f"{key}_s"] / mean)
        if not ratios:
            return None
        return max((statistics.mean(of_host), name) for name, of_host in ratios.items())

    @property
    def precision(self) -> float:
        """The requested half width, as a fraction of the mean; 0 if no precision was requested."""
        return float(self.runs[-1].get_metadata().get("precision", 0)) if self.runs else 0.0

    @property
    def run_seconds(self) -> float:
        """The median duration of a run in seconds; 0 if the duration is unknown."""
        seconds = [one.get("duration", 0.0) for one in self.facts]
        return statistics.median(seconds) if seconds else 0.0

    def latencies_at(self, percentiles: Sequence[float], kind: str = "") -> dict[float, float]:
        """Return percentiles of latencies: of all iterations, or of a *kind* such as ``writing``.

        The latencies are in seconds.  The result is empty if the runs recorded no latencies.
        """
        histogram = self.latencies_of(kind)
        if histogram is None:
            return {}
        longest = max(float(one.get("latency_max_s", math.inf)) for one in self.facts)
        return _percentiles_of(histogram, percentiles, longest)

    def percentiles_by_run(self, percentile: float, kind: str) -> list[tuple[float] | None]:
        """Return a percentile of each run's latencies, ``None`` for runs that have none."""
        return [
            (_percentiles_of(histogram, [percentile], float(one["latency_max_s"]))[percentile],)
            if (histogram := _histogram(one, kind)) is not None
            else None
            for one in self.facts
        ]

    def latencies_of(self, kind: str = "") -> Any:
        """Return the HdrHistogram of the latencies of a *kind*, in nanoseconds, if there is one.

        If *kind* is empty, the histogram contains the latencies of all kinds.
        """
        if kind not in self._histograms:
            decoded = [_histogram(one, kind) for one in self.facts]
            known = [one for one in decoded if one is not None]
            for other in known[1:]:
                known[0].add(other)
            is_known = known and (kind or len(known) == len(decoded))
            self._histograms[kind] = known[0] if is_known else None
        return self._histograms[kind]

    @cached_property
    def figures(self) -> Figures:
        """The figures of the cell, by quantity."""
        return Figures(self)

    @cached_property
    def _histograms(self) -> dict[str, Any]:
        """The histograms that were asked for, by kind."""
        return {}

    @property
    def work_per_iteration(self) -> float:
        """The objects or transactions in one iteration of one client."""
        return float(self.metadata.get("work_per_iteration", self.cell.parameters.objects or 1))


def versions_in(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the versions of packages and servers that a run recorded, by name."""
    prefix = "version_"
    keys = (key for key in metadata if key.startswith(prefix))
    return {key[len(prefix) :]: str(metadata[key]) for key in keys}


def _histogram(metadata: Mapping[str, Any], kind: str) -> Any:
    key = f"{kind}_latency_histogram" if kind else "latency_histogram"
    return HdrHistogram.decode(metadata[key]) if key in metadata else None


def _percentiles_of(
    histogram: Any, percentiles: Sequence[float], longest: float
) -> dict[float, float]:
    """Return percentiles in seconds, none of which exceeds the *longest* latency."""
    # HdrHistogram's own search is a loop in Python, which takes ten times as long.
    totals = [*accumulate(memoryview(histogram.counts).cast("B").cast("Q"))]

    def seconds(percentile: float) -> float:
        wanted = histogram.get_target_count_at_percentile(percentile)
        bucket = histogram.get_value_from_index(bisect_left(totals, wanted))
        if not percentile:
            return float(histogram.get_lowest_equivalent_value(bucket)) / NANOSECONDS
        # A bucket of the histogram may extend beyond the longest latency in the bucket.
        end: int = histogram.get_highest_equivalent_value(bucket)
        return min(end / NANOSECONDS, longest)

    return {percentile: seconds(percentile) for percentile in percentiles}


def _compact(run: pyperf.Run) -> pyperf.Run:
    """Return a run that shares equal strings with other runs, which saves memory."""
    metadata = {
        sys.intern(key): sys.intern(value) if isinstance(value, str) else value
        for key, value in run.get_metadata().items()
        if key not in OF_FILES
    }
    return pyperf.Run(run.values, warmups=run.warmups, metadata=metadata, collect_metadata=False)
