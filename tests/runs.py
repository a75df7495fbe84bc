"""Made-up plans, runs and observers, for tests of scheduling and reports."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyperf

from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.contenders.contender import Contender
from zodbshootout.model.outcome import Failure, State
from zodbshootout.model.parameters import CLIENTS, OBJECTS, SIZE
from zodbshootout.model.quantities import THROUGHPUT
from zodbshootout.model.specification import (
    BenchmarkWords,
    ClientKind,
    CrewShape,
    Interpreter,
    Parameters,
    Storage,
)
from zodbshootout.model.storage_facts import Sharing, StorageInfo
from zodbshootout.model.titles import Value
from zodbshootout.results.cell import Cell
from zodbshootout.results.changes import ratio_of
from zodbshootout.results.figures import Figure
from zodbshootout.results.ratios import Ratio
from zodbshootout.results.result import CellResult
from zodbshootout.scheduling.calibration import Effort
from zodbshootout.scheduling.plan import Plan, Sweep, make_plan
from zodbshootout.scheduling.result_store import Observer

THREADS = CrewShape(2, ClientKind.THREAD, shared=True)


def run(*values: float, loops: int = 1, unit: str = "second", **metadata: Any) -> pyperf.Benchmark:
    metadata = {"name": "cell", "loops": loops, "unit": unit, **metadata}
    return pyperf.Benchmark([pyperf.Run(values, metadata=metadata, collect_metadata=False)])


def cell(
    benchmark: str, contender: str, variant: Mapping[str, Value] | None = None, **parameters: Any
) -> Cell:
    return cell_with(benchmark, contender, Parameters(THREADS, **parameters), variant)


def cell_with(
    benchmark: str,
    contender: str,
    parameters: Parameters,
    variant: Mapping[str, Value] | None = None,
) -> Cell:
    known = benchmarks().get(benchmark)
    words = known.words() if known else BenchmarkWords(f"{benchmark} {{objects}}")
    return Cell(benchmark, contender, parameters, words, variant or {})


def measured(
    target: Cell, *runs: Sequence[float], unit: str = "second", **metadata: Any
) -> CellResult:
    """Return the result of a cell with a run for each sequence of values."""
    result = CellResult(target)
    for values in runs:
        result = result.with_run(run(*values, unit=unit, **metadata))
    return result


def failed(target: Cell, reason: str) -> CellResult:
    return CellResult(target).failed(Failure(reason))


def unsupported(target: Cell, reason: str) -> CellResult:
    return CellResult(target).failed(Failure(reason, state=State.UNSUPPORTED))


class Counting(Observer):
    """An observer that records the contents of a progress bar."""

    def __init__(self) -> None:
        self.estimates: list[float] = []
        """Every reported estimate of the seconds left."""
        self.settled: list[str] = []
        self.failed: list[str] = []
        self.stages: list[tuple[str, str]] = []
        """Each stage with the names of its contenders."""

    def left(self, seconds: float) -> None:
        self.estimates.append(seconds)

    def working_on(self, cells: Sequence[Cell], stage: str) -> None:
        self.stages.append((stage, "".join(one.contender for one in cells)))

    def row_done(self, results: Sequence[CellResult]) -> None:
        self.settled += [
            f"{result.cell.contender} {result.cell.benchmark} {result.state.value}"
            for result in results
        ]

    def cell_failed(self, result: CellResult) -> None:
        self.failed.append(f"{result.cell.contender} {result.cell.benchmark}")


def contender(
    name: str, place: str = "", interpreter: Interpreter | None = None, **info: Any
) -> Contender:
    """Return a contender; the one called ``memory`` keeps its data in memory."""
    if name == "memory":
        info = {"sharing": Sharing.VOLATILE, **info}
    settings = {"storage.path": place or f"/var/{name}.fs"}
    storage = Storage(section=name, interpreter=interpreter)
    return Contender(name, storage, settings, StorageInfo(**info))


def sweep_of(
    base: Parameters,
    concurrency: Sequence[int] = (1,),
    objects: Sequence[int] = (10,),
    sizes: Sequence[int] = (300,),
) -> Sweep:
    return Sweep({CLIENTS: concurrency, OBJECTS: objects, SIZE: sizes}, base)


def plan_of(
    contenders: Sequence[str | Contender],
    benchmarks: Sequence[str] = ("add",),
    shaped: Mapping[str, Any] | None = None,
    *,
    concurrency: Sequence[int] = (1,),
    **effort: Any,
) -> Plan:
    """Return a plan with an :class:`~zodbshootout.scheduling.calibration.Effort` of *effort*."""
    wanted = Effort(
        **{"processes": 3, "values": 2, "warmups": 0, "loops": 4, "min_time": 0.1, **effort}
    )
    base = Parameters(**{"crew": CrewShape(1), **(shaped or {})})
    sweep = sweep_of(base, concurrency)
    as_contenders = [
        contender(name_or_contender) if isinstance(name_or_contender, str) else name_or_contender
        for name_or_contender in contenders
    ]
    return make_plan(as_contenders, benchmarks, sweep, wanted)


def measured_for(
    target: Cell,
    runs: Sequence[Sequence[float]],
    every: float = 45.0,
    more: Callable[[int], Mapping[str, Any]] = lambda _: {},
) -> CellResult:
    """Return a result of ``--for``: a run with these values *every* so many seconds.

    *more* returns further metadata of the run with a number.
    """
    result = CellResult(target)
    for number, values in enumerate(runs):
        turns = range(len(values))
        numbers: dict[str, list[float]] = {
            "slices": [number * len(values) + turn for turn in turns],
            "slice_starts_s": [1e6 + every * (number + turn / len(values)) for turn in turns],
        }
        metadata: dict[str, Any] = {
            key: " ".join(map(repr, listed)) for key, listed in numbers.items()
        }
        metadata |= {"for_s": every * len(runs), "duration": every, "round": f"x-{number}"}
        result = result.with_run(run(*values, **{**metadata, **more(number)}))
    return result


def in_rounds(
    contender: str, rounds: Sequence[Sequence[float]], benchmark: str = "add",
    variant: Any = None, rtt: Any = None, **more: Any,
) -> CellResult:  # fmt: skip
    """Return a result whose runs were made in rounds numbered from 0, with slices in order."""
    result = CellResult(cell(benchmark, contender, variant, rtt=rtt))
    for number, values in enumerate(rounds):
        slices = " ".join(map(str, range(len(values))))
        result = result.with_run(run(*values, round=f"r-{number}", slices=slices, **more))
    return result


def noisy(seed: int, slower: float = 1.0, runs: int = 6, noise: float = 0.01) -> list[list[float]]:
    """Return values of runs on a machine that is half as fast in some rounds as in others."""
    chance, machine = random.Random(seed), random.Random(0)
    return [
        [speed * slower * math.exp(chance.gauss(0, noise)) for _ in range(10)]
        for speed in (machine.choice([1.0, 2.0]) for _ in range(runs))
    ]


def speed_ratio(base: CellResult, new: CellResult) -> Ratio:
    return ratio_of(Figure(base, THROUGHPUT), Figure(new, THROUGHPUT))
