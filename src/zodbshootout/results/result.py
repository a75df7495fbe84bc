"""The results of cells: figures of runs, and rates and latencies computed from the figures."""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyperf
from hdrh.histogram import HdrHistogram

from zodbshootout.model.arrivals import KEPT_UP
from zodbshootout.model.costs import Cost
from zodbshootout.model.latencies import NANOSECONDS
from zodbshootout.model.outcome import Failure, State
from zodbshootout.model.specification import INSTALLED, without_rtt
from zodbshootout.model.wording import counted
from zodbshootout.results.cell import Cell
from zodbshootout.results.estimate import MIN_RUNS, Estimate, joined, mean_of, mean_of_runs

MAX_WARMING_UP = 2
"""A run with at most this many values cannot show whether its first value is slower."""
IMPRECISE = 0.1
"""If no precision was requested, a figure is imprecise if the half width of its interval exceeds
this fraction of the mean."""
NEARLY = 0.9
"""A result is complete if it lasted at least this fraction of the requested time."""
USUAL = (50, 90, 99)
"""The percentiles that every report of latencies shows."""
PERCENTILES_AT_A_RATE = {"p50": 0, "p99": 0, "p99.9": 5000}
"""The percentiles shown for iterations at a rate, and the minimum of iterations for each."""
REACHED, LONGEST = "reached", "longest"
WATCHED = ("p50", "p99")
"""The measures that are compared if there is a rate; only these measures have to be precise."""
_NAME = "cell"
"""A name for all runs in memory: pyperf joins only runs that have the same name."""


@dataclass(frozen=True)
class Trend:
    """A rise of a cell's times, either from the first run to the last or within each run."""

    times: float
    """The time at the end as a multiple of the time at the start."""
    p_value: float
    """The probability of such a rise by chance, corrected for the number of cells tested."""
    within_runs: bool = False
    """Whether times rise within each run, and are low again at the start of the next."""
    alone: bool = False
    """Whether the cell was tested without another contender.  If so, the rise may be due to the
    machine."""
    interval: tuple[float, float] | None = None
    """The ends of the 95 % confidence interval of :attr:`times`, if it was computed."""


@dataclass(frozen=True)
class Stall:
    """An iteration that took far longer than the cell's other iterations."""

    after: float
    """Seconds from the start of the first slice to the start of the slice with the iteration."""
    seconds: float
    """The duration of the iteration."""


