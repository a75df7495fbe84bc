"""The versions of installed distributions."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from urllib.parse import unquote, urlparse

LOGIN = re.compile(r"(?<=://)(?!git@)[^/\s]*@")
"""Credentials in a URL; ``git`` is the user of every repository that is reached by SSH."""
GIT_TIMEOUT = 5.0
"""Seconds that git may take for an answer; a checkout may be on a slow file system."""


def installed_versions(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of those of the named distributions that are installed, by name.

    If it was installed from a repository or as an editable checkout, the version includes the
    commit, and for a checkout with changed files ``modified``:
    ``4.3.0 (git 1a2b3c4d5e6f, modified)``.
    """
    versions = ((name, _version(name)) for name in names)
    return {name: version for name, version in versions if version is not None}


@dataclass(frozen=True)
class Origin:
    """The place that a package was installed from, if that was no index of packages."""

    url: str
    """A repository, a directory or an archive, without credentials."""
    commit: str = ""
    """The commit that is installed; empty if it is not known, or there is none."""
    modified: bool = False
    """Whether files of the commit were changed."""
    editable: bool = False
    """Whether the package is read from the directory in which it is developed."""

    def __str__(self) -> str:
        commit = f"git {self.commit[:12]}" if self.commit else ""
        return f"{commit}, modified" if self.modified else commit


def origin_of(name: str) -> Origin | None:
    """Return the origin of an installed distribution, ``None`` if an index of packages has it."""
    try:
        return _origin(distribution(name))
    except PackageNotFoundError:
        return None


@functools.cache
def _version(name: str) -> str | None:
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        return None
    origin = str(_origin(installed) or "")
    return f"{installed.version} ({origin})" if origin else installed.version


def _origin(installed: Distribution) -> Origin | None:
    """Return the origin according to PEP 610's ``direct_url.json``, or ``None``."""
    try:
        written = json.loads(installed.read_text("direct_url.json") or "{}")
    except ValueError:
        return None
    if "url" not in written:
        return None
    url = LOGIN.sub("", written["url"])
    if commit := written.get("vcs_info", {}).get("commit_id"):
        return Origin(url, commit)
    if not written.get("dir_info", {}).get("editable"):
        return Origin(url)  # the directory may have changed since the installation
    directory = unquote(urlparse(url).path)
    commit = git(directory, "rev-parse", "HEAD")
    changes = git(directory, "status", "--porcelain", "--untracked-files=no")
    if not commit or changes is None:
        return Origin(url, editable=True)
    return Origin(url, commit, bool(changes), editable=True)


def git(directory: str | os.PathLike[str], *words: str) -> str | None:
    """Return what git prints about a checkout, ``None`` if it fails."""
    # A hook of git has variables that name the repository for which it runs.
    variables = {key: text for key, text in os.environ.items() if not key.startswith("GIT_")}
    try:
        command = ["git", "-C", os.fspath(directory), *words]
        process = subprocess.run(
            command, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=GIT_TIMEOUT, env=variables,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.strip()
