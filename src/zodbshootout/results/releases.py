"""Contenders that ``--against`` measured in several releases or commits of a package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from zodbshootout.model.titles import RELEASE, Release, environment_of
from zodbshootout.results.result import CellResult

FEWEST = 3
"""The minimum number of releases in a series; two releases are compared without a series."""


@dataclass(frozen=True)
class Series:
    """A contender in several releases of a package."""

    contender: str
    """The contender with the installed release."""
    package: str
    releases: Mapping[str, str]
    """The releases, by the titles of their columns: sorted versions, followed by commits in the
    order of the results."""


def series_of(results: Sequence[CellResult]) -> list[Series]:
    """Return the contenders that were to be measured in at least :data:`FEWEST` releases.

    The installed release counts on two conditions: the metadata of runs contain its version, and at
    least one of the other releases is a version, not a commit.
    """
    versions: dict[str, Mapping[str, str]] = {}
    for result in results:
        known = versions.get(result.cell.column) or dict(_versions(result))
        versions[result.cell.column] = known
    named: dict[tuple[str, str], dict[str, Release]] = {}
    for result in results:
        release = result.cell.variant.get(RELEASE)
        if isinstance(release, Release) and result.cell.contender in versions:
            key = result.cell.contender, release.package
            named.setdefault(key, {})[result.cell.column] = release
    series = []
    for (contender, package), members in named.items():
        pinned = {name: release.version for name, release in members.items() if release.version}
        installed = versions[contender].get(canonicalize_name(package))
        if pinned and installed:
            pinned[contender] = installed
        in_order = dict(sorted(pinned.items(), key=lambda item: place(item[1])))
        commits = {name: release.commit for name, release in members.items() if release.commit}
        if len(in_order) + len(commits) >= FEWEST:
            series.append(Series(contender, package, {**in_order, **commits}))
    return series


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
        oldest, *newer = [name for name in series.releases if name in originals] or [""]
        if newer:
            originals |= {oldest: "", **dict.fromkeys(newer, oldest)}
    return originals


def _versions(result: CellResult) -> Iterator[tuple[str, str]]:
    for key, version in result.metadata.items():
        if key.startswith("version_"):
            yield canonicalize_name(key.removeprefix("version_")), str(version)


def place(release: str) -> tuple[bool, Version]:
    """Return a key that sorts releases by version, and commits last."""
    try:
        return False, Version(release.partition(" ")[0])
    except InvalidVersion:
        return True, Version("0")
