"""The titles of columns and rows, and the captions of tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from zodbshootout.model.grouping import grouped
from zodbshootout.model.parameters import (
    CLIENTS,
    DISTANCE,
    MIN_OBJECTS,
    OBJECTS,
    RATE,
    ROWS,
    SIZE,
    Parameter,
)
from zodbshootout.model.quantities import Quantity, shown
from zodbshootout.model.specification import MappingType, Parameters, exactly
from zodbshootout.reports.elements import MISSING, Entry
from zodbshootout.results.axes import Axis, Family, at_distances, families
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


def in_columns(result_sets: Iterable[ResultSet], axis: Axis | None = None) -> list[Columned]:
    """Return every result with the title of its column or, along an *axis*, of its curve."""
    return [
        (results.column((axis.without(result.cell) if axis else result.cell).column), result)
        for results in result_sets
        for result in results.at_distances
    ]


def curves_along(
    cells: Iterable[Columned], axis: Axis, quantity: Quantity
) -> list[dict[str, Series]]:
    """Return the curves of each chart over *axis*: series by column, which differ in it alone."""
    curves = grouped(
        ((cell.benchmark, cell.parameters), (column, series))
        for column, results in grouped(cells).items()
        for series in series_along(results, axis, quantity)
        for cell in [axis.without(series.results[0].cell)]
        if series.figures
    )
    return list(map(dict, curves.values()))


def benchmarks_of(cells: Sequence[Columned]) -> list[str]:
    """Return the names of the benchmarks of results, in order."""
    return list(dict.fromkeys(result.cell.benchmark for _, result in cells))


def caption_of(
    quantity: Quantity, results: Sequence[CellResult], axis: Parameter | None = None
) -> str:
    """Describe a quantity of results of one table, in words for the middle of a sentence.

    The words include the work of an iteration, such as ``of 100 objects``, if the quantity is one
    per iteration.  *axis* is the parameter that varies along a chart's axis or from row to row.
    """
    caption = quantity.caption.format(counted=results[0].cell.words.counted)
    works = {result.cell.benchmark: _work(result, axis) for result in results if result.measured}
    if quantity.per != "iteration" or not works:
        return caption
    ((usual, _),) = Counter(works.values()).most_common(1)
    others = [f"{benchmark}: {work}" for benchmark, work in works.items() if work != usual]
    exceptions = f" ({', '.join(others)})" if others else ""
    noun = results[0].cell.words.counted.removesuffix("s" if usual == "1" else "")
    return f"{caption} of {usual} {noun}{exceptions}"


def pace_of(parameters: Parameters) -> str:
    """Describe the pace of iterations; empty if each begins when the last one ends."""
    if parameters.rate:
        return "at a given rate"
    if parameters.limit.percentile:
        return f"with {parameters.limit.sentence}"
    speed = parameters.workload.speed
    return f"at {exactly(speed)} times the recorded speed" if speed else ""


def capitalized(words: str) -> str:
    """Return words for the beginning of a sentence."""
    return f"{words[0].upper()}{words[1:]}"


def _work(result: CellResult, axis: Parameter | None) -> str:
    """Return the work of an iteration, as a multiple of ``n`` if the number of objects varies."""
    work, objects = result.work_per_iteration, result.cell.parameters.objects
    if axis is not OBJECTS or work == 1 or not objects:
        return f"{work:.0f}"
    return "n" if work == objects else f"{work / objects:.2g} n"


@dataclass(frozen=True)
class Group:
    """The cells of one table, which have the same clients and the same kind of objects."""

    cells: Sequence[Columned]

    @cached_property
    def results(self) -> list[CellResult]:
        return [result for _, result in self.cells]

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(column for column, _ in self.cells))

    @property
    def axis(self) -> Parameter | None:
        """The parameter that varies from row to row, if any; the caption leaves it out."""
        return data_axis(self.results)

    @property
    def description(self) -> str:
        """The clients and the objects in words."""
        return description(self.results[0], self.axis)

    @property
    def rows(self) -> dict[str, dict[str, CellResult]]:
        """The rows by title, as mappings of columns to results; lower rates come first."""
        cells = sorted(self.cells, key=lambda cell: _rate(cell[1]))
        titles = row_titles(result for _, result in cells)
        return {title: dict(row) for title, row in grouped(zip(titles, cells, strict=True)).items()}


def groups_of(cells: Iterable[Columned]) -> list[Group]:
    """Return the cells of each table; tables with fewer clients or smaller objects come first."""
    groups = map(Group, grouped((group_of(cell[1]), cell) for cell in cells).values())
    return sorted(groups, key=lambda group: extent(group.results[0]))


def group_of(result: CellResult) -> tuple[object, ...]:
    """Return a key that the cells of one table have in common."""
    parameters = result.cell.parameters
    data = _data(parameters, OBJECTS) if _depends_on_data(result) else ""
    pace = parameters.workload.speed, parameters.rate > 0, parameters.limit
    return result.cell.words.counted, parameters.crew, data, *pace


def in_first_rows(results: Iterable[CellResult], rows: int) -> list[CellResult]:
    """Return the results in the first *rows* rows of all tables taken together.

    No figures are computed for the results in later rows.
    """
    first: list[CellResult] = []
    for group in groups_of(("", result) for result in results):
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


def entry_of(result: CellResult | None, quantity: Quantity) -> Entry:
    """Return the entry of a quantity in a table without ratios."""
    figure = result and result.figures[quantity]
    return Entry(figure.text(), figure.value) if figure else MISSING


def row_titles(results: Iterable[CellResult]) -> list[str]:
    """Return a row title for each result in a table.

    A title consists of the benchmark and of parameters: those that vary in the table, such as the
    number of objects, and those that not every cell has, such as a rate or a distance.
    """
    cells = [result.cell for result in results]
    named = [
        one
        for one in ROWS
        if one.is_optional or len({one.of(cell.parameters) for cell in cells}) > 1
    ]
    return [
        " ".join(filter(None, [cell.benchmark, *(one.in_row(cell.parameters) for one in named)]))
        for cell in cells
    ]


def figure_titles(figures: Sequence[Figure]) -> list[str]:
    """Return a row title for each figure in a table."""
    titles = row_titles(figure.result for figure in figures)
    return [
        " ".join(filter(None, [title, figure.name]))
        for title, figure in zip(titles, figures, strict=True)
    ]


def distance_of(result: CellResult) -> str:
    """Return the round-trip time, as in ``at 0.5 ms``; empty if the cell has none."""
    return DISTANCE.in_row(result.cell.parameters)


def data_axis(results: Iterable[CellResult]) -> Parameter | None:
    """Return the parameter that varies from row to row, if any."""
    several = len({result.cell.parameters.objects for result in results}) > 1
    return OBJECTS if several else None


def title_of(result: CellResult, axis: Parameter | None = None) -> str:
    """Return the title of a row or a chart in words.

    The title leaves out *axis*, the parameter that varies along a chart's axis.
    """
    parameters = result.cell.parameters
    count = "" if axis is OBJECTS else str(parameters.objects)
    title = " ".join(result.cell.words.title.replace("{objects}", count).split())
    paced = f"{exactly(parameters.rate)} a second" if parameters.rate and axis is not RATE else ""
    where = distance_of(result)
    return ", ".join(filter(None, [title, paced, where, parameters.moment]))


def legend(cells: Iterable[Cell]) -> Iterator[str]:
    """Yield a line that says what each benchmark does, or where its data come from."""
    legends = grouped((words, cell.benchmark) for cell in cells if (words := cell.words.legend))
    if legends:
        listed = ((", ".join(dict.fromkeys(names)), words) for words, names in legends.items())
        yield "; ".join(f"{names}: {words}" for names, words in listed)


def extent(result: CellResult) -> tuple[float, ...]:
    """Return the key by which tables and charts are sorted."""
    parameters = result.cell.parameters
    return (
        parameters.crew.size,
        parameters.object_size,
        parameters.min_objects,
        parameters.rate,
    )


def rows_of(cells: Iterable[Columned]) -> list[list[Columned]]:
    """Return the results of each row of the tables, in the order of the tables."""
    rows = grouped(((cell[1].cell.benchmark, cell[1].cell.parameters), cell) for cell in cells)
    return sorted(rows.values(), key=lambda row: extent(row[0][1]))


def description(result: CellResult, axis: Parameter | None = None) -> str:
    """Describe the clients and the objects of a cell.

    The description leaves out *axis*, the parameter that varies along a chart's axis.
    """
    parameters = result.cell.parameters
    crew = parameters.crew.kind if axis is CLIENTS else str(parameters.crew)
    data = [_data(parameters, axis)] if _depends_on_data(result) else []
    return ", ".join([*data, crew])


def _depends_on_data(result: CellResult) -> bool:
    parameters = result.cell.parameters
    if parameters.workload.name:
        return False
    return result.cell.words.counted == "objects" or parameters.min_objects > 0


def _data(parameters: Parameters, axis: Parameter | None) -> str:
    noun = "blobs" if parameters.blobs else "objects"
    count = "" if axis is OBJECTS or not parameters.objects else f"{parameters.objects} "
    size = "" if axis is SIZE else f" of {parameters.object_size} bytes"
    usual = parameters.mapping is MappingType.PERSISTENT_MAPPING
    mapping = "" if usual else f" in an {parameters.mapping.value}"
    is_large = parameters.min_objects and axis is not MIN_OBJECTS
    place = "it" if parameters.grown else "the database"
    more = f", {parameters.min_objects:,} more in {place}" if is_large else ""
    return f"{count}{noun}{size}{mapping}{more}"
