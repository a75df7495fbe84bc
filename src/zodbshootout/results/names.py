"""The long and the short names of cells, and the names of files about a cell."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from urllib.parse import quote

from zodbshootout.model.parameters import (
    CLIENTS,
    MIN_OBJECTS,
    OBJECTS,
    RATE,
    SIZE,
    SWEPT,
    Parameter,
)
from zodbshootout.model.specification import MappingType, Parameters, exactly
from zodbshootout.results.cell import Cell


def long_name(cell: Cell) -> str:
    """Return a name that identifies a cell in any file."""
    return f"{cell.title}: {row_name(cell)}"


def row_name(cell: Cell) -> str:
    """Return a name that a cell shares with those of other contenders in its row."""
    parameters = cell.parameters
    words = [cell.benchmark]
    if parameters.objects:
        words.append(f"{parameters.objects}x{parameters.object_size}B")
        if parameters.blobs:
            words.append("blobs")
        if parameters.mapping is not MappingType.PERSISTENT_MAPPING:
            words.append(f"{'grown ' if parameters.grown else ''}{parameters.mapping.value}")
    if parameters.workload.name:
        words.append(parameters.workload.name)
    if parameters.workload.speed:
        words.append(f"speed {exactly(parameters.workload.speed)}")
    if parameters.min_objects:
        words.append(f"min-objects {parameters.min_objects}")
    words += _pace(parameters)
    return " ".join([*words, parameters.crew.code])


def _pace(parameters: Parameters) -> list[str]:
    if parameters.rate:
        during = [parameters.moment] if parameters.during else []
        return [f"rate {exactly(parameters.rate)}", *during]
    return [f"within {parameters.limit}"] if parameters.limit.percentile else []


def short_name(cell: Cell, varied: Collection[Parameter]) -> str:
    """Return a name that distinguishes a cell from the contender's other cells in a run.

    *varied* are the parameters that have several values in the run.
    """
    return " ".join(_short_words(cell, varied, "="))


def file_name(cell: Cell, varied: Collection[Parameter]) -> str:
    """Return a name for files about a cell: the contender's title and words as in a short name."""
    return quote("-".join([cell.title, *_short_words(cell, varied)]), safe="@=+,")


def _short_words(cell: Cell, varied: Collection[Parameter], equals: str = "") -> list[str]:
    parameters = cell.parameters
    numbers = [
        f"{one.letter}{equals}{exactly(one.of(parameters))}"
        for one in (CLIENTS, RATE, OBJECTS, SIZE, MIN_OBJECTS)
        if one in varied and _has(parameters, one)
    ]
    return [cell.benchmark, *numbers, *filter(None, [parameters.phase, parameters.during])]


def varied_parameters(cells: Iterable[Cell]) -> frozenset[Parameter]:
    """Return the parameters in :data:`SWEPT` that have several values among *cells*."""
    values: dict[Parameter, set[float]] = {}
    for cell in cells:
        for one in SWEPT:
            if _has(cell.parameters, one):
                values.setdefault(one, set()).add(one.of(cell.parameters))
    return frozenset(one for one, several in values.items() if len(several) > 1)


def _has(parameters: Parameters, one: Parameter) -> bool:
    return parameters.objects > 0 or one not in {OBJECTS, SIZE}
