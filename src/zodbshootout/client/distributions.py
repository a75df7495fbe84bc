"""Installed distributions: their versions, the commits they come from, and their entry points."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points
from typing import Any, Optional
from urllib.parse import unquote, urlparse


def plugins(group: str) -> list[Any]:
    """Return the objects that entry points of this group name, loaded."""
    if sys.version_info >= (3, 10):
        return [entry.load() for entry in entry_points(group=group)]
    return [entry.load() for entry in entry_points().get(group, ())]  # type: ignore[unreachable, unused-ignore]


def installed_versions(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of those of the named distributions that are installed.

    The version of a distribution installed from a repository includes the commit: ``4.3.0 (git
    1a2b3c4d5e6f)``; that of a checkout (``pip install -e``) also says if files were changed:
    ``4.3.0 (git 1a2b3c4d5e6f, modified)``.
    """
    versions = ((name, _version(name)) for name in names)
    return {name: version for name, version in versions if version is not None}


@functools.cache
def _version(name: str) -> Optional[str]:  # noqa: UP045 - Python 3.9
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        return None
    origin = _origin(installed)
    return f"{installed.version} ({origin})" if origin else installed.version


def _origin(installed: Distribution) -> Optional[str]:  # noqa: UP045
    """Return the commit according to PEP 610's ``direct_url.json``, ``None`` if it has none."""
    try:
        origin = json.loads(installed.read_text("direct_url.json") or "{}")
    except ValueError:
        return None
    commit = origin.get("vcs_info", {}).get("commit_id")
    if commit:
        return f"git {commit[:12]}"
    if not origin.get("dir_info", {}).get("editable"):
        return None  # the directory may have changed since
    return _state_of(unquote(urlparse(origin["url"]).path))


def _state_of(directory: str) -> Optional[str]:  # noqa: UP045
    commit = _git(directory, "rev-parse", "--short=12", "HEAD")
    changes = _git(directory, "status", "--porcelain", "--untracked-files=no")
    if not commit or changes is None:
        return None
    return f"git {commit}, modified" if changes else f"git {commit}"


def _git(directory: str, *words: str) -> Optional[str]:  # noqa: UP045
    try:
        command = ["git", "-C", directory, *words]
        process = subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return process.stdout.strip()
