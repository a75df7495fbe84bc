"""The point that a run adds to a history: the environments to measure, and the files to write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from zodbshootout.cli.output import Streams
from zodbshootout.config.pythons import Environment, environments_of_words, is_direct
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.releases import releases_and_commits
from zodbshootout.errors import UserError
from zodbshootout.model.grouping import grouped
from zodbshootout.model.parameters import Plain
from zodbshootout.reports.history_report import verdict_lines
from zodbshootout.results.anchor import Anchor, read_accepted, read_anchor, write_anchor
from zodbshootout.results.history import (
    ANCHOR,
    CANDIDATE,
    FORMER,
    POSITION,
    PREVIOUS,
    TWIN,
    Package,
    Packages,
    Point,
    by_machine,
    facts_of_runs,
    machine_facts,
    named_now,
    point_cells,
    read_points,
    with_aliases,
    write_point,
)
from zodbshootout.results.result import CellResult
from zodbshootout.results.watching import MachineHistory
from zodbshootout.versions import origin_of

WATCHED = ("ZODB", "BTrees", "persistent", "ZEO", "RelStorage")
"""The packages that every point records, so that later runs can install them again."""
_COMMIT = re.compile(r"@[0-9a-f]{40}(#|$)")
"""The hash of a commit, at the end of a repository's URL."""
_VERSION = re.compile(r"(?P<version>\S+)(?: \(git (?P<commit>\w+)(?P<modified>, modified)?\))?")
"""A package's version in metadata, such as ``4.3.0 (git 1a2b3c4d5e6f)``."""


@dataclass(frozen=True)
class PlannedPoint:
    """A point before it is measured."""

    directory: Path
    anchor: Anchor
    """The anchor; its :attr:`~Anchor.point` is empty if the anchor is new."""
    machine: Mapping[str, Plain]
    environments: Mapping[str, Environment]
    """The environments to measure besides the candidate's, by role: :data:`ANCHOR` and so on."""
    packages: Mapping[str, Packages]
    """The packages of the candidate and of the previous point, by role."""
    previous: str = ""
    absent: Mapping[str, str] = field(default_factory=dict)
    """The reasons why roles cannot be measured, by role."""


def plan_point(directory: Path, words: Sequence[str]) -> PlannedPoint:
    """Return the next point of a history; *words* are the values of ``--against``.

    :raises UserError: if the anchor could not be installed again, or several words are given
    """
    named = environments_of_words(words, releases_and_commits)
    if len(named) > 1:
        raise UserError("--against: with --history, the value is the anchor; give only one value")
    machine, known = machine_facts(), read_anchor(directory)
    points = by_machine(read_points(directory)).get(str(machine["name"]), [])
    candidate = installed_packages(named)
    is_same = known is not None and words in ([], [known.word])
    anchor = known if known and is_same else _new_anchor(words, named, candidate)
    environments = {ANCHOR: _environment(ANCHOR, anchor.requirements)}
    environments[TWIN] = replace(environments[ANCHOR], name=TWIN)
    if known is not None and not is_same:
        environments[FORMER] = _environment(FORMER, known.requirements, may_be_gone=True)
    read_accepted(directory)  # report mistakes in the file now, not after the run
    planned = PlannedPoint(directory, anchor, machine, environments, {CANDIDATE: candidate})
    return _with_previous(planned, points[-1]) if points else planned


def _new_anchor(words: Sequence[str], named: Sequence[Environment], candidate: Packages) -> Anchor:
    if not named:
        return Anchor("", _requirements(candidate), "")
    _check_is_fixed(words[0], named[0])
    # After the run, the packages that --against does not name are pinned.  If this is impossible,
    # fail now.
    _requirements(_not_named(named[0].requirements, candidate))
    return Anchor(words[0], named[0].requirements, "")


