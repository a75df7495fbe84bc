"""Which cells there are, in which order they run, and which of them never can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from zodbshootout.benchmarks.registry import benchmarks
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.layer import Sharing
from zodbshootout.model import Cell, Effort, Parameters


@dataclass(frozen=True)
class Sweep:
    """Every value that is asked for of every parameter."""

    concurrency: Sequence[int]
    objects: Sequence[int]
    object_sizes: Sequence[int]
    base: Parameters
    """What all combinations have in common."""

    def parameters(self) -> list[Parameters]:
        """Return every combination."""
        return [
            replace(
                self.base,
                crew=replace(self.base.crew, size=size),
                objects=objects,
                object_size=object_size,
            )
            for size, object_size, objects in product(
                self.concurrency, self.object_sizes, self.objects
            )
        ]


@dataclass(frozen=True)
class Row:
    """The cells of one benchmark with one set of parameters: one for each contender."""

    benchmark: str
    parameters: Parameters
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Plan:
    """What is to be measured, and how."""

    contenders: Sequence[Contender]
    rows: Sequence[Row]
    effort: Effort

    def knowing(self, facts: Mapping[str, Mapping[str, str]]) -> Plan:
        """Return the plan with what was learnt when the contenders were opened."""
        contenders = [
            _informed(each, facts[each.name]) if each.name in facts else each
            for each in self.contenders
        ]
        return replace(self, contenders=contenders)

    @property
    def cells(self) -> list[Cell]:
        """Return every cell in the order of the rows."""
        return [cell for row in self.rows for cell in row.cells]

    def contender(self, cell: Cell) -> Contender:
        """Return the contender of a cell."""
        return next(each for each in self.contenders if each.name == cell.contender)

    def refusal(self, cell: Cell) -> str | None:
        """Say why a cell cannot be measured, as far as that is known without opening anything."""
        contender = self.contender(cell)
        benchmark = benchmarks()[cell.benchmark]
        return contender.refusal(cell.parameters) or benchmark.refusal(contender, cell.parameters)

    @property
    def measurable(self) -> list[Contender]:
        """The contenders with a cell that is not refused."""
        names = {cell.contender for cell in self.cells if self.refusal(cell) is None}
        return [each for each in self.contenders if each.name in names]

    @property
    def calibrates(self) -> bool:
        """Whether the loops are chosen by measuring."""
        return self.effort.loops == 0

    def workers(self, cell: Cell) -> int:
        """Return how many workers a cell takes, one for calibration included."""
        if self.refusal(cell) is not None:
            return 0
        return self.effort.processes + int(self.calibrates)

    @property
    def total_workers(self) -> int:
        """Return how many workers all cells take."""
        return sum(map(self.workers, self.cells))

    def estimated_seconds(self) -> float:
        """Return a rough guess of how long it all takes.

        It rests on what was seen of the embedded default: a worker takes about a second to start,
        open its storage, check and end, and a value somewhat longer than its minimum time.
        """
        values = self.effort.values + self.effort.warmups
        return self.total_workers * (1.0 + values * max(self.effort.min_time, 0.02) * 1.5)


def make_plan(
    contenders: Sequence[Contender], names: Sequence[str], sweep: Sweep, effort: Effort
) -> Plan:
    """Lay out the cells: benchmark by benchmark, each for all contenders before the next."""
    # Parameters that do not suit a benchmark are replaced, after which several may be the same.
    combinations = dict.fromkeys(
        (name, benchmarks()[name].fitted(parameters))
        for parameters in sweep.parameters()
        for name in names
    )
    rows = [
        Row(name, parameters, [Cell(name, each.name, parameters) for each in contenders])
        for name, parameters in combinations
    ]
    return Plan(contenders, rows, effort)


def _informed(contender: Contender, facts: Mapping[str, str]) -> Contender:
    return replace(
        contender,
        observed_sharing=Sharing(facts["sharing"]),
        has_blobs=facts["stores_blobs"] == "yes",
    )
