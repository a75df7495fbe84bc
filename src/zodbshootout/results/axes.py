"""The axes along which results differ, and their order along an axis.

A result has a value on each of some axes.  The parameters of cells are axes, and so is what
distinguishes the variants of a contender: the releases of a package, environments, and names to
which ``--define`` gives several values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from zodbshootout.model.grouping import grouped
from zodbshootout.model.parameters import DISTANCE, SWEPT, Parameter, with_values
from zodbshootout.model.specification import INSTALLED, duration
from zodbshootout.model.titles import ENVIRONMENT, RELEASE, Release, environment_of
from zodbshootout.results.cell import Cell
from zodbshootout.results.result import CellResult, versions_in

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)b?")
FEWEST = 3
"""The minimum number of releases in a family; two releases are compared like other variants."""


@dataclass(frozen=True)
class Axis:
    """A name to which ``--define`` gives several values, or another axis, of a derived class."""

    key: str
    """The name of the axis in the metadata, and in ``compare --define``."""

    @property
    def title(self) -> str:
        """The title of a chart's axis."""
        return self.key

    def of(self, result: CellResult) -> Any:
        """Return a result's value, ``None`` if the result is not on the axis."""
        return result.cell.variant.get(self.key)

    def without(self, cell: Cell) -> Cell:
        """Return what all cells that differ in this axis alone have in common."""
        others = {key: value for key, value in cell.variant.items() if key != self.key}
        return replace(cell, variant=others)

    def text(self, value: Any) -> str:
        """Return a value as the user writes it."""
        return str(value)

    def place(self, result: CellResult) -> float | None:
        """Return a result's position, ``None`` if its value is no number; sizes are in MB."""
        value = self.of(result)
        return None if value is None else self.number(value)

    def number(self, value: Any) -> float | None:
        """Return the position of a value; see :meth:`place`."""
        match = _SIZE.fullmatch(str(value).strip().lower())
        if match is None:
            return None
        return float(match[1]) * (1024.0 ** ("kmgt".index(match[2]) - 1) if match[2] else 1)

    def unit(self, values: Iterable[Any]) -> str:
        """Return the unit of the positions of *values*, if they are sizes."""
        matches = (_SIZE.fullmatch(str(value).strip().lower()) for value in values)
        return "MB" if any(match and match[2] for match in matches) else ""

    def ordered(self, values: Iterable[Any]) -> list[Any]:
        """Return the distinct *values* in order; the first is the base of the others."""
        return list(dict.fromkeys(values))

    def divided(self, results: Iterable[CellResult]) -> dict[str, list[CellResult]]:
        """Return the results at each value, by its text, without the value in their cells."""
        by_value = grouped(
            (value, replace(result, cell=self.without(result.cell)))
            for result in results
            if (value := self.of(result)) is not None
        )
        return {self.text(value): by_value[value] for value in self.ordered(by_value)}


@dataclass(frozen=True)
class ParameterAxis(Axis):
    """A parameter of cells."""

    parameter: Parameter

    @property
    def title(self) -> str:
        return self.parameter.axis

    def of(self, result: CellResult) -> Any:
        value = self.parameter.of(result.cell.parameters)
        is_none = self.parameter.is_optional and value == self.parameter.default
        return None if is_none else value

    def without(self, cell: Cell) -> Cell:
        values = {self.parameter: self.parameter.default}
        return replace(cell, parameters=with_values(cell.parameters, values))

    def text(self, value: Any) -> str:
        return duration(value) if self.parameter is DISTANCE else str(value)

    def number(self, value: Any) -> float | None:
        return float(value)

    def ordered(self, values: Iterable[Any]) -> list[Any]:
        return sorted(set(values))


@dataclass(frozen=True)
class ContenderAxis(Axis):
    """The columns of tables; it takes nothing from cells, because comparisons name both sides."""

    def of(self, result: CellResult) -> str:
        return result.cell.column

    def without(self, cell: Cell) -> Cell:
        return cell


@dataclass(frozen=True)
class EnvironmentAxis(Axis):
    """The environments of ``--against``, of which some may be releases."""

    def of(self, result: CellResult) -> str:
        return environment_of(result.cell.variant) or INSTALLED

    def without(self, cell: Cell) -> Cell:
        keys = {RELEASE, ENVIRONMENT}
        others = {key: value for key, value in cell.variant.items() if key not in keys}
        return replace(cell, variant=others)


