"""Which cells there are, in which order they run, and which of them never can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.specification import Interpreter, Parameters
from zodbshootout.client.storage_info import StorageInfo
from zodbshootout.contenders.contender import Contender
from zodbshootout.results.cell import Cell
from zodbshootout.scheduling.interleaved_run import Effort


@dataclass(frozen=True)
class Sweep:
    """Every value that is asked for of every parameter."""

    concurrency: Sequence[int]
    objects: Sequence[int]
    object_sizes: Sequence[int]
    base: Parameters
    """What all combinations have in common."""

    def parameters(self) -> list[Parameters]:
        """Return every combination, those of a coarse grid before those between them.

        So a sweep that is interrupted has curves over the whole range of each parameter.
        """
        axes = [self.concurrency, self.object_sizes, self.objects]
        finest = [_levels(axis) for axis in axes]
        combinations = sorted(
            product(*axes),
            key=lambda numbers: max(
                levels[number] for levels, number in zip(finest, numbers, strict=True)
            ),
        )
        return [
            replace(
                self.base,
                crew=replace(self.base.crew, size=size),
                objects=objects,
                object_size=object_size,
            )
            for size, object_size, objects in combinations
        ]


def _levels(numbers: Sequence[int]) -> dict[int, int]:
    """Return how fine a grid has to be for it to have each of the numbers.

    That is 0 for the smallest and the largest one, 1 for the one in the middle of all, 2 for those
    in the middle of both halves, and so on.
    """
    ordered = sorted(numbers)
    levels = {ordered[0]: 0, ordered[-1]: 0}
    gaps = [(0, len(ordered) - 1)]
    for level in range(1, len(ordered)):
        gaps = [(first, last) for first, last in gaps if last - first > 1]
        halves = [(first, (first + last) // 2, last) for first, last in gaps]
        levels |= {ordered[middle]: level for _, middle, _ in halves}
        gaps = [gap for first, middle, last in halves for gap in ((first, middle), (middle, last))]
    return levels


@dataclass(frozen=True)
class Row:
    """The cells of one benchmark with one set of parameters: one for each contender."""

    benchmark: str
    parameters: Parameters
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Plan:
    """What is to be measured, and how."""

    contenders: Sequence[Contender]
    rows: Sequence[Row]
    effort: Effort

    def knowing(self, info: Mapping[str, StorageInfo]) -> Plan:
        """Return the plan with what was learnt when the contenders were opened."""
        contenders = [
            each.inspected(info[each.name]) if each.name in info else each
            for each in self.contenders
        ]
        return replace(self, contenders=contenders)

    def located(self, interpreters: Mapping[str, Interpreter]) -> Plan:
        """Return the plan with the Pythons in which contenders are opened, by their names."""
        contenders = [
            replace(each, storage=replace(each.storage, interpreter=interpreters.get(each.name)))
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
        return contender.refusal(cell.parameters) or benchmark.refusal(
            contender.info, cell.parameters
        )

    @property
    def measurable(self) -> list[Contender]:
        """The contenders with a cell that is not refused."""
        names = {cell.contender for cell in self.cells if self.refusal(cell) is None}
        return [each for each in self.contenders if each.name in names]

    @property
    def limit(self) -> float:
        """The seconds that everything may take, where a precision is asked for."""
        measurable = sum(self.refusal(cell) is None for cell in self.cells)
        return self.effort.limit or self.effort.cell_limit * measurable

    def estimated_seconds(self) -> float:
        """Return a rough guess of how long it all takes; with a precision, at most.

        It rests on what was seen of the embedded default: to start a worker, open its storage,
        calibrate, check and end takes about a second, and with what lies off the clock a slice
        takes twice its minimum time.
        """
        effort = self.effort
        if effort.precision:
            return self.limit
        slices = (effort.values + effort.warmups) * max(effort.min_time, 0.02) * 2
        a_run = 1.0 + (slices if effort.values else effort.run_time)
        return effort.processes * a_run * sum(self.refusal(cell) is None for cell in self.cells)


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
        Row(name, parameters, tuple(Cell(name, each.name, parameters) for each in contenders))
        for name, parameters in combinations
    ]
    return Plan(contenders, rows, effort)