def _with_previous(planned: PlannedPoint, last: Point) -> PlannedPoint:
    """Plan to measure the *last* point's packages, unless another role has the same packages."""
    previous = last.packages[CANDIDATE]
    packages = {**planned.packages, PREVIOUS: previous}
    planned = replace(planned, packages=packages, previous=last.name)
    others = [planned.packages[CANDIDATE]]
    if planned.anchor.point:
        others.append(last.packages[ANCHOR])
    if previous in others:
        return planned
    try:
        environment = _environment(PREVIOUS, _requirements(previous), may_be_gone=True)
    except UserError as error:
        return replace(planned, absent={PREVIOUS: str(error)})
    environments = {**planned.environments, PREVIOUS: environment}
    return replace(planned, environments=environments)


def installed_packages(named: Iterable[Environment] = ()) -> Packages:
    """Return the installed versions of :data:`WATCHED` and of packages that environments name."""
    names = [name for one in named for name in map(_name, one.requirements) if name]
    packages = {}
    for name in dict.fromkeys([*WATCHED, *names]):
        try:
            installed = version(name)
        except PackageNotFoundError:
            continue
        origin = origin_of(name)
        packages[name] = (
            Package(installed, origin.commit, origin.url, origin.modified)
            if origin
            else Package(installed)
        )
    return packages


def _name(requirement: str) -> str:
    """Return the name in a requirement, as :data:`WATCHED` spells it; empty if there is none."""
    try:
        name = Requirement(requirement).name
    except InvalidRequirement:
        return ""
    canonical = canonicalize_name(name)
    return next((one for one in WATCHED if canonicalize_name(one) == canonical), name)


def _environment(
    role: str, requirements: Sequence[str], *, may_be_gone: bool = False
) -> Environment:
    """Return the environment of a role; with *may_be_gone*, the run can go on without it."""
    return Environment(
        role,
        requirements=tuple(requirements),
        keeps_installed=True,
        one_of_several=may_be_gone,
    )


def _not_named(requirements: Sequence[str], packages: Packages) -> Packages:
    """Return all packages except those that a requirement selects by name or by a commit's URL."""
    names = {_name(one) for one in requirements}
    return {
        name: package
        for name, package in packages.items()
        if name not in names
        and not (package.url and any(_is_of(package.url, one) for one in requirements))
    }


def _is_of(url: str, requirement: str) -> bool:
    """Return whether a requirement names a commit of the package at *url*."""
    repository, _, package = url.partition("#")
    place, _, other = requirement.partition("#")
    return f"git+{repository}@" in place and package == other


def _check_is_fixed(word: str, environment: Environment) -> None:
    """Refuse an anchor that may change, such as a checkout or a Python."""
    if not environment.requirements or any(map(_may_change, environment.requirements)):
        raise UserError(
            f"--against: {word!r} may change, and the anchor of a history has to stay the same; "
            "name a release such as RelStorage==4.2.0, or a commit"
        )


def _may_change(requirement: str) -> bool:
    """Return whether a requirement is a directory, or a branch or a tag of a repository."""
    path = Path(requirement.partition("[")[0])
    is_repository = "git+" in requirement and not _COMMIT.search(requirement)
    return is_repository or (path.is_absolute() and path.is_dir())


def _requirements(packages: Packages) -> list[str]:
    """Return requirements with which uv installs the same packages again, or raise an error."""
    return [_requirement(name, package) for name, package in packages.items()]


def _requirement(name: str, package: Package) -> str:
    if not package.url:
        return f"{name}=={package.version}"
    if package.modified or not package.commit:
        why = "had changes that are in no commit" if package.modified else "is in no commit"
        raise UserError(
            f"{name} {package.version} from {package.url} cannot be installed again: it {why}"
        )
    origin = origin_of(name)  # a local checkout still has the commit
    url = origin.url if origin is not None and origin.editable else package.url
    repository, mark, subdirectory = url.partition("#")
    return f"{name} @ git+{repository}@{package.commit}{mark}{subdirectory}"


