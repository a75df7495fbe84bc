"""The environments that one word of ``--against`` stands for: releases or commits.

uv lists the releases, because uv's configuration says where to look for releases.  uv also builds
the commits of a checkout, in clones that uv keeps for later runs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import BytesIO
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from zodbshootout.config.pythons import Environment
from zodbshootout.contenders.making import reason_in, uv_program
from zodbshootout.errors import UserError
from zodbshootout.model.specification import for_another_python
from zodbshootout.model.titles import Release
from zodbshootout.versions import git, installed_versions, repository_of

MOST = 60
"""The maximum number of environments that a word may stand for."""
_TIMEOUT = 60.0
"""Seconds to wait for an answer of uv or git."""
_NEWEST_OF_MINOR = re.compile(r"\s*;\s*newest of minor\s*$")
_EVERY = re.compile(r"\s*;\s*every (?P<number>[1-9]\d*)(st|nd|rd|th)\s*$")
_TAG = re.compile(r"tag: (?P<name>[\w.-]+)[],]")
_NO_SOLUTION = "No solution found"
"""uv's words if no release satisfies a requirement."""


def releases_and_commits(word: str) -> list[Environment]:
    """Return an environment for each release or commit that a word stands for, oldest first.

    A requirement such as ``ZODB>=5`` stands for all releases that satisfy it, except the installed
    one.  With ``; newest of minor``, it stands only for the newest release of each minor version.
    ``PATH@COMMIT`` is a commit of a checkout.  ``PATH@FROM..TO`` is FROM and every later commit up
    to TO; with ``; every 5th``, only every fifth of these commits and the last.

    :raises UserError: if there is no such release or commit, or there are too many
    """
    if os.path.exists(word):  # noqa: PTH110 - Path.exists raises if the word is too long
        return []
    if place := _checkout_in(word):
        return _commits(word, *place)
    requirement = _with_several(_NEWEST_OF_MINOR.sub("", word))
    if requirement is None:
        return []
    return _releases(word, requirement, newest_of_minor=bool(_NEWEST_OF_MINOR.search(word)))


def _with_several(text: str) -> Requirement | None:
    """Return the requirement in a text if several releases can satisfy it."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return None
    pinned = any(
        one.operator == "===" or (one.operator == "==" and not one.version.endswith(".*"))
        for one in requirement.specifier
    )
    is_plain = requirement.specifier and not (requirement.url or requirement.marker)
    return requirement if is_plain and not pinned else None


def _releases(word: str, requirement: Requirement, *, newest_of_minor: bool) -> list[Environment]:
    installed = installed_versions([requirement.name]).get(requirement.name)
    versions: list[Version] = []
    left = requirement.specifier
    while (version := _newest(requirement.name, left)) is not None:
        versions.append(version)
        _check_number(word, len(versions), "newest of minor")
        others = f"{version.major}.{version.minor}.*" if newest_of_minor else str(version)
        left &= SpecifierSet(f"!={others}")
    others_than_installed = sorted(one for one in versions if str(one) != installed)
    if not others_than_installed:
        there = f"only {installed}, which is installed," if versions else "no release"
        raise UserError(f"--against: {there} satisfies {word!r}")
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return [
        Environment(
            str(release),
            requirements=(f"{requirement.name}{extras}=={release.version}",),
            keeps_installed=True,
            one_of_several=True,
            release=release,
        )
        for version in others_than_installed
        for release in [Release(requirement.name, str(version))]
    ]


def _newest(name: str, specifier: SpecifierSet) -> Version | None:
    """Return the newest release that satisfies *specifier*; ``None`` if there is none.

    The release need not be installable here.
    """
    command = [
        uv_program(), "--quiet", "pip", "compile", "--python", sys.executable,
        "--no-deps", "--no-header", "--no-annotate", "--prerelease", "explicit",
        "--universal", "--fork-strategy", "fewest", "-",
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, timeout=_TIMEOUT,
            input=f"{name}{specifier}".encode(), env=for_another_python(os.environ),
        )  # fmt: skip
        reason = reason_in(BytesIO(done.stderr))
    except subprocess.TimeoutExpired as error:
        raise UserError(f"--against: {error}") from None
    if not done.returncode:
        return Version(done.stdout.decode().partition("==")[2].split()[0])
    if _NO_SOLUTION in reason and "not found in the cache" not in reason:
        return None
    raise UserError(f"--against: uv cannot list the releases of {name}: {reason}")


def _check_number(word: str, number: int, fewer: str) -> None:
    if number > MOST:
        raise UserError(
            f"--against: {word!r} stands for more than {MOST} environments; narrow it, or take "
            f"a selection: '...; {fewer}'"
        )


def _checkout_in(word: str) -> tuple[Path, str] | None:
    """Return the directory and the commits in a word such as ``./RelStorage@v4.2..HEAD``."""
    for end in (place.start() for place in reversed([*re.finditer("@", word)])):
        directory = Path(word[:end]).expanduser()
        if "://" not in word[end:] and os.path.isdir(directory):  # noqa: PTH112 - is_dir may raise
            return directory, word[end + 1 :]
    return None


def _commits(word: str, directory: Path, revisions: str) -> list[Environment]:
    every = _EVERY.search(revisions)
    revisions = _EVERY.sub("", revisions)
    place = repository_of(directory)
    if place is None:
        raise UserError(f"--against: {directory} is not a git checkout")
    repository, subdirectory = place
    first, dots, last = revisions.partition("..")
    names = [first, last] if dots else [first]
    ends = [_commit_of(directory, name or "HEAD") for name in names]
    described = _described(directory, ends[0], "--max-count=1")
    if dots:
        described += _described(directory, f"{ends[0]}..{ends[1]}", "--first-parent", "--reverse")
        if len(described) == 1:
            raise UserError(f"--against: there is no commit in {revisions} of {directory}")
    number = int(every["number"]) if every else 1
    chosen = [*described[:-1:number], described[-1]]
    _check_number(word, len(chosen), "every 5th")
    return [
        Environment(
            str(release),
            requirements=(f"git+{repository}@{commit}{subdirectory}",),
            keeps_installed=True,
            one_of_several=bool(dots),
            release=release,
        )
        for commit, name in chosen
        for release in [Release(directory.resolve().name, commit=name)]
    ]


def _described(directory: Path, revisions: str, *words: str) -> list[tuple[str, str]]:
    """Return each commit with a name: its tag or, if it has none, its abbreviated hash."""
    form = ["--format=%H %h [%D]", "--decorate-refs=refs/tags"]
    listed = git(directory, "log", *form, *words, revisions) or ""
    commits = []
    for line in listed.splitlines():
        commit, name, tags = line.split(" ", 2)
        tag = _TAG.search(tags)
        commits.append((commit, tag["name"] if tag else name))
    return commits


def _commit_of(directory: Path, revision: str) -> str:
    name = ["--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"]
    commit = git(directory, "rev-parse", *name)
    if not commit:
        raise UserError(f"--against: {directory} has no commit {revision!r}")
    return commit.splitlines()[-1]