@dataclass(frozen=True)
class OverTime:
    """Findings about a cell whose runs share their clients, servers and databases."""

    seconds: float
    """Seconds from the start of the first slice to the start of the last slice."""
    smallest: float | None
    """The smallest trend that would have been detected, as in :attr:`Trend.times`; ``None`` if
    there are too few runs."""
    faster: bool = False
    """Whether the cell takes less time at the end."""
    growths: tuple[tuple[str, float], ...] = ()
    """The metadata key and the bytes per hour of each memory that grows steadily."""
    stalls: tuple[Stall, ...] = ()
    load: float = 0.0
    """The part of the processors' time that other programs and virtual machines used: the largest
    of ten medians, each over a tenth of the runs."""
    loaded: bool = False
    """Whether a change of this load may explain why the cell's times rise or fall."""


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
    measure: str = ""
    """The name of the measure in :attr:`figures`; empty if they contain no measure."""
    cost: Cost | None = None
    """The cost in :attr:`figures`; ``None`` if they contain no cost."""
    figures: tuple[tuple[float, ...], ...] = ()
    """The values of a measure or a cost in each run, instead of the runs' own values."""
    trend: Trend | None = None
    """The rise of the cell's times; ``None`` if no rise was found."""
    over_time: OverTime | None = None
    """Further findings, if runs share their clients, servers and databases."""

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
        return self.measured and self.unit == "second"

    def benchmark(self, name: str = _NAME) -> pyperf.Benchmark:
        benchmark = pyperf.Benchmark(self.runs)
        benchmark.update_metadata({"name": name})
        return benchmark

    @property
    def facts(self) -> Sequence[Mapping[str, Any]]:
        """The metadata of each run."""
        return [run.get_metadata() for run in self.runs]  # a cache would take much memory

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of the first run."""
        return self.runs[0].get_metadata() if self.runs else {}

    @property
    def unit(self) -> str:
        """The unit of the values as in pyperf: ``second``, or ``byte`` if memory was traced."""
        return str(self.metadata.get("unit", "second"))

    @property
    def paced(self) -> bool:
        """Whether iterations had scheduled starts, so that values are latencies."""
        parameters = self.cell.parameters
        return parameters.workload.speed > 0 or parameters.rate > 0

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

    @cached_property
    def measures(self) -> Mapping[str, CellResult]:
        """The results to show for iterations at a rate, by measure; see :meth:`with_measure`."""
        if not (self.cell.parameters.rate and self.timed):
            return {}
        iterations = sum(one.get("iterations", 0) for one in self.facts)
        shown = [name for name, beyond in PERCENTILES_AT_A_RATE.items() if iterations >= beyond]
        return {name: self.with_measure(name) for name in [REACHED, *shown, LONGEST]}

    def with_measure(self, name: str) -> CellResult:
        """Return the result with the measure *name* as the only value of each run.

        Percentiles of latencies (such as ``p99``) and the ``longest`` latency are in seconds.  The
        measure ``reached`` is the fraction of the rate that a run reached.
        """
        figures = tuple((_measure(name, one),) for one in self.facts)
        return replace(self, figures=figures, measure=name)

    def with_cost(self, cost: Cost) -> CellResult | None:
        """Return the result with a cost as its values, ``None`` if a run lacks the cost."""
        figures = list(map(cost.values, self.facts))
        known = tuple(tuple(values) for values in figures if values is not None)
        return replace(self, figures=known, cost=cost) if len(known) == len(figures) > 0 else None

    @property
    def wanted_seconds(self) -> float:
        """The requested seconds for all runs together; 0 unless runs share their clients."""
        return float(self.metadata.get("for_s", 0))

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
    def uncleared_caches(self) -> str:
        """The caches that workers could not empty before cold reads, or an empty text."""
        caches = str(self.metadata.get("uncleared_caches", "none"))
        return "" if caches == "none" else caches

    @property
    def variant_of(self) -> str:
        """The contender of which this contender is a variant, or an empty text."""
        original = str(self.metadata.get("variant_of", ""))
        if self.cell.parameters.rtt is not None:
            original, _ = without_rtt(original)
        return "" if original == self.cell.contender else original

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """The settings of the contender and of its private servers, without secrets."""
        values: dict[str, str] = json.loads(self.metadata.get("settings", "{}"))
        return values

    @cached_property
    def definitions(self) -> Mapping[str, str]:
        """The values of ``--define`` that distinguish this variant, by name."""
        values: dict[str, str] = json.loads(self.metadata.get("definitions", "{}"))
        return values

    @property
    def section(self) -> str:
        """The name of the contender's section, without the values that distinguish a variant."""
        return self.cell.contender.partition(" [")[0] if self.definitions else self.cell.contender

    @property
    def environment(self) -> str:
        original = "" if self.definitions else self.variant_of
        return self.cell.contender.removeprefix(f"{original}@") if original else INSTALLED

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
            hosts = [key for key in metadata if {f"{key}_s", f"{key}_clients"} <= metadata.keys()]
            clients = sum(metadata[f"{key}_clients"] for key in hosts)
            seconds = sum(metadata[f"{key}_s"] * metadata[f"{key}_clients"] for key in hosts)
            mean = seconds / clients if len(hosts) > 1 and clients else 0.0
            for key in hosts if mean else ():
                ratios.setdefault(metadata[key], []).append(metadata[f"{key}_s"] / mean)
        if not ratios:
            return None
        return max((statistics.mean(of_host), name) for name, of_host in ratios.items())

    @cached_property
    def by_round(self) -> dict[str, dict[int, float]]:
        """The values by round and slice; runs of unknown round or slices are left out."""
        rounds: dict[str, dict[int, float]] = {}
        for run, metadata, values in zip(self.runs, self.facts, self.values_by_run, strict=True):
            slices = list(map(int, str(metadata.get("slices", "")).split()))
            if "round" in metadata and len(slices) == len(run.values):
                keys = slices if len(values) == len(slices) else range(len(values))
                own = rounds.setdefault(str(metadata["round"]), {})
                own.update(zip(keys, values, strict=True))
        return rounds

    @property
    def values_by_run(self) -> Sequence[Sequence[float]]:
        return self.figures or [run.values for run in self.runs]

    @cached_property
    def values(self) -> list[float]:
        """The values of all runs, in seconds per iteration, bytes, or the unit of the figures."""
        return [value for values in self.values_by_run for value in values]

    @cached_property
    def mean(self) -> float:
        return self.estimate.mean if self.measure else statistics.fmean(self.values)

    @cached_property
    def estimate(self) -> Estimate:
        """The mean, estimated from runs or, if runs share clients, from batches of runs.

        The mean of a measure is geometric, so that one long stall does not dominate the mean.
        """
        runs = joined(self.values_by_run) if self.wanted_seconds else self.values_by_run
        if self.measure:
            logs = mean_of([statistics.fmean(map(math.log, values)) for values in runs])
            mean = math.exp(logs.mean)
            return replace(logs, mean=mean, variance=logs.variance * mean**2)
        return mean_of_runs(runs)

    @property
    def relative(self) -> Estimate:
        """The estimate divided by its mean, so that the new mean is 1."""
        mean = self.estimate.mean or 1.0
        return replace(self.estimate, mean=1.0, variance=self.estimate.variance / mean**2)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the mean; ``None`` if there are too few runs."""
        if len(self.runs) < MIN_RUNS:
            return None
        if self.measure:
            factor = math.exp(self.relative.half_width)
            return self.mean / factor, self.mean * factor
        return self.estimate.interval

    @property
    def half_width(self) -> float | None:
        """The half width of the estimate's interval, as a fraction of the mean."""
        return self.relative.half_width if len(self.runs) >= MIN_RUNS else None

    @property
    def precision(self) -> float:
        """The requested half width, as a fraction of the mean; 0 if no precision was requested."""
        return float(self.runs[-1].get_metadata().get("precision", 0)) if self.runs else 0.0

    @property
    def is_imprecise(self) -> bool:
        """Whether the half width is unknown or above the requested precision, by default 10 %.

        A measure that is not in :data:`WATCHED` does not have to be precise, so it is never
        imprecise.  Results of runs that share clients are never imprecise either.
        """
        if self.measure not in {"", *WATCHED} or self.wanted_seconds:
            return False
        return self.half_width is None or self.half_width > (self.precision or IMPRECISE)

    @property
    def run_seconds(self) -> float:
        """The median duration of a run in seconds; 0 if the duration is unknown."""
        seconds = [one.get("duration", 0.0) for one in self.facts]
        return statistics.median(seconds) if seconds else 0.0

    @cached_property
    def usual_latencies(self) -> dict[float, float]:
        """The latencies in seconds at the percentiles :data:`USUAL`."""
        return self.latencies_at(USUAL)

    def latencies_at(self, percentiles: Sequence[float], kind: str = "") -> dict[float, float]:
        """Return percentiles of latencies: of all iterations, or of a *kind* such as ``writing``.

        The latencies are in seconds.  The result is empty if the runs recorded no latencies.
        """
        histogram = self._latencies_of(kind) if kind else self.latencies
        if histogram is None:
            return {}
        # A bucket of the histogram may extend beyond the longest latency in the bucket.
        longest = math.inf if self.longest_latency is None else self.longest_latency
        values = histogram.get_percentile_to_value_dict(list(percentiles))
        return {
            percentile: min(value / NANOSECONDS, longest) for percentile, value in values.items()
        }

    @property
    def longest_latency(self) -> float | None:
        """The longest latency of all runs, in seconds, ``None`` if runs recorded no latencies."""
        longest = (float(one["latency_max_s"]) for one in self.facts if "latency_max_s" in one)
        return max(longest, default=None)

    @cached_property
    def latencies(self) -> Any:
        """The HdrHistogram of the latencies of all runs, in nanoseconds, if there is one."""
        return self._latencies_of("")

    def _latencies_of(self, kind: str) -> Any:
        """Return the HdrHistogram of the latencies of a *kind*, in nanoseconds, if there is one.

        If *kind* is empty, the histogram contains the latencies of all kinds.
        """
        key = f"{kind}_latency_histogram" if kind else "latency_histogram"
        encoded = [one[key] for one in self.facts if key in one]
        if not encoded or (not kind and len(encoded) < len(self.runs)):
            return None
        first, *others = map(HdrHistogram.decode, encoded)
        for other in others:
            first.add(other)
        return first

    @property
    def objects_per_second(self) -> float:
        """The objects or transactions per second that all clients together process."""
        return self.work / self.mean

    @property
    def work(self) -> float:
        """The objects or transactions in one iteration, added up over all clients.

        If runs search for the highest rate, iterations are counted instead.
        """
        parameters = self.cell.parameters
        work = 1.0 if parameters.limit.percentile else self.work_per_iteration
        return parameters.crew.size * work

    @property
    def work_per_iteration(self) -> float:
        """The objects or transactions in one iteration of one client."""
        return float(self.metadata.get("work_per_iteration", self.cell.parameters.objects or 1))


