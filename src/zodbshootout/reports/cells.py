"""The cells of a report: its tables, notes, charts and parts are functions of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePath

from zodbshootout.model.grouping import grouped
from zodbshootout.model.parameters import ROWS, Parameter
from zodbshootout.model.quantities import Quantity, shown
from zodbshootout.reports.headings import (
    data_axis,
    description,
    extent,
    group_of,
    row_titles,
    title_of,
)
from zodbshootout.results.axes import Axis, Family, ParameterAxis, at_distances, families
from zodbshootout.results.cell import Cell
from zodbshootout.results.figures import Figure
from zodbshootout.results.result import CellResult
from zodbshootout.results.series import Series, Step, series_along, steps_of

Columned = tuple[str, CellResult]
"""The title of a column, and a result in the column."""


@dataclass(frozen=True)
class ResultSet:
    """The results of one file, or of the current run."""

    results: Sequence[CellResult]
    label: str = ""
    """A prefix for the column titles, if there are several files."""
    path: PurePath | None = None
    """The file; ``None`` for results that are not in a file."""

    @cached_property
    def at_distances(self) -> Sequence[CellResult]:
        """The results, with those that do not depend on round-trip times at each of the times."""
        return at_distances(self.results)

    @cached_property
    def families(self) -> Sequence[Family]:
        """The contenders that were measured in several releases."""
        return families(self.at_distances)

    @cached_property
    def steps(self) -> Sequence[Step]:
        """The changes of times from release to release, followed by the changes of costs."""
        return steps_of(self.at_distances) if self.families else []

    @property
    def name(self) -> str:
        return self.path.name if self.path else ""

    def column(self, contender: str) -> str:
        return f"{self.label}: {contender}" if self.label else contender


@dataclass(frozen=True)
class Cells:
    """Results, each with the title of its column: those of a report, or some of them."""

    columned: Sequence[Columned]
    columns: Sequence[str]
    """The columns of the report, whether or not these results are in all of them."""
    files: Sequence[ResultSet] = ()
    """All results of the report, by file."""

    @classmethod
    def of(cls, files: Sequence[ResultSet], axis: Axis | None = None) -> Cells:
        """Return all results in their columns or, along an *axis*, in the columns of its curves."""
        columned = [
            (file.column((axis.without(result.cell) if axis else result.cell).column), result)
            for file in files
            for result in file.at_distances
        ]
        return cls(columned, list(dict.fromkeys(column for column, _ in columned)), files)

    def __iter__(self) -> Iterator[Columned]:
        return iter(self.columned)

    def only(self, is_wanted: Callable[[CellResult], object]) -> Cells:
        """Return some of the cells, with all columns."""
        return replace(self, columned=[cell for cell in self.columned if is_wanted(cell[1])])

    def of_benchmark(self, name: str) -> Cells:
        return self.only(lambda result: result.cell.benchmark == name)

    @cached_property
    def timed(self) -> Cells:
        """The cells that were measured, and have times."""
        return self.only(lambda result: result.timed)

    @property
    def results(self) -> list[CellResult]:
        return [result for _, result in self.columned]

    @property
    def benchmarks(self) -> list[str]:
        """The names of the benchmarks in order."""
        return list(dict.fromkeys(result.cell.benchmark for result in self.results))

    @cached_property
    def groups(self) -> list[Group]:
        """The cells of each table; tables with fewer clients or smaller objects come first."""
        groups = grouped((group_of(cell[1]), cell) for cell in self.columned).values()
        made = (Group(cells, data_axis(result for _, result in cells)) for cells in groups)
        return sorted(made, key=lambda group: extent(group.first))

    @cached_property
    def rows(self) -> list[Group]:
        """The cells of each row of the tables, in the order of the tables."""
        cells = ((cell[1].cell, cell) for cell in self.columned)
        rows = grouped(((key.benchmark, key.parameters), cell) for key, cell in cells)
        return sorted(map(Group, rows.values()), key=lambda row: extent(row.first))

    def curves(self, axis: Axis, quantity: Quantity) -> list[Curves]:
        """Return the curves of each chart over *axis*."""
        charts = grouped(
            ((cell.benchmark, cell.parameters), (column, series))
            for column, results in grouped(self.columned).items()
            for series in series_along(results, axis, quantity)
            for cell in [axis.without(series.results[0].cell)]
            if series.figures
        )
        return [Curves(axis, dict(curves)) for curves in charts.values()]

    @cached_property
    def families(self) -> list[Family]:
        """The contenders in several releases, with the titles of their columns."""
        return [family.named(file.column) for file in self.files for family in file.families]

    @cached_property
    def steps(self) -> dict[tuple[str, Axis, tuple[Cell, Quantity]], Step]:
        """The significant changes between releases, by column, package and figure.

        Those of times come first.  The installed releases of several packages are one cell, which
        can have a step of each.
        """
        return {
            (file.column(step.series.title), step.series.axis, step.change.new.key): step
            for file in self.files
            for step in file.steps
            if step.change.is_significant
        }


@dataclass(frozen=True)
class Group:
    """The cells of a table, row or chart, which have the same clients and kind of objects."""

    cells: Sequence[Columned]
    axis: Parameter | None = None
    """The parameter that varies from row to row or along the chart's axis; words leave it out."""

    @property
    def first(self) -> CellResult:
        return self.cells[0][1]

    @cached_property
    def results(self) -> list[CellResult]:
        return [result for _, result in self.cells]

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(column for column, _ in self.cells))

    @property
    def title(self) -> str:
        """The benchmark of a row or a chart in words."""
        return title_of(self.first, self.axis)

    @property
    def description(self) -> str:
        """The clients and the objects in words."""
        return description(self.first, self.axis)

    @property
    def rows(self) -> dict[str, dict[str, CellResult]]:
        """The rows by title, as mappings of columns to results; lower rates come first."""
        cells = sorted(self.cells, key=lambda cell: _rate(cell[1]))
        titles = row_titles(result for _, result in cells)
        return {title: dict(row) for title, row in grouped(zip(titles, cells, strict=True)).items()}


@dataclass(frozen=True)
class Curves:
    """The curves of one chart: series that differ in an axis alone."""

    axis: Axis
    by_column: Mapping[str, Series]

    @cached_property
    def group(self) -> Group:
        """The cells of all curves."""
        parameter = self.axis.parameter if isinstance(self.axis, ParameterAxis) else None
        cells = [(column, r) for column, series in self.by_column.items() for r in series.results]
        return Group(cells, parameter)

    @property
    def figures(self) -> list[Figure]:
        """The figures of all curves."""
        return [figure for series in self.by_column.values() for figure in series.figures]


def in_first_rows(results: Sequence[CellResult], rows: int) -> list[CellResult]:
    """Return the results in the first *rows* rows of all tables taken together.

    No figures are computed for the results in later rows.
    """
    first: list[CellResult] = []
    for group in Cells([("", result) for result in results], [""]).groups:
        ordered = sorted(group.results, key=_rate)
        for cells in grouped((_row_of(result), result) for result in ordered).values():
            if rows <= 0:
                return first
            first += cells
            rows -= max(len(shown(one.cell.parameters, one.facts)) for one in cells)
    return first


def _rate(result: CellResult) -> float:
    return result.cell.parameters.rate


def _row_of(result: CellResult) -> tuple[object, ...]:
    """Return a key that the cells of one row of a table have in common."""
    return result.cell.benchmark, *(one.of(result.cell.parameters) for one in ROWS)
