"""Made-up plans, runs and observers, for tests of scheduling and reports."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pyperf

from zodbshootout.client.benchmarks import benchmarks, words_of
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
    """Return a cell of two threads with one DB and 1000 objects, or of other *parameters*."""
    known = benchmarks().get(benchmark)
    words = words_of(known) if known else BenchmarkWords(f"{benchmark} {{objects}}")
    of_cell = Parameters(**{"crew": THREADS, "objects": 1000, **parameters})
    return Cell(benchmark, contender, of_cell, words, variant or {})


def measured(target: Cell, *runs: Sequence[float], **metadata: Any) -> CellResult:
    """Return the result of a cell with a run for each sequence of values.

    The runs were made in rounds numbered from 0, with slices in order.  Metadata that are functions
    return those of the run with a number; the runs have none that are ``None``.
    """
    result = CellResult(target)
    for number, values in enumerate(runs):
        slices = " ".join(map(str, range(len(values))))
        facts = {
            key: fact(number) if callable(fact) else fact
            for key, fact in {"round": f"r-{number}", "slices": slices, **metadata}.items()
        }
        known = {key: fact for key, fact in facts.items() if fact is not None}
        result = result.with_run(run(*values, **known))
    return result


def unpaired(target: Cell, *runs: Sequence[float], **metadata: Any) -> CellResult:
    """Return a result of which nobody knows which other runs were made in turn with its runs."""
    return measured(target, *runs, round=None, **metadata)


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
    settings: dict[tuple[str, ...], str] = {("storage", "path"): place or f"/var/{name}.fs"}
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


def noisy(seed: int, slower: float = 1.0, runs: int = 6, noise: float = 0.01) -> list[list[float]]:
    """Return values of runs on a machine that is half as fast in some rounds as in others."""
    chance, machine = random.Random(seed), random.Random(0)
    return [
        [speed * slower * math.exp(chance.gauss(0, noise)) for _ in range(10)]
        for speed in (machine.choice([1.0, 2.0]) for _ in range(runs))
    ]


def speed_ratio(base: CellResult, new: CellResult) -> Ratio:
    return ratio_of(Figure(base, THROUGHPUT), Figure(new, THROUGHPUT))
