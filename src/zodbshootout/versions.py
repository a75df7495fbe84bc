"""The versions of installed distributions."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from urllib.parse import unquote, urlparse

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


@functools.cache
def _version(name: str) -> str | None:
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        return None
    origin = _origin(installed)
    return f"{installed.version} ({origin})" if origin else installed.version


def _origin(installed: Distribution) -> str | None:
    """Return the commit according to PEP 610's ``direct_url.json``, or ``None``."""
    try:
        origin = json.loads(installed.read_text("direct_url.json") or "{}")
    except ValueError:
        return None
    commit = origin.get("vcs_info", {}).get("commit_id")
    if commit:
        return f"git {commit[:12]}"
    if not origin.get("dir_info", {}).get("editable"):
        return None  # the directory may have changed since the installation
    directory = unquote(urlparse(origin["url"]).path)
    commit = git(directory, "rev-parse", "--short=12", "HEAD")
    if not commit:
        return None
    changes = git(directory, "status", "--porcelain", "--untracked-files=no")
    if changes is None:
        return None
    return f"git {commit}, modified" if changes else f"git {commit}"


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
