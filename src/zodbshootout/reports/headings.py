"""What stands above tables and before rows: crews, objects, benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from zodbshootout.client.specification import Parameters
from zodbshootout.results.result import CellResult


@dataclass(frozen=True)
class Heading:
    """What the row of a benchmark says."""

    title: str
    """``{objects}`` in it stands for the number of objects."""
    counted: str = "objects"
    """What the figures in the row count: they are so many per second."""


def heading_of(headings: Mapping[str, Heading], result: CellResult) -> Heading:
    """Return the heading of a benchmark, even of one that is installed elsewhere."""
    return headings.get(result.cell.benchmark) or Heading(f"{result.cell.benchmark} {{objects}}")


def group_of(result: CellResult, heading: Heading) -> tuple[object, ...]:
    """Return what the cells of one table have in common."""
    parameters = result.cell.parameters
    data = _data(parameters) if _depends_on_data(heading.counted, parameters) else ""
    return heading.counted, parameters.crew, data


def title_of(result: CellResult, headings: Mapping[str, Heading], *, swept: bool = False) -> str:
    """Return what stands before the figures of a row; *swept*, of any number of objects."""
    title = heading_of(headings, result).title
    if swept:
        return " ".join(title.replace("{objects}", "").split())
    return title.replace("{objects}", str(result.cell.parameters.objects))


def row_of(result: CellResult) -> tuple[str, int]:
    """Return what the cells of one row of a table have in common."""
    return result.cell.benchmark, result.cell.parameters.objects


def extent(result: CellResult) -> tuple[int, int]:
    """Return by what tables, and the charts of their rows, are in order."""
    parameters = result.cell.parameters
    return parameters.crew.size, parameters.object_size


CLIENTS_AXIS = "clients"
SIZE_AXIS = "bytes per object"
"""What axes are called that descriptions then leave out."""


def description(result: CellResult, heading: Heading, over: str = "") -> str:
    """Return the words for the clients and the objects of a table's cells.

    *over* is the axis of a chart that has several numbers of one of them.
    """
    parameters = result.cell.parameters
    crew = parameters.crew.kind if over == CLIENTS_AXIS else str(parameters.crew)
    if not _depends_on_data(heading.counted, parameters):
        return crew
    return f"{crew}, {_data(parameters, sized=over != SIZE_AXIS)}"


def _depends_on_data(counted: str, parameters: Parameters) -> bool:
    return counted == "objects" or parameters.min_objects > 0


def _data(parameters: Parameters, *, sized: bool = True) -> str:
    mapping = parameters.mapping.value
    article = "an" if mapping[0] in "IO" else "a"
    what = "blobs" if parameters.blobs else "objects"
    size = f" of {parameters.object_size} bytes" if sized else ""
    return f"{what}{size} in {article} {mapping}"