def _measure(name: str, metadata: Mapping[str, Any]) -> float:
    """Return a measure of a run from the run's *metadata*; see :meth:`CellResult.with_measure`."""
    if name == REACHED:
        return float(metadata["part_of_schedule"])
    longest = float(metadata["latency_max_s"])
    if name == LONGEST:
        return longest
    histogram = HdrHistogram.decode(metadata["latency_histogram"])
    # A bucket of the histogram may extend beyond the longest latency in the bucket.
    return min(float(histogram.get_value_at_percentile(float(name[1:])) / NANOSECONDS), longest)


def _compact(run: pyperf.Run) -> pyperf.Run:
    """Return a run that shares equal strings with other runs, which saves memory."""
    metadata = {
        sys.intern(key): sys.intern(value) if isinstance(value, str) else value
        for key, value in run.get_metadata().items()
    }
    return pyperf.Run(run.values, warmups=run.warmups, metadata=metadata, collect_metadata=False)


def averaged(results: Sequence[CellResult]) -> CellResult:
    """Return a result with one figure for each run: the geometric mean of the run's measures.

    *results* are the measures of one cell.
    """
    measures = zip(*(result.values for result in results), strict=True)
    return replace(
        results[0], figures=tuple((statistics.geometric_mean(values),) for values in measures)
    )