def add_point(
    planned: PlannedPoint,
    contenders: Sequence[Contender],
    results: Sequence[CellResult],
    streams: Streams,
) -> None:
    """Write the point of a run and, if the anchor is new, the anchor; print the verdicts.

    :raises UserError: if a file cannot be written
    """
    of_contender = grouped((result.cell.contender, result) for result in results)
    sides = [
        {role: of_contender[name] for role, name in _roles(original, contenders).items()}
        for original in contenders
        if not original.variant_of
    ]
    cells = [cell for side in sides for cell in point_cells(side)]
    by_role = grouped(
        (role, result) for side in sides for role, own in side.items() for result in own
    )
    if not any(POSITION in cell.ratios for cell in cells):
        reason = _reason(by_role.get(ANCHOR, [])) or "there are too few runs"
        streams.complain(f"--history: cannot add a point without a ratio to the anchor: {reason}")
        return
    measured = {role: _packages(planned, role, by_role[role])
                for role in (ANCHOR, FORMER) if role in by_role}  # fmt: skip
    reasons = {role: reason for role, of_role in by_role.items() if (reason := _reason(of_role))}
    point = with_aliases(
        Point(
            *named_now(planned.machine),
            planned.machine,
            packages={**planned.packages, **measured},
            cells=cells,
            previous=planned.previous,
            absent={**planned.absent, **reasons},
            **facts_of_runs(results),
        )
    )
    path = write_point(point, planned.directory)
    if not planned.anchor.point:
        pinned = _pinned(planned.anchor.requirements, measured[ANCHOR])
        anchor = replace(planned.anchor, requirements=pinned, point=point.name)
        write_anchor(anchor, planned.directory)
    for line in verdicts_on(point, planned.directory):
        streams.say(line)
    streams.say(f"Point: {path}; to print the history: zodbshootout history {planned.directory}")


def verdicts_on(point: Point, directory: Path) -> Iterator[str]:
    """Return the verdicts on a point that was just added to a directory."""
    points = by_machine(read_points(directory))[point.machine_name]
    return verdict_lines(MachineHistory(point.machine_name, points, read_accepted(directory)))


def _roles(original: Contender, contenders: Sequence[Contender]) -> dict[str, str]:
    """Return the names of a contender and its variants, by role."""
    variants = {
        contender.environment.name: contender.name
        for contender in contenders
        if contender.variant_of == original.name and contender.environment is not None
    }
    return {CANDIDATE: original.name, **variants}


def _reason(results: Sequence[CellResult]) -> str:
    """Return why nothing was measured in a role; "" if something was measured."""
    if any(result.measured for result in results):
        return ""
    return next((result.reason for result in results if result.reason), "")


def _packages(planned: PlannedPoint, role: str, results: Sequence[CellResult]) -> Packages:
    """Return the packages of a role: the candidate's, some of them in other versions."""
    packages = dict(planned.packages[CANDIDATE])
    for text in planned.environments[role].requirements:
        name = _name(text)
        if name and not is_direct(text) and len(specifiers := [*Requirement(text).specifier]) == 1:
            packages[name] = Package(specifiers[0].version)
    metadata = next((result.metadata for result in results if result.measured), {})
    for name, package in list(packages.items()):
        other = _written(str(metadata.get(f"version_{name}", "")))
        if other is not None and str(other) != str(package):
            packages[name] = other
    return packages


def _written(text: str) -> Package | None:
    """Parse a version from metadata; return ``None`` for a text that is not a version."""
    match = _VERSION.fullmatch(text)
    if match is None:
        return None
    return Package(match["version"], match["commit"] or "", modified=bool(match["modified"]))


def _pinned(requirements: Sequence[str], packages: Packages) -> list[str]:
    """Return requirements that pin all packages; leave requirements with a path or URL as is."""
    direct = [one for one in requirements if is_direct(one)]
    return [
        *direct,
        *(
            _requirement(name, package)
            for name, package in _not_named(direct, packages).items()
            if package.url or not package.commit
        ),
    ]
