"""The titles of columns and rows, and the captions of tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

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
from zodbshootout.model.quantities import Quantity
from zodbshootout.model.specification import MappingType, Parameters, exactly
from zodbshootout.reports.elements import MISSING, Entry
from zodbshootout.results.cell import Cell
from zodbshootout.results.figures import Figure
from zodbshootout.results.result import CellResult


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


def group_of(result: CellResult) -> tuple[object, ...]:
    """Return a key that the cells of one table have in common."""
    parameters = result.cell.parameters
    data = _data(parameters, OBJECTS) if _depends_on_data(result) else ""
    pace = parameters.workload.speed, parameters.rate > 0, parameters.limit
    return result.cell.words.counted, parameters.crew, data, *pace


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
    where = "" if axis is DISTANCE else distance_of(result)
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
