"""The bases of variants, and contenders that ``--against`` measured in several releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from zodbshootout.model.titles import environment_of
from zodbshootout.results.axes import Family, ReleaseAxis, axes_of, families
from zodbshootout.results.result import CellResult

FEWEST = 3
"""The minimum number of releases in a series; two releases are compared without a series."""


def series_of(results: Sequence[CellResult]) -> list[Family]:
    """Return the contenders that were to be measured in at least :data:`FEWEST` releases.

    The installed release counts on two conditions: the metadata of runs contain its version, and at
    least one of the other releases is a version, not a commit.
    """
    columns = {result.cell.column for result in results}
    axes = [axis for axis in axes_of(results) if isinstance(axis, ReleaseAxis)]
    there = (
        family for axis in axes for family in families(results, axis) if family.title in columns
    )
    return [family for family in map(_comparable, there) if len(family.values) >= FEWEST]


def _comparable(family: Family) -> Family:
    """Return a family without what is installed, if the others are commits."""
    others = {column: one for column, one in family.values.items() if column != family.title}
    return replace(family, values=others) if all(one.commit for one in others.values()) else family


def originals_of(results: Sequence[CellResult]) -> dict[str, str]:
    """Map each measured column to the title of its base, or to an empty text if it has no base.

    The base of a variant is the contender in the base environment or with the first values of
    ``--define``.  In a series, it is the oldest release that was measured.
    """
    cells = {one.cell.column: one.cell for one in results if one.measured}
    firsts = {cell.contender: column for column, cell in reversed(cells.items())}
    originals = {}
    for column, cell in cells.items():
        base = cell.contender if environment_of(cell.variant) else firsts[cell.contender]
        originals[column] = "" if base == column else base
    for series in series_of(results):
        oldest, *newer = [column for column in series.values if column in originals] or [""]
        if newer:
            originals |= {oldest: "", **dict.fromkeys(newer, oldest)}
    return originals
