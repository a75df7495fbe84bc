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
from pathlib import Path
from urllib.parse import quote, unquote, urlparse

LOGIN = re.compile(r"(?<=://)(?!git@)[^/\s]*@")
"""Credentials in a URL, except ``git``, the usual user name of repositories reached by SSH."""
GIT_TIMEOUT = 5.0
"""Seconds that git may take to answer; a checkout may be on a slow file system."""


def installed_versions(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of distributions by name, leaving out those that are not installed.

    The version of a distribution that was installed from a repository or a checkout includes the
    commit, and ``modified`` if files were changed: ``4.3.0 (git 1a2b3c4d5e6f, modified)``.
    """
    versions = ((name, _version(name)) for name in names)
    return {name: version for name, version in versions if version is not None}


@dataclass(frozen=True)
class Origin:
    """The place, other than a package index, that a package was installed from."""

    url: str
    """A repository, a directory or an archive, without credentials.  If the package is not at the
    top of its repository, ``#subdirectory=`` and a path follow."""
    commit: str = ""
    """The installed commit; empty if there is none, or it is unknown."""
    modified: bool = False
    """Whether files differ from the commit."""
    editable: bool = False
    """Whether the installation is editable."""

    def __str__(self) -> str:
        commit = f"git {self.commit[:12]}" if self.commit else ""
        return f"{commit}, modified" if self.modified else commit


def origin_of(name: str) -> Origin | None:
    """Return the origin of a distribution; ``None`` if it has none, or is not installed."""
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
        return Origin(url + in_repository(written.get("subdirectory", "")), commit)
    if not written.get("dir_info", {}).get("editable"):
        return Origin(url)  # the directory may have changed since the installation
    directory = unquote(urlparse(url).path)
    commit = git(directory, "rev-parse", "HEAD")
    changes = git(directory, "status", "--porcelain", "--untracked-files=no")
    place = repository_of(directory)
    if not commit or changes is None or place is None:
        return Origin(url, editable=True)
    return Origin("".join(place), commit, bool(changes), editable=True)


def repository_of(directory: str | os.PathLike[str]) -> tuple[str, str] | None:
    """Return the URL of a directory's repository, and the URL fragment for the directory.

    Return ``None`` if the directory is not in a repository.
    """
    place = git(directory, "rev-parse", "--show-toplevel", "--show-prefix")
    if place is None:
        return None
    top, _, prefix = place.partition("\n")
    return Path(top).as_uri(), in_repository(prefix)


def in_repository(subdirectory: str) -> str:
    """Return the URL fragment for a package in a *subdirectory* of a repository."""
    return f"#subdirectory={quote(subdirectory.rstrip('/'))}" if subdirectory else ""


def git(directory: str | os.PathLike[str], *words: str) -> str | None:
    """Return git's output about a checkout, or ``None`` if git fails."""
    # In a git hook, GIT_DIR and similar variables name the hook's repository.
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
