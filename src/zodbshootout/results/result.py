"""What was measured, as typed records, and what they are called in files."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import quote

import pyperf
from hdrh.histogram import HdrHistogram

from zodbshootout.client.outcome import Failure, State
from zodbshootout.client.protocol import NANOSECONDS
from zodbshootout.client.specification import INSTALLED, Parameters
from zodbshootout.results.cell import Cell
from zodbshootout.results.estimate import Estimate, mean_of_runs

MAX_WARMING_UP = 2
"""With more values than that, a run tells whether its first one is slower."""
USUAL = (50, 90, 99)
"""The percentiles that are shown wherever any are."""
NAME = "cell"
"""What pyperf calls the runs of any cell, until they are written."""


@dataclass(frozen=True)
class CellResult:
    """A cell, what became of it, and its runs."""

    cell: Cell
    state: State = State.NOT_RUN
    reason: str = ""
    """One line: why there is no number, or what is to be said against it."""
    detail: str = ""
    """A traceback, where there is one."""
    runs: tuple[pyperf.Run, ...] = ()
    crashes: tuple[str, ...] = ()
    """Why runs were made again: how processes have crashed in them, in one line each."""

    def with_run(self, benchmark: pyperf.Benchmark) -> CellResult:
        """Return this result with the run of a worker added, or those of a file."""
        benchmark.update_metadata({"name": NAME})  # pyperf has runs of one name only together
        runs = map(_compact, benchmark.get_runs())
        return replace(self, state=State.MEASURED, runs=(*self.runs, *runs))

    def failed(self, failure: Failure) -> CellResult:
        """Return this result as one of which there will be no more runs, and why.

        The runs that it has are kept, unless the failure says something against them, too.
        """
        kept = failure.state is State.FAILED and not failure.invalidates_results
        return replace(
            self,
            state=failure.state,
            reason=failure.cause,
            detail=failure.detail,
            runs=self.runs if kept else (),
        )

    def crashed(self, cause: str) -> CellResult:
        """Return this result as one of which a run is made again after a crash."""
        return replace(self, crashes=(*self.crashes, cause))

    def remarked(self, due: int) -> CellResult:
        """Return this result with what is to be said against its figure; *due* runs were wanted."""
        if self.state is not State.MEASURED:
            return self
        remarks = []
        if len(self.runs) < due:
            remarks.append(f"incomplete: {len(self.runs)} of {due} runs")
        if self.crashes:
            times = "once" if len(self.crashes) == 1 else f"{len(self.crashes)} times"
            remarks.append(f"a run was made again {times}: {self.crashes[-1]}")
        return replace(self, reason="; ".join(remarks))

    @property
    def measured(self) -> bool:
        """Whether there is a number."""
        return bool(self.runs)

    @property
    def timed(self) -> bool:
        """Whether there is a figure and it is a time."""
        return self.measured and self.unit == "second"

    def benchmark(self, name: str = NAME) -> pyperf.Benchmark:
        """Return the runs as pyperf has them, under some name."""
        benchmark = pyperf.Benchmark(self.runs)
        benchmark.update_metadata({"name": name})
        return benchmark

    @cached_property
    def unit(self) -> str:
        """Return pyperf's unit of the values: ``second``, or ``byte`` where memory was traced."""
        return str(self.runs[0].get_metadata().get("unit", "second"))

    @property
    def servers_restarted(self) -> bool:
        """Return whether private servers were restarted before each value."""
        return any(run.get_metadata().get("servers_restarted") for run in self.runs)

    @property
    def uncleared_caches(self) -> str:
        """Return the caches that could not be emptied before cold reads; empty where all were."""
        left = self.runs[0].get_metadata().get("uncleared_caches", "none") if self.runs else "none"
        return "" if left == "none" else str(left)

    @property
    def variant_of(self) -> str:
        """The contender of which this is one in another environment; empty if there is none."""
        return str(self.runs[0].get_metadata().get("beside", "")) if self.runs else ""

    @property
    def environment(self) -> str:
        """The name of the contender's environment."""
        original = self.variant_of
        return self.cell.contender.removeprefix(f"{original}@") if original else INSTALLED

    @property
    def first_value(self) -> float | None:
        """Return how many times as long a run's first value takes as its later ones.

        That is the median over runs, of the median of the later values of each, and is ``None``
        where the Python does not compile what it runs, or runs have too few values.
        """
        compiled = self.runs and self.runs[0].get_metadata().get("python_implementation")
        long_enough = [run.values for run in self.runs if len(run.values) > MAX_WARMING_UP]
        if compiled in {"cpython", None} or not long_enough:
            return None
        return float(
            statistics.median(values[0] / statistics.median(values[1:]) for values in long_enough)
        )

    @property
    def slowest_host(self) -> tuple[float, str] | None:
        """Return how many times as long the clients of a host take as those of all, and its name.

        That is the mean over runs, of the host where it is greatest; ``None`` where there are not
        several hosts.
        """
        ratios: dict[str, list[float]] = {}
        for told in (run.get_metadata() for run in self.runs):
            hosts = [key for key in told if _is_host(key, told)]
            clients = sum(told[f"{key}_clients"] for key in hosts)
            seconds = sum(told[f"{key}_s"] * told[f"{key}_clients"] for key in hosts)
            mean = seconds / clients if len(hosts) > 1 and clients else 0.0
            for key in hosts if mean else ():
                ratios.setdefault(told[key], []).append(told[f"{key}_s"] / mean)
        if not ratios:
            return None
        return max((statistics.mean(each), name) for name, each in ratios.items())

    @cached_property
    def values(self) -> list[float]:
        """Return the values of all runs: seconds per iteration, or bytes."""
        return [value for run in self.runs for value in run.values]

    @cached_property
    def mean(self) -> float:
        """Return the mean of all values."""
        return statistics.fmean(self.values)

    @property
    def spread(self) -> float | None:
        """Return the values' standard deviation as a fraction of their mean, if there are two."""
        return statistics.stdev(self.values) / self.mean if len(self.values) > 1 else None

    @cached_property
    def estimate(self) -> Estimate:
        """The mean over runs, which are independent, in the unit of the values."""
        return mean_of_runs([run.values for run in self.runs])

    @property
    def relative(self) -> Estimate:
        """The mean over runs as a fraction of itself."""
        mean = self.estimate.mean
        return replace(self.estimate, mean=1.0, variance=self.estimate.variance / mean**2)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the mean over runs, if there are several runs."""
        return self.estimate.interval if len(self.runs) > 1 else None

    @property
    def half_width(self) -> float | None:
        """Half of the width of that interval, as a fraction of the mean."""
        return self.relative.half_width if len(self.runs) > 1 else None

    @property
    def precision(self) -> float:
        """Return the half width that was asked for, as a part of the mean; 0 where none was."""
        return float(self.runs[-1].get_metadata().get("precision", 0)) if self.runs else 0.0

    def latency(self, percentile: float) -> float | None:
        """Return a percentile of the latencies of all runs, in seconds, if they were recorded."""
        if percentile not in self._known_latencies:
            self._known_latencies.update(self.latencies_at([*USUAL, percentile]))
        return self._known_latencies.get(percentile)

    def latencies_at(self, percentiles: Sequence[float]) -> dict[float, float]:
        """Return percentiles of the latencies of all runs, in seconds, if they were recorded.

        Each call takes some milliseconds, however many are asked for.
        """
        if self.latencies is None:
            return {}
        found = self.latencies.get_percentile_to_value_dict(list(percentiles))
        return {percentile: value / NANOSECONDS for percentile, value in found.items()}

    @cached_property
    def _known_latencies(self) -> dict[float, float]:
        return {}

    @property
    def longest_latency(self) -> float | None:
        """Return the seconds that the longest iteration of all runs took, if that was recorded."""
        found = [run.get_metadata().get("latency_max_s") for run in self.runs]
        return max((float(each) for each in found if each is not None), default=None)

    @cached_property
    def latencies(self) -> Any:
        """Return the HdrHistogram of the latencies of all runs, in nanoseconds, if there is one."""
        encoded = [run.get_metadata().get("latency_histogram") for run in self.runs]
        if not encoded or not all(encoded):
            return None
        first, *others = map(HdrHistogram.decode, encoded)
        for other in others:
            first.add(other)
        return first

    @property
    def objects_per_second(self) -> float:
        """Return how many objects all clients together wrote or read in a second.

        Where it is transactions that are counted, it is these.
        """
        return self.work / self.mean

    @property
    def work(self) -> float:
        """Return how many objects all clients together write or read in an iteration."""
        parameters = self.cell.parameters
        work = self.runs[0].get_metadata().get("work_per_iteration", parameters.objects)
        return parameters.crew.size * float(work)


def _compact(run: pyperf.Run) -> pyperf.Run:
    """Return a run that shares the strings of its metadata with others.

    Most of the 70 are the same in all runs, and each run is read from a file of its own.
    """
    metadata = {
        sys.intern(key): sys.intern(value) if isinstance(value, str) else value
        for key, value in run.get_metadata().items()
    }
    return pyperf.Run(run.values, warmups=run.warmups, metadata=metadata, collect_metadata=False)


def _is_host(key: str, metadata: Mapping[str, Any]) -> bool:
    return key.startswith("host_") and {f"{key}_s", f"{key}_clients"} <= metadata.keys()


def long_name(cell: Cell) -> str:
    """Return a name that tells a cell from every other one in any file."""
    parameters = cell.parameters
    objects = _objects(parameters) if parameters.objects else []
    return f"{cell.contender}: {' '.join([cell.benchmark, *objects, parameters.crew.code])}"


def _objects(parameters: Parameters) -> list[str]:
    mapping = parameters.mapping.value
    return [
        f"{parameters.objects}x{parameters.object_size}B",
        *(["blobs"] if parameters.blobs else []),
        *([] if mapping == "PersistentMapping" else [mapping]),
    ]


def short_name(cell: Cell, varied: Iterable[str]) -> str:
    """Return a name that tells a cell from the others of its contender in this run.

    *varied* names what has more than one value in the run: ``concurrency``, ``objects``, ``size``.
    """
    parameters = cell.parameters
    values = {"concurrency": f"c={parameters.crew.size}"}
    if parameters.objects:
        values |= {"objects": f"n={parameters.objects}", "size": f"s={parameters.object_size}"}
    return " ".join([cell.benchmark, *(values[name] for name in values if name in set(varied))])


def file_name(cell: Cell, varied: Iterable[str]) -> str:
    """Return a name for files about a cell, alike in what it tells apart."""
    words = short_name(cell, varied).replace("=", "").split()
    return quote("-".join([cell.contender, *words]), safe="@=+,")


def varied_parameters(cells: Iterable[Cell]) -> frozenset[str]:
    """Return the names of the parameters that have more than one value among *cells*."""
    seen: dict[str, set[int]] = {"concurrency": set(), "objects": set(), "size": set()}
    for cell in cells:
        seen["concurrency"].add(cell.parameters.crew.size)
        if cell.parameters.objects:
            seen["objects"].add(cell.parameters.objects)
            seen["size"].add(cell.parameters.object_size)
    return frozenset(name for name, values in seen.items() if len(values) > 1)