@dataclass(frozen=True)
class ReleaseAxis(Axis):
    """The releases of a package by version, then its commits in the order of the results."""

    package: str

    @property
    def title(self) -> str:
        return self.package

    def of(self, result: CellResult) -> Release | None:
        release = result.cell.variant.get(RELEASE)
        if isinstance(release, Release):
            return release if release.package == self.package else None
        return None if result.cell.variant else self._installed(result.metadata)

    def _installed(self, metadata: Mapping[str, Any]) -> Release | None:
        name = canonicalize_name(self.package)
        versions = {canonicalize_name(key): one for key, one in versions_in(metadata).items()}
        return Release(self.package, versions[name]) if name in versions else None

    def text(self, value: Release) -> str:
        return value.commit or value.version

    def number(self, value: Release) -> None:  # noqa: ARG002
        return None

    def ordered(self, values: Iterable[Release]) -> list[Release]:
        return sorted(dict.fromkeys(values), key=_place)


def _place(release: Release) -> tuple[bool, Version]:
    """Return a key that sorts releases by version, and commits last."""
    try:
        return False, Version(release.version)
    except InvalidVersion:
        return True, Version("0")


CONTENDERS = ContenderAxis("contender")
ENVIRONMENTS = EnvironmentAxis(ENVIRONMENT)
RTT = ParameterAxis(DISTANCE.key, DISTANCE)


def axes_of(results: Sequence[CellResult]) -> list[Axis]:
    """Return the axes along which results differ, except contenders and environments."""
    variants = [result.cell.variant for result in results]
    releases = (variant[RELEASE] for variant in variants if RELEASE in variant)
    packages = dict.fromkeys(one.package for one in releases if isinstance(one, Release))
    names = dict.fromkeys(key for variant in variants for key in variant)
    axes: list[Axis] = [
        *(ParameterAxis(one.key, one) for one in SWEPT),
        RTT,
        *(ReleaseAxis(RELEASE, package) for package in packages),
        *(Axis(name) for name in names if name not in {RELEASE, ENVIRONMENT}),
    ]
    return [axis for axis in axes if len({axis.of(result) for result in results} - {None}) > 1]


def along(results: Iterable[CellResult], axis: Axis) -> list[list[CellResult]]:
    """Return groups of results that differ in *axis* alone, each in the axis's order."""
    there = [(value, result) for result in results if (value := axis.of(result)) is not None]
    places = {value: place for place, value in enumerate(axis.ordered(v for v, _ in there))}
    ordered = sorted(there, key=lambda pair: places[pair[0]])
    return list(grouped((axis.without(result.cell), result) for _, result in ordered).values())


@dataclass(frozen=True)
class Family:
    """A contender in several releases."""

    axis: Axis
    title: str
    """The title that the columns have in common, which is that of the installed release."""
    values: Mapping[str, Release]
    """The releases in order, by the titles of their columns, whether or not they were measured."""

    def text(self, column: str) -> str:
        """Return the release of a column as text."""
        return self.axis.text(self.values[column])

    def named(self, column: Callable[[str], str]) -> Family:
        """Return the family with other titles of its columns."""
        values = {column(name): value for name, value in self.values.items()}
        return replace(self, title=column(self.title), values=values)

    def of(self, results: Iterable[CellResult]) -> list[CellResult]:
        """Return the family's results."""
        return [result for result in results if result.cell.column in self.values]


def families(results: Sequence[CellResult]) -> list[Family]:
    """Return the contenders that were to be measured in at least :data:`FEWEST` releases.

    The installed release counts on two conditions: the metadata of runs contain its version, and at
    least one of the other releases is a version, not a commit.
    """
    columns = {result.cell.column for result in results}
    made = []
    for axis in axes_of(results):
        if not isinstance(axis, ReleaseAxis):
            continue
        there = ((axis.of(result), result.cell) for result in results)
        by_title = grouped(
            (axis.without(cell).column, (cell.column, value)) for value, cell in there if value
        )
        for title, members in by_title.items():
            values = dict(members)
            if all(one.commit for column, one in values.items() if column != title):
                values.pop(title, None)
            if title in columns and len(values) >= FEWEST:
                order = axis.ordered(value for _, value in members)
                ordered = sorted(values, key=lambda column: order.index(values[column]))
                made.append(Family(axis, title, {column: values[column] for column in ordered}))
    return made


def at_distances(results: Sequence[CellResult]) -> list[CellResult]:
    """Repeat results that do not depend on round-trip times for each of the times.

    A contender without a server is measured once.  Other results, such as those of servers whose
    sections set the time, are not repeated.
    """
    rtts = RTT.ordered(rtt for result in results if (rtt := RTT.of(result)) is not None)
    return [
        one
        for result in results
        for one in (
            [at_distance(result, rtt) for rtt in rtts]
            if rtts and RTT.of(result) is None and not result.metadata.get("server_place")
            else [result]
        )
    ]


def at_distance(result: CellResult, rtt: float | None) -> CellResult:
    """Return *result* with a round-trip time of *rtt* seconds, or without one if ``None``."""
    cell = result.cell
    return replace(result, cell=replace(cell, parameters=replace(cell.parameters, rtt=rtt)))
