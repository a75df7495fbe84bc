"""The versions of installed distributions."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import quote, unquote, urlparse

GIT_TIMEOUT = 5.0
"""Seconds that git may take to answer; a checkout may be on a slow file system."""


def installed_versions(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of distributions by name, leaving out those that are not installed.

    The version of a distribution that was installed from a repository or a checkout includes the
    commit, and ``modified`` if files were changed: ``4.3.0+git.1a2b3c4d5e6f.modified``.
    """
    versions = ((name, _version(name)) for name in names)
    return {name: version for name, version in versions if version is not None}


@functools.cache
def _version(name: str) -> str | None:
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        return None
    commit = _commit(installed)
    # PEP 440 lets a version have one local part, which begins with a plus sign.
    sign = "." if "+" in installed.version else "+"
    return f"{installed.version}{sign}{commit}" if commit else installed.version


def _commit(installed: Distribution) -> str | None:
    """Return the commit according to PEP 610's ``direct_url.json``, or ``None``."""
    try:
        origin = json.loads(installed.read_text("direct_url.json") or "{}")
    except ValueError:
        return None
    if commit := origin.get("vcs_info", {}).get("commit_id"):
        return f"git.{commit[:12]}"
    if not origin.get("dir_info", {}).get("editable"):
        return None  # the directory may have changed since the installation
    directory = unquote(urlparse(origin["url"]).path)
    commit = git(directory, "rev-parse", "--short=12", "HEAD")
    changes = git(directory, "status", "--porcelain", "--untracked-files=no")
    if not commit or changes is None:
        return None
    return f"git.{commit}.modified" if changes else f"git.{commit}"


def repository_of(directory: str | os.PathLike[str]) -> tuple[str, str] | None:
    """Return the URL of a directory's repository, and the URL fragment for the directory.

    Return ``None`` if the directory is not in a repository.
    """
    place = git(directory, "rev-parse", "--show-toplevel", "--show-prefix")
    if place is None:
        return None
    top, _, prefix = place.partition("\n")
    subdirectory = f"#subdirectory={quote(prefix.rstrip('/'))}" if prefix else ""
    return Path(top).as_uri(), subdirectory


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
