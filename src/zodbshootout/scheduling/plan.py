"""The plan of a run: the cells, their order, and the reasons why some cannot be measured."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path

from zodbshootout.client.benchmarks import benchmarks, words_of
from zodbshootout.contenders.contender import Contender
from zodbshootout.model.outcome import Failure, State
from zodbshootout.model.parameters import Parameter, with_values
from zodbshootout.model.specification import PHASES, Parameters
from zodbshootout.results.cell import Cell
from zodbshootout.results.estimate import MIN_RUNS
from zodbshootout.scheduling.calibration import Effort, min_seconds
from zodbshootout.scheduling.operations import operation_refusal, with_operation

LENGTHY_RATE = 5000.0
"""Objects per second that a lengthy benchmark is assumed to process, checks included."""


@dataclass(frozen=True)
class Sweep:
    """The values of parameters; every combination is measured."""

    values: Mapping[Parameter, Sequence[float]]
    base: Parameters
    """The parameters that all combinations share."""

    def parameters(self) -> list[Parameters]:
        """Return every combination: first a coarse grid, then the points between.

        So even a sweep that is interrupted covers the whole range of each parameter.
        """
        levels = {one: _levels(numbers) for one, numbers in self.values.items()}
        combinations = (
            dict(zip(self.values, numbers, strict=True))
            for numbers in product(*self.values.values())
        )
        coarse_first = sorted(
            combinations,
            key=lambda chosen: max(levels[one][number] for one, number in chosen.items()),
        )
        return [with_values(self.base, chosen) for chosen in coarse_first]


def _levels(numbers: Sequence[float]) -> dict[float, int]:
    """Return the level of each of *numbers*; the coarsest grid has the lowest level.

    The level is 0 for the smallest and the largest number, 1 for the number in the middle, 2 for
    the middle of each half, and so on.
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
class RunOptions:
    """The options of a run that say how its cells are measured, besides their effort."""

    arguments: Sequence[str] = ()
    """The command line, for the metadata."""
    fail_fast: bool = False
    retries: int = 0
    """The number of times that a run is repeated if one of its processes crashes."""
    pack: bool = False
    """Whether to pack each contender before its first run."""
    leaks: bool = False
    debug_single_value: bool = False
    """Whether this run only tries a configuration, so that round trips are not counted."""
    profiles: Path | None = None
    """The directory for profiles of the clients, ``None`` for no profiles."""
    label: str = ""
    """A description of the run, for the metadata."""


Row = tuple[Cell, ...]
"""The cells of a benchmark with one set of parameters.  A contender has one cell, or one for each
phase of an operation."""


@dataclass(frozen=True)
class Plan:
    """The cells of a run, and how they are measured."""

    contenders: Sequence[Contender]
    rows: Sequence[Row]
    effort: Effort
    unavailable: Mapping[str, Failure] = field(default_factory=dict)
    """The failure of each contender that could not be opened, by the contender's title."""
    baseline: str | None = None
    """The contender to compare others with, ``None`` for the first contender."""
    may_write: Collection[str] = ()
    """The contenders whose databases may be written to even if other data are in the databases."""
    zapped: Collection[str] = ()
    """The contenders whose data the run may destroy."""

    @property
    def opened(self) -> list[Contender]:
        """The contenders that could be opened."""
        return [one for one in self.contenders if one.title not in self.unavailable]

    @property
    def cells(self) -> list[Cell]:
        return [cell for row in self.rows for cell in row]

    def contender(self, cell: Cell) -> Contender:
        return next(c for c in self.contenders if c.title == cell.title)

    def failure(self, cell: Cell) -> Failure | None:
        """Return why a cell cannot be measured, ``None`` if no reason is known."""
        if cell.title in self.unavailable:
            return self.unavailable[cell.title]
        contender = self.contender(cell)
        refusal = (
            operation_refusal(contender, cell.parameters)
            or contender.refusal(cell.parameters)
            or benchmarks()[cell.benchmark].refusal(contender.info, cell.parameters)
        )
        return None if refusal is None else Failure(refusal, state=State.UNSUPPORTED)

    @cached_property
    def _measurable(self) -> list[Cell]:
        return [cell for cell in self.cells if self.failure(cell) is None]

    @property
    def limit(self) -> float:
        """The seconds that all rows may take together, if there is a precision."""
        usual = self.effort.cell_limit
        return self.effort.limit or sum(
            max(usual, min_seconds(cell.parameters)) for cell in self._measurable
        )

    def assured_runs(self, cells: Sequence[Cell]) -> int:
        """Return the number of runs that each cell of a row gets in any case: its assured runs.

        The limit does not include the time of assured runs.  Without a precision, or if the user
        has set a limit, no runs are assured.
        """
        has_limit = self.effort.limit or not self.effort.precision
        is_assured = benchmarks()[cells[0].benchmark].traits.assured and not has_limit
        return MIN_RUNS if is_assured else 0

    @property
    def assured_seconds(self) -> float:
        """A rough estimate of the seconds of all assured runs."""
        return sum(
            self.assured_runs([cell]) * self._seconds_of_run(cell) for cell in self._measurable
        )

    def _seconds_of_run(self, cell: Cell) -> float:
        """Return a rough estimate of the seconds that a cell adds to a round.

        The constants suit the default configuration.  A worker takes about a second in addition to
        its slices.  A slice takes twice its minimum time, including time off the clock.
        """
        effort, benchmark = self.effort, benchmarks()[cell.benchmark]
        if benchmark.traits.lengthy:
            return 1.0 + benchmark.shape(cell.parameters).work / LENGTHY_RATE
        slices = (effort.values + effort.warmups) * max(effort.min_time, 0.02) * 2
        return 1.0 + (slices if effort.values else effort.run_time)

    def estimated_seconds(self) -> float:
        """Return roughly how many seconds the run takes or, with a precision, may take."""
        effort = self.effort
        if effort.precision:
            return self.limit + self.assured_seconds
        if effort.duration:
            measurable = set(self._measurable)
            return effort.duration * sum(not measurable.isdisjoint(row) for row in self.rows)
        return effort.processes * sum(map(self._seconds_of_run, self._measurable))


def make_plan(
    contenders: Sequence[Contender], names: Sequence[str], sweep: Sweep, effort: Effort
) -> Plan:
    """Lay out the cells: by parameters, then by benchmarks, with all contenders in each row.

    With an operation, a row has a cell for each phase of a contender.
    """
    # A benchmark replaces parameters that do not suit it, so two combinations may become equal.
    combinations = dict.fromkeys(
        (name, with_operation(benchmarks()[name].fitted(parameters), parameters))
        for parameters in sweep.parameters()
        for name in names
    )
    rows = [
        tuple(
            Cell(
                name,
                contender.name,
                replace(of_phase, rtt=contender.rtt),
                words_of(benchmarks()[name]),
                contender.variant,
            )
            for contender in contenders
            for of_phase in _phases(parameters)
        )
        for name, parameters in combinations
    ]
    return Plan(contenders, rows, effort)


def _phases(parameters: Parameters) -> list[Parameters]:
    if not parameters.during:
        return [parameters]
    return [replace(parameters, phase=phase) for phase in PHASES]
