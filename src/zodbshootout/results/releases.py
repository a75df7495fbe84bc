"""Contenders that ``--against`` measured in several releases or commits of a package."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from zodbshootout.results.result import CellResult

FEWEST = 3
"""The minimum number of releases in a series; two releases are compared without a series."""
_NAME = re.compile(r"(?P<contender>.+)@(?P<package>[\w.-]+)(?P<sign>==|@)(?P<release>[\w.!-]+)")
"""A pattern for names such as ``CONTENDER@PACKAGE==RELEASE`` and ``CONTENDER@PACKAGE@COMMIT``."""


@dataclass(frozen=True)
class Series:
    """A contender in several releases of a package."""

    contender: str
    """The contender with the installed release."""
    package: str
    releases: Mapping[str, str]
    """The releases, by the names of their contenders: sorted versions, followed by commits in the
    order of the results."""


def series_of(results: Iterable[CellResult]) -> list[Series]:
    """Return the contenders that were to be measured in at least :data:`FEWEST` releases.

    The installed release counts on two conditions: the metadata of runs contain its version, and at
    least one of the other releases is a version, not a commit.
    """
    versions: dict[str, Mapping[str, str]] = {}
    for result in results:
        known = versions.get(result.cell.contender) or dict(_versions(result))
        versions[result.cell.contender] = known
    named: dict[tuple[str, str], dict[str, tuple[str, str]]] = {}
    for name in versions:
        match = _NAME.fullmatch(name)
        if match and match["contender"] in versions:
            key = match["contender"], match["package"]
            named.setdefault(key, {})[name] = match["sign"], match["release"]
    series = []
    for (contender, package), members in named.items():
        pinned = {name: release for name, (sign, release) in members.items() if sign == "=="}
        installed = versions[contender].get(canonicalize_name(package))
        if pinned and installed:
            pinned[contender] = installed
        in_order = dict(sorted(pinned.items(), key=lambda item: place(item[1])))
        commits = {name: release for name, (sign, release) in members.items() if sign == "@"}
        if len(in_order) + len(commits) >= FEWEST:
            series.append(Series(contender, package, {**in_order, **commits}))
    return series


def originals_of(results: Sequence[CellResult]) -> dict[str, str]:
    """Map each measured contender to the name of its base, or to an empty name if it has no base.

    The base of a variant is its original or, in a series, the oldest release that was measured.
    """
    originals = {one.cell.contender: one.variant_of for one in results if one.measured}
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
