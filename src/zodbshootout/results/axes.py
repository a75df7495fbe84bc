"""The axes along which results differ: parameters of cells, and what distinguishes variants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from zodbshootout.model.grouping import grouped
from zodbshootout.model.parameters import DISTANCE, Parameter, with_values
from zodbshootout.model.specification import INSTALLED, duration
from zodbshootout.model.titles import ENVIRONMENT, RELEASE, environment_of
from zodbshootout.results.cell import Cell
from zodbshootout.results.result import CellResult


@dataclass(frozen=True)
class Axis:
    """A dimension of cells, such as the number of clients or the value of a definition."""

    key: str
    """The axis's name in the metadata, and in ``compare --define``."""
    parameter: Parameter | None = None
    """The parameter that varies along the axis; ``None`` for an axis of variants."""

    def of(self, cell: Cell) -> Any:
        """Return a cell's value, ``None`` if the cell is not on the axis."""
        if self.parameter is not None:
            return self.parameter.of(cell.parameters)
        if self is CONTENDERS:
            return cell.column
        if self is ENVIRONMENTS:
            return environment_of(cell.variant) or INSTALLED
        return cell.variant.get(self.key)

    def text(self, cell: Cell) -> str:
        """Return a cell's value as the user writes it."""
        value = self.of(cell)
        return duration(value) if self.parameter is DISTANCE else str(value)

    def without(self, cell: Cell) -> Cell:
        """Return what cells that differ in this axis alone have in common, with its default.

        On the axis of contenders, nothing has a default.
        """
        if self.parameter is not None:
            values = {self.parameter: self.parameter.default}
            return replace(cell, parameters=with_values(cell.parameters, values))
        keys = {RELEASE, ENVIRONMENT} if self is ENVIRONMENTS else {self.key}
        others = {key: value for key, value in cell.variant.items() if key not in keys}
        return replace(cell, variant=others)

    def divided(self, results: Iterable[CellResult]) -> dict[str, list[CellResult]]:
        """Return the results at each value, by its text, without the value in their cells."""
        return grouped(
            (self.text(result.cell), replace(result, cell=self.without(result.cell)))
            for result in results
            if self.of(result.cell) is not None
        )


CONTENDERS = Axis("contender")
"""The columns of tables."""
ENVIRONMENTS = Axis(ENVIRONMENT)
"""The environments of ``--against``."""


def defined_axes(results: Iterable[CellResult]) -> dict[str, Axis]:
    """Return the axes of ``--define`` and ``--rtt``, by key."""
    cells = [result.cell for result in results]
    keys = dict.fromkeys(key for cell in cells for key in cell.variant)
    axes = [Axis(key) for key in keys if key not in {RELEASE, ENVIRONMENT}]
    if any(cell.parameters.rtt is not None for cell in cells):
        axes.append(Axis(DISTANCE.key, DISTANCE))
    return {axis.key: axis for axis in axes}


def at_distances(results: Sequence[CellResult]) -> list[CellResult]:
    """Repeat results that do not depend on round-trip times for each of the times.

    A contender without a server is measured once.
    """
    known = {result.cell.parameters.rtt for result in results}
    rtts = sorted(rtt for rtt in known if rtt is not None)
    return [
        one
        for result in results
        for one in (
            [at_distance(result, rtt) for rtt in rtts]
            if rtts and result.cell.parameters.rtt is None
            else [result]
        )
    ]


def at_distance(result: CellResult, rtt: float | None) -> CellResult:
    """Return *result* with a round-trip time of *rtt* seconds, or without one if ``None``."""
    cell = result.cell
    return replace(result, cell=replace(cell, parameters=replace(cell.parameters, rtt=rtt)))
